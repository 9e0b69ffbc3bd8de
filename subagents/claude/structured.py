"""Questions to a model that are answered with one JSON object: plans and answers, not explorations.

Each is a conversation with a transcript of its own, so a reply is on disk before anything acts on it, and the same
question asked again after a crash is answered from the record. Endpoints differ in what they offer: a format with a
schema, else a tool with that schema, else JSON in the text. Whatever comes is read as untrusted input, and what does
not hold is returned once, with the reasons.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, TypeVar

from subagents.claude.agent import Sender
from subagents.claude.assemble import FixedPart, assemble
from subagents.claude.attempts import until_answered
from subagents.claude.brake import Brake
from subagents.claude.history import Edits
from subagents.claude.ledger import Entry, EntryKind
from subagents.claude.messages import AssistantTurn, Reply, Request, ToolResult, Usage, UserTurn
from subagents.claude.replies import StreamReader, reply_of, usage_of
from subagents.claude.report import setting_of
from subagents.claude.stops import Trouble, as_error, stop_action
from subagents.claude.tokens import TokenMeter, raw_tokens
from subagents.claude.transcript import Transcript

Mode = Literal["format", "tool", "text"]
MODES: tuple[Mode, ...] = ("format", "tool", "text")
TOOL = "deliver"
MOST_REPLIES = 2
"""The first, and the one after it was returned with reasons."""
MOST_PAUSES = 3

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Reading(Generic[T]):
    """What a reply says. `reasons`: what does not hold, in words its author can act on; `value` is the rest of it."""

    value: T | None
    reasons: tuple[str, ...] = ()


Read = Callable[[Mapping[str, Any]], Reading[T]]


@dataclass(slots=True, kw_only=True)
class Asker:
    """Sends the requests of one such conversation. `name` is that of its transcript."""

    name: str
    kind: EntryKind
    fixed: FixedPart
    schema: Mapping[str, Any]
    sender: Sender
    brake: Brake
    meter: TokenMeter
    transcript: Transcript
    on_entry: Callable[[Entry], None]
    mode: Mode = "format"
    window_tokens: int = 0

    async def ask(self, opening: str, read: Read[T]) -> Reading[T]:
        """The reading of the last reply. A conversation that is on record goes on where it stands.

        Raises EngineError when the endpoint refuses or fails.
        """
        transcript = self.transcript
        if transcript.is_new:
            setting = setting_of(self._shaped(), window_tokens=self.window_tokens, budget_tokens=self.window_tokens)
            transcript.begin(opening, model=self.fixed.model, fixed_hash="", edits=Edits(), setting=setting)
        transcript.settle()
        pauses = 0
        while True:
            pair = transcript.open_pair
            turn = pair.assistant if pair is not None and pair.assistant.stop_reason != "pause_turn" else None
            turn = turn or await self._turn()
            match stop_action(turn.stop_reason):
                case "refused":
                    return Reading(None, ("the model refused to answer",))
                case "go_on" if pauses < MOST_PAUSES:
                    pauses += 1
                    continue
                case "cut" | "full":
                    reading: Reading[T] = Reading(None, ("the reply was cut at the output limit: be much shorter",))
                case _:
                    reading = _read(turn, read)
            if not reading.reasons or transcript.history.next_number >= MOST_REPLIES:
                return reading
            self._return(turn, reading.reasons)

    def _return(self, turn: AssistantTurn, reasons: tuple[str, ...]) -> None:
        said = "\n".join(
            ["This cannot be used as it is:", *(f"- {r}" for r in reasons[:20]), "Give the whole of it again, mended."]
        )
        results = tuple(
            ToolResult(tool_use_id=call.id, tool=call.name, text="not accepted", is_error=True) for call in turn.calls
        )
        self.transcript.close(UserTurn(results=results, notices=(said,)), self.transcript.history.edits, seconds=0.0)

    async def _turn(self) -> AssistantTurn:
        """One complete reply, durable. Steps down to what the endpoint takes when it refuses the form asked for."""
        while True:
            try:
                return await self._sent(assemble(self._shaped(), self.transcript.history))
            except Trouble as trouble:
                further = MODES.index(self.mode) + 1
                if trouble.kind != "bad_request" or further == len(MODES) or self.transcript.history.pairs:
                    raise as_error(trouble) from trouble
                self.mode = MODES[further]

    def _shaped(self) -> FixedPart:
        schema = dict(self.schema)
        if self.mode == "format":
            output = dict(self.fixed.extra.get("output_config", {}))
            output["format"] = {"type": "json_schema", "schema": schema}
            return replace(self.fixed, extra={**self.fixed.extra, "output_config": output})
        if self.mode == "tool":
            tool = {"name": TOOL, "description": "Hand in the result, once.", "input_schema": schema}
            return replace(self.fixed, tools=(tool,), role_prompt=f"{self.fixed.role_prompt}\n\n{_BY_TOOL}")
        return replace(
            self.fixed, role_prompt=f"{self.fixed.role_prompt}\n\n{_BY_TEXT}\n\n{json.dumps(schema, sort_keys=True)}"
        )

    async def _sent(self, request: Request) -> AssistantTurn:
        """Send until there is a complete reply. What failed is accounted for. Raises Trouble."""
        size = raw_tokens(request.body["messages"]) + raw_tokens(request.body.get("system", []))
        history = self.transcript.history

        async def attempt(reader: StreamReader) -> Reply:
            async with self.brake.passing():
                self.transcript.sent(self._entry(Usage(), "cut", size))
                message, headers = await self.sender.send(request, reader, _nothing, _nothing)
            self.brake.succeeded(headers)
            return reply_of(message, reader.usage, number=history.next_number, used_ids=self.transcript.used_ids)

        def failed(trouble: Trouble, reader: StreamReader) -> None:
            if not reader.started and not trouble.may_be_charged:
                self.transcript.refused()
                return
            usage = replace(usage_of(reader.usage), output=None) if reader.started else Usage()
            self._account(self._entry(usage, "cut", size), durable=True)

        reply = await until_answered(attempt, brake=self.brake, failed=failed)
        self.meter.learn(raw=size, reported=reply.usage.input_total)
        entry = self._entry(reply.usage, self.kind, size)
        self.transcript.reply(reply, entry)
        self._account(entry, durable=False)
        return self.transcript.history.pairs[-1].assistant

    def _entry(self, usage: Usage, kind: EntryKind, size: int) -> Entry:
        return Entry(
            task=self.name,
            turn=self.transcript.history.next_number,
            kind=kind,
            usage=usage,
            bound_input=self.meter.bound(size),
            bound_output=self.fixed.max_tokens,
        )

    def _account(self, entry: Entry, *, durable: bool) -> None:
        if durable:
            self.transcript.cost(entry)
        self.on_entry(entry)


def _nothing() -> None:
    """Nobody waits for a sign of life of the coordinator's own requests: the client's time-out ends them."""


_BY_TOOL = f"Hand in the result by calling the tool `{TOOL}` once; write nothing else."
_BY_TEXT = "Reply with one JSON object that keeps to this JSON schema, and nothing else:"


def _read(turn: AssistantTurn, read: Read[T]) -> Reading[T]:
    for call in turn.calls:
        if call.name == TOOL and not call.broken:
            return read(call.input)
    value = json_object(turn.text)
    if value is None:
        return Reading(None, ("there is no complete JSON object in the reply",))
    return read(value)


def json_object(text: str) -> Mapping[str, Any] | None:
    """The first complete JSON object of a text, whatever stands around it."""
    decoder = json.JSONDecoder()
    at = text.find("{")
    while at >= 0:
        try:
            value, _ = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, dict):
            return value
        at = text.find("{", at + 1)
    return None
