"""What tests ask of a run, over the requests that the fake kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from tests.fake_api.record import RecordedRequest


def assert_all_valid(requests: Iterable[RecordedRequest]) -> None:
    """No request was refused, other than by a fault that the test planned."""
    refused = [
        f"request {r.index} ({r.path}, conversation {r.conversation}): {r.status} {r.error}"
        for r in requests
        if r.error is not None and r.fault is None and r.status != 429
    ]
    assert not refused, "\n".join(refused)


def assert_pinned(requests: Iterable[RecordedRequest], facts: Sequence[str]) -> None:
    """Each fact stands verbatim in each POST /v1/messages."""
    for request in requests:
        if request.number < 0:
            continue
        text = "\n".join(texts(request.json))
        for fact in facts:
            assert fact in text, f"request {request.index} has lost {fact!r}"


def assert_within(requests: Iterable[RecordedRequest], budget_tokens: int) -> None:
    """No prompt was larger than the budget, as the fake counts."""
    for request in requests:
        assert request.prompt_tokens <= budget_tokens, f"request {request.index}: {request.prompt_tokens} tokens"


def assert_prefix_stable(requests: Iterable[RecordedRequest], *, until: str = "system") -> None:
    """The cached prefix of a conversation never moves: tools and system always; with `until="messages"` also that each
    request's messages begin with those of the one before (cache marks aside)."""
    before: dict[str, RecordedRequest] = {}
    for request in requests:
        if request.number < 0:
            continue
        previous = before.get(request.conversation)
        if previous is not None:
            moved = moved_prefix(previous.json, request.json, messages=until == "messages")
            assert moved is None, f"between requests {previous.index} and {request.index}: {moved}"
        before[request.conversation] = request


def moved_prefix(before: Mapping[str, Any], after: Mapping[str, Any], *, messages: bool) -> str | None:
    """What changed in the part that should have stayed, or None."""
    for part in ("tools", "system"):
        old, new = _bytes(before.get(part)), _bytes(after.get(part))
        if old != new:
            at = next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
            return f"{part} differs at byte {at}: {old[at : at + 40]!r} became {new[at : at + 40]!r}"
    if not messages:
        return None
    old_blocks, new_blocks = _blocks(before), _blocks(after)
    for n, block in enumerate(old_blocks):
        if n >= len(new_blocks):
            return f"message block {n} is gone"
        if block != new_blocks[n]:
            return f"message block {n} differs: {block[:80]!r} became {new_blocks[n][:80]!r}"
    return None


def texts(body: Mapping[str, Any]) -> list[str]:
    """Every text of a request: system, messages, results; arguments of calls as JSON."""
    found: list[str] = []

    def walk(value: Any) -> None:
        if isinstance(value, str):
            found.append(value)
        elif isinstance(value, list):
            for item in value:
                walk(item)
        elif isinstance(value, Mapping):
            if value.get("type") == "tool_use":
                found.append(orjson.dumps(value.get("input")).decode())
            for name in ("text", "content", "thinking"):
                walk(value.get(name))

    walk(body.get("system"))
    walk(body.get("messages"))
    return found


def tokens_by_request(requests: Iterable[RecordedRequest]) -> dict[str, list[int]]:
    """Prompt tokens of each conversation's requests, in order."""
    table: dict[str, list[int]] = {}
    for request in requests:
        if request.number >= 0 and request.accepted:
            table.setdefault(request.conversation, []).append(request.prompt_tokens)
    return table


def _bytes(value: Any) -> bytes:
    return orjson.dumps(_unmarked(value))


def _blocks(body: Mapping[str, Any]) -> list[bytes]:
    blocks: list[bytes] = []
    for message in body["messages"]:
        content = message["content"]
        content = [{"type": "text", "text": content}] if isinstance(content, str) else content
        blocks += [message["role"].encode() + b" " + _bytes(block) for block in content]
    return blocks


def _unmarked(value: Any) -> Any:
    if isinstance(value, list):
        return [_unmarked(item) for item in value]
    if isinstance(value, Mapping):
        return {k: _unmarked(v) for k, v in value.items() if k != "cache_control"}
    return value
