"""A message as server-sent events, in the order and with the cumulative usage that the real API sends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from tests.fake_api.reply import Block, input_text

Event = tuple[str, dict[str, Any]]
_CLOSING_USAGE = (
    "input_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
    "output_tokens",
    "output_tokens_details",
    "iterations",
)
PRIMES = (1, 2, 3, 5, 7, 11, 13, 17, 19, 23)


def encode(event: Event) -> bytes:
    """One event as it goes over the wire."""
    name, data = event
    return b"event: " + name.encode() + b"\ndata: " + orjson.dumps(data) + b"\n\n"


def events(message: Mapping[str, Any], content: list[Block], *, max_deltas: int) -> Iterator[Event]:
    """The events of one finished message. `content` may hold what the plain form cannot show: cut argument text."""
    usage = message.get("usage")
    opening = {**message, "content": [], "stop_reason": None, "stop_sequence": None, "stop_details": None}
    opening.pop("context_management", None)
    if usage is not None:
        opening["usage"] = {**usage, "output_tokens": min(1, usage["output_tokens"])}
        opening["usage"].pop("output_tokens_details", None)
        opening["usage"].pop("iterations", None)
    yield "message_start", {"type": "message_start", "message": opening}
    if not content:
        yield "ping", {"type": "ping"}
    for index, block in enumerate(content):
        yield "content_block_start", {"type": "content_block_start", "index": index, "content_block": _empty(block)}
        if index == 0:
            yield "ping", {"type": "ping"}
        for delta in _deltas(block, max_deltas):
            yield "content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta}
        yield "content_block_stop", {"type": "content_block_stop", "index": index}
    yield "message_delta", _closing(message)
    yield "message_stop", {"type": "message_stop"}


def _closing(message: Mapping[str, Any]) -> dict[str, Any]:
    closing: dict[str, Any] = {
        "type": "message_delta",
        "delta": {name: message[name] for name in ("stop_reason", "stop_sequence", "stop_details")},
    }
    usage = message.get("usage")
    if usage is not None:
        closing["usage"] = {name: usage[name] for name in _CLOSING_USAGE if name in usage}
    if message.get("context_management") is not None:
        closing["context_management"] = message["context_management"]
    return closing


def _empty(block: Block) -> Block:
    match block["type"]:
        case "text":
            return {"type": "text", "text": ""}
        case "thinking":
            return {"type": "thinking", "thinking": "", "signature": ""}
        case "tool_use":
            return {"type": "tool_use", "id": block["id"], "name": block["name"], "input": {}}
        case "compaction":
            return {**block, "content": None}
        case _:
            return block


def _deltas(block: Block, most: int) -> Iterator[dict[str, Any]]:
    match block["type"]:
        case "text":
            for part in pieces(block["text"], most):
                yield {"type": "text_delta", "text": part}
        case "thinking":
            for part in pieces(block["thinking"], most):
                yield {"type": "thinking_delta", "thinking": part}
            yield {"type": "signature_delta", "signature": block["signature"]}
        case "tool_use":
            yield {"type": "input_json_delta", "partial_json": ""}
            for part in pieces(input_text(block), most):
                yield {"type": "input_json_delta", "partial_json": part}
        case "compaction":
            yield {
                "type": "compaction_delta",
                "content": block["content"],
                "encrypted_content": block.get("encrypted_content"),
            }


def pieces(text: str, most: int) -> Iterator[str]:
    """The text in at most `most` uneven parts, so that keys, escapes and numbers are torn apart."""
    at = n = 0
    while at < len(text):
        left = most - n - 1
        size = PRIMES[n % len(PRIMES)] if left > 0 else len(text) - at
        size = max(size, (len(text) - at) // (left + 1)) if left > 0 else size
        yield text[at : at + size]
        at, n = at + size, n + 1
