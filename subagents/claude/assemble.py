"""The request, computed anew for each turn out of the record: stable first, volatile last.

    tools                      sorted by name
    system                     role prompt, then repository brief      <- breakpoint, shared by the session
    user 1                     opening; after compaction the summary   <- breakpoint
    ...steps...                calls and results                       <- two rolling breakpoints
    newest user turn           results, notices, state block

Pure: the same record and the same fixed part give the same bytes. Where the rolling breakpoint stands follows the
clearing mode: behind the newest results when they will be read again, before them when they are about to be replaced,
since what is rewritten next turn need not be written to the cache.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from subagents.claude.history import History
from subagents.claude.messages import (
    THINKING,
    Pair,
    Param,
    Request,
    UserTurn,
    assistant_params,
    text_param,
    user_params,
)
from subagents.claude.sizes import is_clearable


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedPart:
    """What all requests of a role share, and the settings that would miss the cache if they changed."""

    model: str
    max_tokens: int
    tools: Sequence[Param] = ()
    role_prompt: str = ""
    brief: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Other arguments of the request: thinking, output_config, context_management ..."""
    betas: tuple[str, ...] = ()
    cache: bool = True
    ttl: str = "5m"


def assemble(fixed: FixedPart, history: History) -> Request:
    """The next request of this conversation. Raises nothing: whether it may be sent is `protocol`'s question."""
    mark = _mark(fixed)
    body: Param = {"model": fixed.model, "max_tokens": fixed.max_tokens}
    if fixed.tools:
        body["tools"] = list(fixed.tools)
    system = [text_param(text) for text in (fixed.role_prompt, fixed.brief) if text.strip()]
    if system:
        if mark:
            system[-1]["cache_control"] = mark
        body["system"] = system
    body["messages"] = _messages(history, mark)
    body.update(fixed.extra)
    return Request(body=body, betas=fixed.betas)


def _mark(fixed: FixedPart) -> Param | None:
    if not fixed.cache:
        return None
    return {"type": "ephemeral"} if fixed.ttl == "5m" else {"type": "ephemeral", "ttl": fixed.ttl}


def _messages(history: History, mark: Param | None) -> list[Param]:
    edits = history.edits
    first = [text_param(history.opening)]
    if mark:
        first[0]["cache_control"] = mark
    if edits.summary:
        first.append(text_param(edits.summary))
    messages: list[Param] = [{"role": "user", "content": first}]
    kept = history.kept
    for pair in kept:
        content = assistant_params(pair.assistant, thinking=pair.number >= edits.thinking)
        messages.append({"role": "assistant", "content": content})
        if pair.user is not None:
            messages.append({"role": "user", "content": _user_content(pair, pair.user, history)})
    if mark:
        _roll(messages, kept, history, mark)
    return messages


def _user_content(pair: Pair, user: UserTurn, history: History) -> list[Param]:
    edits = history.edits
    newest = pair.number == history.next_number - 1
    cleared = pair.number < edits.cleared
    content = user_params(user, cleared=False, state=newest or pair.number >= edits.states)
    if cleared:
        for block, result in zip(content, user.results, strict=False):
            if is_clearable(result):
                block["content"] = result.digest
    return content


def _roll(messages: list[Param], kept: Sequence[Pair], history: History, mark: Param) -> None:
    """Set the rolling breakpoints: at the end of what will not change, now and one step ago."""
    if not kept:
        return
    if history.edits.mode in ("behind", "server"):
        targets = [m for m in messages if m["role"] == "assistant"][-2:]
        for message in targets:
            _mark_last(message["content"], mark)
        return
    users = messages[2::2][-2:]
    pairs = [p for p in kept if p.user is not None][-2:]
    for message, pair in zip(users, pairs, strict=True):
        assert pair.user is not None
        stable = len(pair.user.results) + sum(1 for n in pair.user.notices if n.strip())
        _mark_last(message["content"][: max(1, stable)], mark)


def _mark_last(content: Sequence[Param], mark: Param) -> None:
    """Mark the last block that may carry a mark. A thinking block may not."""
    for block in reversed(content):
        if block["type"] not in THINKING:
            block["cache_control"] = mark
            return
