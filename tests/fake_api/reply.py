"""What a model says, before the API cuts it to size, signs it and counts it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.fake_api.tokens import block_tokens

Block = dict[str, Any]


@dataclass(slots=True)
class Reply:
    """Content blocks without ids and signatures. `stop_reason` None: worked out from the content."""

    content: list[Block] = field(default_factory=list)
    stop_reason: str | None = None
    stop_details: Mapping[str, Any] | None = None
    stop_sequence: str | None = None


def text(value: str) -> Block:
    return {"type": "text", "text": value}


def thinking(value: str) -> Block:
    return {"type": "thinking", "thinking": value}


def redacted() -> Block:
    """Thinking of which only the signature comes back."""
    return {"type": "redacted_thinking"}


def tool(name: str, arguments: Mapping[str, Any] | None = None, /, **more: Any) -> Block:
    """A tool call. Arguments whose names clash with Python's go into `arguments`."""
    return {"type": "tool_use", "name": name, "input": {**(arguments or {}), **more}}


def raw_tool(name: str, json_text: str) -> Block:
    """A tool call whose streamed argument text is exactly this, valid JSON or not."""
    return {"type": "tool_use", "name": name, "input": {}, "_json": json_text}


def say(*values: str) -> Reply:
    """A final text."""
    return Reply([text(value) for value in values])


def call(*tools: Block, before: str = "") -> Reply:
    """One turn of tool calls."""
    return Reply(([text(before)] if before else []) + list(tools))


def refusal(category: str | None = "cyber", explanation: str | None = "declined", *, partial: str = "") -> Reply:
    details = {"type": "refusal", "category": category, "explanation": explanation}
    return Reply([text(partial)] if partial else [], "refusal", details)


def paused(value: str) -> Reply:
    return Reply([text(value)], "pause_turn")


@dataclass(slots=True)
class Finished:
    """A reply that fits, with its size."""

    content: list[Block]
    stop_reason: str
    stop_sequence: str | None
    stop_details: Mapping[str, Any] | None
    output_tokens: int
    thinking_tokens: int


def finish(
    reply: Reply, *, limit_tokens: int, limit_reason: str, stop_sequences: Sequence[str], scale: float
) -> Finished:
    """Cut at stop sequences and at the token limit, and settle the stop reason."""
    content, hit = _stop(reply.content, stop_sequences)
    content, spent, thought, cut = _cut(content, limit_tokens, scale)
    if cut:
        reason: str = limit_reason
    elif hit is not None:
        reason = "stop_sequence"
    elif reply.stop_reason is not None:
        reason = reply.stop_reason
    else:
        reason = "tool_use" if any(block["type"] == "tool_use" for block in content) else "end_turn"
    return Finished(content, reason, None if cut else (hit or reply.stop_sequence), reply.stop_details, spent, thought)


def input_text(block: Block) -> str:
    """The JSON text of a call's arguments as it is streamed."""
    return str(block.get("_json", json.dumps(block["input"], ensure_ascii=False)))


def _stop(content: Sequence[Block], sequences: Sequence[str]) -> tuple[list[Block], str | None]:
    for n, block in enumerate(content):
        if block["type"] != "text":
            continue
        found = [(block["text"].find(s), s) for s in sequences if s in block["text"]]
        if found:
            at, sequence = min(found)
            return [*content[:n], {**block, "text": block["text"][:at]}], sequence
    return list(content), None


def _cut(content: Sequence[Block], limit: int, scale: float) -> tuple[list[Block], int, int, bool]:
    kept: list[Block] = []
    spent = thought = 0
    for block in content:
        size = max(1, round(block_tokens(_counted(block)) * scale))
        if spent + size > limit:
            part = _part(block, (limit - spent) / size)
            if part is not None:
                kept.append(part)
            return kept, limit, thought + (limit - spent if block["type"] == "thinking" else 0), True
        kept.append(block)
        spent += size
        thought += size if block["type"] in {"thinking", "redacted_thinking"} else 0
    return kept, max(spent, 1), thought, False


def _counted(block: Block) -> Block:
    return {"type": "text", "text": block["name"] + input_text(block)} if block["type"] == "tool_use" else block


def _part(block: Block, share: float) -> Block | None:
    """The start of a block that did not fit; a cut tool call keeps the start of its argument text."""
    if share <= 0:
        return None
    if block["type"] == "text":
        return {**block, "text": block["text"][: int(len(block["text"]) * share)]}
    if block["type"] == "thinking":
        return {**block, "thinking": block["thinking"][: int(len(block["thinking"]) * share)]}
    if block["type"] == "tool_use":
        whole = input_text(block)
        return {**block, "input": {}, "_json": whole[: min(len(whole) - 1, int(len(whole) * share))]}
    return None
