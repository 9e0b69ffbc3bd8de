"""From what the endpoint streams to a typed reply: strict about the stream, tolerant about the model.

A stream that ends early, skips its start or sends no stop reason is trouble, never a reply. What a model may get wrong
(arguments that are no JSON, ids that repeat, names nobody has, thinking without a signature) is put into a form that
can be answered and sent back.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from typing import Any

from subagents.claude.messages import THINKING, AssistantTurn, Block, Reply, Signed, Text, ToolUse, Usage
from subagents.claude.stops import Trouble

_BAD_ID = re.compile(r"[^a-zA-Z0-9_-]")


class StreamReader:
    """Takes the events of a stream as JSON objects and gives the message they spell."""

    def __init__(self) -> None:
        self.id = ""
        self.model = ""
        self.stop_reason: str | None = None
        self.usage: dict[str, Any] = {}
        self.blocks: list[dict[str, Any]] = []
        self.applied_edits: tuple[Mapping[str, object], ...] = ()
        self.cache_miss = ""
        self.started = False
        self.ended = False
        self._parts: dict[tuple[int, str], list[str]] = {}
        """Texts that come in pieces, by block and field."""

    def take(self, event: Mapping[str, Any]) -> None:
        """One event. Raises Trouble("broken") when it does not fit what came before."""
        kind = event.get("type")
        try:
            if kind == "content_block_delta":
                self._delta(event["index"], event["delta"])
            elif kind == "message_start":
                self._start(event["message"])
            elif not self.started:
                raise Trouble("broken", f"the stream begins with {kind!r}")
            elif kind == "content_block_start":
                self.blocks.append(dict(event["content_block"]))
            elif kind == "message_delta":
                self._end(event)
            elif kind == "message_stop":
                self.ended = True
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise Trouble(
                "broken", f"an event of the stream is malformed: {type(error).__name__} in {kind!r}"
            ) from error

    def _start(self, message: Mapping[str, Any]) -> None:
        self.started = True
        self.id, self.model = str(message.get("id") or ""), str(message.get("model") or "")
        self.usage = dict(message.get("usage") or {})
        self._diagnosed(message)

    def _delta(self, index: int, delta: Mapping[str, Any]) -> None:
        block = self.blocks[index]
        match delta["type"]:
            case "text_delta":
                self._add(index, "text", delta["text"])
            case "input_json_delta":
                self._add(index, "input_json", delta["partial_json"])
            case "thinking_delta":
                self._add(index, "thinking", delta["thinking"])
            case "signature_delta":
                block["signature"] = delta["signature"]
            case "compaction_delta":
                block.update({k: v for k, v in delta.items() if k != "type"})
            case _:
                pass  # e.g. citations, which nothing we send asks for

    def _add(self, index: int, field: str, part: str) -> None:
        if not isinstance(part, str):
            raise TypeError(f"a piece of {field} is no text")
        self._parts.setdefault((index, field), []).append(part)

    def _end(self, event: Mapping[str, Any]) -> None:
        reason = event["delta"].get("stop_reason")
        if reason is not None:
            self.stop_reason = str(reason)
        self.usage.update({k: v for k, v in (event.get("usage") or {}).items() if v is not None})
        management = event.get("context_management") or {}
        if management.get("applied_edits"):
            self.applied_edits = tuple(management["applied_edits"])
        self._diagnosed(event)

    def _diagnosed(self, body: Mapping[str, Any]) -> None:
        reason = (body.get("diagnostics") or {}).get("cache_miss_reason")
        if reason:
            self.cache_miss = str(reason.get("type", ""))

    def message(self) -> dict[str, Any]:
        """The complete message as one JSON object. Raises Trouble("broken") when it is not complete."""
        if not self.started:
            raise Trouble("broken", "an empty stream")
        if not self.ended or self.stop_reason is None:
            raise Trouble("broken", "the stream ended before the reply did")
        for (index, field), parts in self._parts.items():
            block = self.blocks[index]
            block[field] = "".join([str(block.get(field) or ""), *parts])
        self._parts = {}
        return {"id": self.id, "model": self.model, "content": self.blocks, "stop_reason": self.stop_reason}


async def read_stream(
    events: AsyncIterator[Mapping[str, Any]], on_event: Callable[[], None], reader: StreamReader
) -> dict[str, Any]:
    """Read all events; `on_event` is called for each (a sign of life)."""
    async for event in events:
        on_event()
        reader.take(event)
    return reader.message()


# --- the typed reply --------------------------------------------------------------------------------------------


def reply_of(message: Mapping[str, Any], usage: Mapping[str, Any], *, number: int, used_ids: Collection[str]) -> Reply:
    """Type a complete message. `number` is the step it begins; `used_ids` are ids of calls that were made before."""
    blocks: list[Block] = []
    taken = set(used_ids)
    for index, raw in enumerate(message["content"] or ()):
        block = _block(raw, f"toolu_s{number}_{index}", taken)
        if block is not None:
            blocks.append(block)
            if isinstance(block, ToolUse):
                taken.add(block.id)
    turn = AssistantTurn(
        blocks=tuple(blocks), stop_reason=str(message["stop_reason"]), message_id=str(message.get("id") or "")
    )
    return Reply(turn=turn, usage=usage_of(usage), model=str(message.get("model") or ""))


def _block(raw: Mapping[str, Any], fresh_id: str, taken: Collection[str]) -> Block | None:
    kind = raw.get("type")
    if kind == "text":
        return Text(text=str(raw.get("text") or ""))
    if kind == "tool_use":
        return _tool_use(raw, fresh_id, taken)
    if kind == "thinking":
        # without a signature it was cut, or is a foreign server's: it cannot go back
        if not raw.get("signature"):
            return None
        return Signed(raw={k: raw[k] for k in ("type", "thinking", "signature") if k in raw})
    if kind in THINKING or kind == "compaction":
        return Signed(raw={k: v for k, v in raw.items() if v is not None})
    return None


def _tool_use(raw: Mapping[str, Any], fresh_id: str, taken: Collection[str]) -> ToolUse:
    call_id = str(raw.get("id") or "")
    if not call_id or _BAD_ID.search(call_id) or call_id in taken:
        call_id = fresh_id
    name = _BAD_ID.sub("_", str(raw.get("name") or ""))[:64] or "unnamed"
    text = raw.get("input_json")
    if text is None:
        value = raw.get("input")
        if isinstance(value, Mapping):
            return ToolUse(id=call_id, name=name, input=dict(value))
        return ToolUse(id=call_id, name=name, input={}, broken=json.dumps(value)[:500])
    if not text.strip():
        return ToolUse(id=call_id, name=name, input={})
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        return ToolUse(id=call_id, name=name, input={}, broken=text[:500])
    return ToolUse(id=call_id, name=name, input=value)


def usage_of(body: Mapping[str, Any]) -> Usage:
    """Typed usage. A field the server left out or null is unknown; a missing cache field beside known input is zero."""

    def number(name: str) -> int | None:
        value = body.get(name)
        return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else None

    uncached = number("input_tokens")
    created = number("cache_creation_input_tokens")
    by_ttl = body.get("cache_creation") or {}
    hour = int(by_ttl.get("ephemeral_1h_input_tokens") or 0)
    extra_input, extra_output = _compaction_iterations(body.get("iterations"))
    details = body.get("output_tokens_details") or {}
    return Usage(
        uncached=uncached,
        write_5m=None if created is None else max(0, created - hour),
        write_1h=None if created is None else hour,
        read=number("cache_read_input_tokens"),
        output=number("output_tokens"),
        thinking=details.get("thinking_tokens"),
        extra_input=extra_input,
        extra_output=extra_output,
    )


def _compaction_iterations(iterations: Any) -> tuple[int, int]:
    """Tokens of server-side compactions: they stand in no other figure."""
    given = received = 0
    for item in iterations or ():
        if isinstance(item, Mapping) and item.get("type") == "compaction":
            given += int(item.get("input_tokens") or 0) + int(item.get("cache_read_input_tokens") or 0)
            given += int(item.get("cache_creation_input_tokens") or 0)
            received += int(item.get("output_tokens") or 0)
    return given, received
