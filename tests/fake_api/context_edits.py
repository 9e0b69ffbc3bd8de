"""Server-side context management: what `context_management.edits` does to the messages before the model sees them.

Clearing is worked out afresh for each request by replaying the conversation: at each point where a reply was due, the
context as it then stood (earlier clearings included) is measured against the trigger. So an edit that happened once
stays, and the next one comes when the trigger is met again; the history the client sends never changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.fake_api import signing
from tests.fake_api.prompt import Message
from tests.fake_api.tokens import MESSAGE_OVERHEAD, block_tokens

DEFAULT_CLEAR_TRIGGER = 100_000
DEFAULT_KEEP_TOOL_USES = 3
DEFAULT_COMPACT_TRIGGER = 150_000
CLEARED_TEXT = "[Old tool result content cleared]"
CLEARED_TOKENS = block_tokens({"type": "tool_result", "content": CLEARED_TEXT})


@dataclass(slots=True)
class Edited:
    """Messages after the edits, and the `applied_edits` of the response."""

    messages: list[Message]
    applied: list[dict[str, Any]] = field(default_factory=list)
    compact: Mapping[str, Any] | None = None
    """The compaction edit of the request, if there is one; whether it fires is decided on the counted prompt."""


def apply(
    body: Mapping[str, Any],
    messages: Sequence[Message],
    *,
    base_tokens: int,
    scale: float,
    sizes: dict[int, list[int]],
) -> Edited:
    """Apply the clearing edits in the order given, to messages as `after_compaction` leaves them.

    `base_tokens`: tools and system; `sizes`: tokens of the blocks of each message; both at scale 1.
    """
    result = Edited(list(messages))
    for edit in (body.get("context_management") or {}).get("edits") or ():
        match edit["type"]:
            case "clear_thinking_20251015":
                _clear_thinking(result, edit, scale, sizes)
            case "clear_tool_uses_20250919":
                _clear_tool_uses(result, edit, base_tokens, scale, sizes)
            case "compact_20260112":
                result.compact = edit
    return result


def after_compaction(messages: Sequence[Message]) -> list[Message]:
    """Without what stands before the last compaction block that has content; empty ones count for nothing."""
    found = [(i, j) for i, m in enumerate(messages) for j, b in enumerate(m["content"]) if b["type"] == "compaction"]
    if not found:
        return list(messages)
    last = next(((i, j) for i, j in reversed(found) if messages[i]["content"][j].get("content") is not None), None)
    kept = list(messages)
    if last is not None:
        i, j = last
        kept = [{**messages[i], "content": messages[i]["content"][j:]}, *messages[i + 1 :]]
    return [
        {**m, "content": [b for b in m["content"] if b["type"] != "compaction" or b.get("content") is not None]}
        for m in kept
    ]


def _clear_thinking(result: Edited, edit: Mapping[str, Any], scale: float, sizes: dict[int, list[int]]) -> None:
    keep = edit.get("keep", {"type": "thinking_turns", "value": 1})
    if keep == "all" or keep.get("type") == "all":
        return
    turns = [i for i, m in enumerate(result.messages) if any(b["type"] in signing.THINKING for b in m["content"])]
    cleared = turns[: max(0, len(turns) - keep["value"])]
    tokens = 0
    for i in cleared:
        content = result.messages[i]["content"]
        kept = [n for n, block in enumerate(content) if block["type"] not in signing.THINKING]
        tokens += sum(sizes[i]) - sum(sizes[i][n] for n in kept)
        sizes[i] = [sizes[i][n] for n in kept]
        result.messages[i] = {**result.messages[i], "content": [content[n] for n in kept]}
    if cleared:
        result.applied.append(
            {
                "type": edit["type"],
                "cleared_thinking_turns": len(cleared),
                "cleared_input_tokens": round(tokens * scale),
            }
        )


@dataclass(slots=True)
class _Use:
    """One call and its result, with what clearing them would save."""

    call_at: tuple[int, int]
    result_at: tuple[int, int]
    saves: int
    excluded: bool


def _clear_tool_uses(
    result: Edited, edit: Mapping[str, Any], base_tokens: int, scale: float, sizes: Mapping[int, Sequence[int]]
) -> None:
    trigger = edit.get("trigger") or {"type": "input_tokens", "value": DEFAULT_CLEAR_TRIGGER}
    keep = (edit.get("keep") or {}).get("value", DEFAULT_KEEP_TOOL_USES)
    at_least = (edit.get("clear_at_least") or {}).get("value", 0)
    messages = result.messages
    calls: dict[str, tuple[tuple[int, int], Mapping[str, Any]]] = {}
    open_uses: list[_Use] = []
    cleared: list[_Use] = []
    context = float(base_tokens)
    for i, message in enumerate(messages):
        context += MESSAGE_OVERHEAD
        for j, block in enumerate(message["content"]):
            size = sizes[i][j] if i in sizes else 0
            context += size
            if block["type"] == "tool_use":
                calls[block["id"]] = ((i, j), block)
            elif block["type"] == "tool_result" and block["tool_use_id"] in calls:
                at, call = calls[block["tool_use_id"]]
                open_uses.append(_use(at, call, (i, j), size, edit))
        reply_due = message["role"] == "user" and (i + 1 == len(messages) or messages[i + 1]["role"] == "assistant")
        if not reply_due or not _fires(trigger, context * scale, len(open_uses)):
            continue
        candidates = [use for use in open_uses[: max(0, len(open_uses) - keep)] if not use.excluded]
        saving = sum(use.saves for use in candidates)
        if not candidates or saving * scale < at_least:
            continue
        context -= saving
        cleared += candidates
        open_uses = [use for use in open_uses if use not in candidates]
    if cleared:
        _replace(result, cleared, edit)
        result.applied.append(
            {
                "type": edit["type"],
                "cleared_tool_uses": len(cleared),
                "cleared_input_tokens": round(sum(use.saves for use in cleared) * scale),
            }
        )


def _fires(trigger: Mapping[str, Any], context_tokens: float, uses: int) -> bool:
    return uses > trigger["value"] if trigger["type"] == "tool_uses" else context_tokens > trigger["value"]


def _use(
    call_at: tuple[int, int],
    call: Mapping[str, Any],
    result_at: tuple[int, int],
    size: int,
    edit: Mapping[str, Any],
) -> _Use:
    saves = size - CLEARED_TOKENS
    if _clears_input(edit, call["name"]):
        saves += block_tokens(call) - block_tokens({**call, "input": {}})
    return _Use(call_at, result_at, saves, call["name"] in (edit.get("exclude_tools") or ()))


def _clears_input(edit: Mapping[str, Any], name: str) -> bool:
    inputs = edit.get("clear_tool_inputs")
    return inputs is True or (isinstance(inputs, list) and name in inputs)


def _cleared(block: Mapping[str, Any]) -> dict[str, Any]:
    return {**block, "content": CLEARED_TEXT}


def _replace(result: Edited, cleared: Sequence[_Use], edit: Mapping[str, Any]) -> None:
    contents: dict[int, list[Any]] = {}

    def content(i: int) -> list[Any]:
        if i not in contents:
            contents[i] = list(result.messages[i]["content"])
        return contents[i]

    for use in cleared:
        i, j = use.result_at
        content(i)[j] = _cleared(content(i)[j])
        i, j = use.call_at
        if _clears_input(edit, content(i)[j]["name"]):
            content(i)[j] = {**content(i)[j], "input": {}}
    result.messages = [{**m, "content": contents[i]} if i in contents else m for i, m in enumerate(result.messages)]
