"""The API itself: a request in, an answer out. No sockets here; the server does the sending."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from tests.fake_api import answering, canon, context_edits, fields, prompt, signing, thinking, turns, validation
from tests.fake_api.answering import Answered
from tests.fake_api.cache import PromptCache
from tests.fake_api.catalog import ModelSpec
from tests.fake_api.clock import Clock
from tests.fake_api.compaction import check_request as check_compaction_request
from tests.fake_api.compaction import check_signatures
from tests.fake_api.conversation import Turns, conversation_key
from tests.fake_api.diagnosis import Diagnosis
from tests.fake_api.errors import Refused, invalid
from tests.fake_api.faults import Fault, FaultCase, FaultPlan
from tests.fake_api.ledger import Charge
from tests.fake_api.limits import RateLimit
from tests.fake_api.listing import list_models, one_model
from tests.fake_api.models.base import Call, Model
from tests.fake_api.persona import Persona
from tests.fake_api.prompt import Message, Prompt, PromptMemo
from tests.fake_api.record import RecordedRequest, StoredBody

MAX_BODY_BYTES = 32 * 1024 * 1024
VERSIONS = frozenset({"2023-06-01", "2026-10-21"})


@dataclass(slots=True)
class Incoming:
    """A request as read from the wire. Header names are in lower case."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def betas(self) -> frozenset[str]:
        return frozenset(name.strip() for name in self.headers.get("anthropic-beta", "").split(",") if name.strip())


@dataclass(slots=True)
class Outgoing:
    """An answer. `begin` is to be called when its first byte leaves, `end` with whether all of it did."""

    status: int
    headers: dict[str, str]
    body: bytes = b""
    stream: list[bytes] | None = None
    fault: Fault | None = None
    begin: Callable[[], None] = lambda: None
    end: Callable[[bool], None] = lambda _: None


@dataclass(slots=True)
class Settings:
    """All that a test may choose."""

    specs: dict[str, ModelSpec]
    models: Mapping[str, Model]
    """By model id; `*` for all others."""
    api_key: str = "sk-ant-fake"
    persona: Persona = field(default_factory=Persona)
    faults: FaultPlan = field(default_factory=FaultPlan)
    limit: RateLimit = field(default_factory=RateLimit)
    max_deltas: int = 6
    think: bool = True
    """Replies start with a thinking block when thinking is on and the model wrote none."""
    keep_bodies: bool = True


@dataclass(slots=True)
class Read:
    """A request that passed all checks."""

    body: dict[str, Any]
    spec: ModelSpec
    messages: list[Message]
    """As sent, with list content."""
    shown: list[Message]
    """As the model will see them."""
    digests: Mapping[int, bytes]
    transformations: list[dict[str, str]]
    prefix: bytes
    """Digest of the whole conversation as sent: what thinking of the reply is bound to."""
    prompt: Prompt = field(init=False)
    edited: context_edits.Edited = field(init=False)
    original_tokens: int = 0


class Service:
    """Holds everything the fake remembers. Called from one thread only."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self.settings = settings
        self.clock = clock
        self.cache = PromptCache(clock)
        self.memo = PromptMemo()
        self.turns = Turns()
        self.diagnosis = Diagnosis()
        self.requests: list[RecordedRequest] = []
        self.charges: list[Charge] = []
        self.problems: list[str] = []
        """Failures of the fake itself: an exhausted script, a model that raised. A test should find none."""
        self.in_flight = 0
        self._number = 0
        self._last_body: dict[str, tuple[StoredBody, bytes]] = {}
        self._paused: set[bytes] = set()

    def handle(self, incoming: Incoming) -> Outgoing:
        """Answer one request; never raises."""
        started = time.thread_time()
        record = self._record(incoming)
        request_id = f"req_{hashlib.sha256(f'{record.index}:{record.at_s}'.encode()).hexdigest()[:24]}"
        headers = {"request-id": request_id, "anthropic-organization-id": "00000000-0000-4000-8000-000000000000"}
        headers.update(self.settings.limit.headers())
        try:
            outgoing = self._route(incoming, record)
        except Refused as refused:
            outgoing = self._refusal(refused, record, request_id)
        except Exception as problem:  # noqa: BLE001 - the client gets a 500 and the test finds the reason in `problems`
            self.problems.append(f"{type(problem).__name__}: {problem}")
            outgoing = self._refusal(Refused(500, f"Internal server error: {problem}"), record, request_id)
        outgoing.headers = {**headers, **outgoing.headers}
        record.status = outgoing.status
        record.fault = outgoing.fault.kind if outgoing.fault else None
        record.handling_s = time.thread_time() - started
        return outgoing

    def _record(self, incoming: Incoming) -> RecordedRequest:
        creates = incoming.method == "POST" and incoming.path == "/v1/messages"
        number = -1
        if creates:
            number, self._number = self._number, self._number + 1
        record = RecordedRequest(
            index=len(self.requests),
            number=number,
            at_s=time.time(),
            clock_s=self.clock.now_s(),
            method=incoming.method,
            path=incoming.path,
            query=incoming.query,
            headers=incoming.headers,
            stored=StoredBody(b"" if not self.settings.keep_bodies else incoming.body, None, None),
        )
        self.requests.append(record)
        return record

    def _refusal(self, refused: Refused, record: RecordedRequest, request_id: str) -> Outgoing:
        body = refused.body(request_id)
        record.error = body["error"]  # type: ignore[assignment]
        headers = {"content-type": "application/json", **refused.headers}
        return Outgoing(refused.status, headers, orjson.dumps(body))

    def _route(self, incoming: Incoming, record: RecordedRequest) -> Outgoing:
        persona = self.settings.persona
        self._check_head(incoming)
        match incoming.method, incoming.path.strip("/").split("/"):
            case "POST", ["v1", "messages"]:
                return self._create(incoming, record)
            case "POST", ["v1", "messages", "count_tokens"] if persona.has_count_tokens:
                return self._count(incoming, record)
            case "GET", ["v1", "models"] if persona.has_models:
                return _json(list_models(self.settings, incoming.query))
            case "GET", ["v1", "models", name] if persona.has_models:
                return _json(one_model(self.settings, name))
        raise Refused(404, "Not Found")

    def _check_head(self, incoming: Incoming) -> None:
        persona = self.settings.persona
        if persona.needs_key:
            given = incoming.headers.get("x-api-key")
            bearer = incoming.headers.get("authorization", "")
            if given is None and not bearer:
                raise Refused(401, "x-api-key header is required")
            if given is not None and given != self.settings.api_key:
                raise Refused(401, "invalid x-api-key")
            if given is None and bearer != f"Bearer {self.settings.api_key}":
                raise Refused(401, "invalid bearer token")
        if not persona.strict:
            return
        version = incoming.headers.get("anthropic-version")
        if version is None:
            raise invalid("anthropic-version: header is required")
        if version not in VERSIONS:
            raise invalid(f'anthropic-version: "{version}" is not a valid version')
        unknown = sorted(incoming.betas - fields.KNOWN_BETAS)
        if unknown:
            raise invalid(
                f"Unexpected value(s) {', '.join(f'`{u}`' for u in unknown)} for the `anthropic-beta` header."
            )
        if len(incoming.body) > MAX_BODY_BYTES:
            raise Refused(413, "Request exceeds the maximum size")

    def _parse(self, incoming: Incoming, record: RecordedRequest, *, counting: bool) -> Read:
        persona, strict = self.settings.persona, self.settings.persona.strict
        try:
            body = orjson.loads(incoming.body)
        except orjson.JSONDecodeError as error:
            raise invalid(f"The request body is not valid JSON: {error}") from error
        version = incoming.headers.get("anthropic-version", "")
        if strict:
            validation.check_fields(body, counting=counting, version=version)
            validation.check_betas(body, incoming.betas)
        spec = self._spec(body["model"])
        digests: dict[int, bytes] = {}
        if strict:
            validation.check_settings(body, spec, incoming.betas)
            validation.check_tools(body)
            validation.check_system(body)
            digests = turns.check_messages(body["messages"], spec, incoming.betas, self.memo.valid)
            validation.check_breakpoints(body)
        elif (body.get("output_config") or {}).get("format") and persona.structured_outputs == "refused":
            raise invalid("output_config: Extra inputs are not permitted")
        messages = prompt.normalise(body["messages"])
        record.conversation = conversation_key(messages)
        self._keep_body(incoming.body, record)
        transformations: list[dict[str, str]] = []
        prefix = b""
        checked = messages
        if strict:
            check_compaction_request(body, messages)
            turns.check_conversation(messages, spec, may_end_with_assistant=self._may_continue(body, messages))
            check_signatures(messages)
            prefixes, prefix = signing.prefixes(body, messages, self._known(messages, digests))
            result = thinking.check(body, messages, spec, prefixes)
            checked, transformations = result.messages, result.transformations
        return self._edit(Read(body, spec, messages, checked, digests, transformations, prefix))

    def _known(self, messages: list[Message], digests: Mapping[int, bytes]) -> list[tuple[prompt.KnownBlock, ...]]:
        return [self.memo.message(message, digests.get(id(message))) for message in messages]

    def _edit(self, read: Read) -> Read:
        """Apply the context edits of the request and count what is left."""
        body, spec = read.body, read.spec
        read.edited = context_edits.Edited(context_edits.after_compaction(read.shown))
        read.prompt = prompt.build(body, read.edited.messages, spec, self.memo, read.digests)
        read.original_tokens = read.prompt.tokens
        if body.get("context_management") is not None:
            fixed = sum(block.tokens for block in read.prompt.blocks if block.section != "messages")
            base = fixed + read.prompt.overhead_tokens
            sizes: dict[int, list[int]] = {}
            for block in read.prompt.blocks:
                if block.section == "messages":
                    sizes.setdefault(block.message, []).append(block.tokens)
            read.edited = context_edits.apply(
                body, read.edited.messages, base_tokens=base, scale=spec.token_scale, sizes=sizes
            )
            if read.edited.applied:
                read.prompt = prompt.build(body, read.edited.messages, spec, self.memo, read.digests)
        read.shown = read.edited.messages
        return read

    def _spec(self, model: str) -> ModelSpec:
        spec = self.settings.specs.get(model)
        persona = self.settings.persona
        if spec is not None and persona.known_models_only:
            if spec.lifecycle == "retired":
                raise validation.unknown_model(model)
            return spec
        if persona.known_models_only:
            raise validation.unknown_model(model)
        base = spec or ModelSpec(id=model, line="custom", released="1970-01-01")
        return replace(
            base,
            window_tokens=persona.n_ctx or base.window_tokens,
            thinking_types=frozenset({"disabled"}),
            thinks_by_default=False,
            binds_thinking=False,
            context_edits=(),
        )

    def _may_continue(self, body: Mapping[str, Any], messages: list[Message]) -> bool:
        return body.get("compaction") is not None or _content_mark(messages[-1]["content"]) in self._paused

    def _keep_body(self, data: bytes, record: RecordedRequest) -> None:
        if not self.settings.keep_bodies:
            return
        base = self._last_body.get(record.conversation)
        record.stored = StoredBody(data, *(base or (None, None)))
        self._last_body[record.conversation] = (record.stored, data)

    def _check_window(self, read: Read) -> None:
        if read.prompt.tokens > read.spec.window_tokens:
            raise invalid(f"prompt is too long: {read.prompt.tokens} tokens > {read.spec.window_tokens} maximum")

    def _count(self, incoming: Incoming, record: RecordedRequest) -> Outgoing:
        read = self._parse(incoming, record, counting=True)
        record.prompt_tokens = read.prompt.tokens
        answer: dict[str, Any] = {"input_tokens": read.prompt.tokens}
        if read.body.get("context_management") is not None:
            answer["context_management"] = {"original_input_tokens": read.original_tokens}
        return _json(answer)

    def _create(self, incoming: Incoming, record: RecordedRequest) -> Outgoing:
        read = self._parse(incoming, record, counting=False)
        conversation = record.conversation
        turn = self.turns.turn(conversation, read.messages)
        record.prompt_tokens = read.prompt.tokens
        if read.edited.applied:
            record.visible = read.shown
        compaction = answering.due_compaction(read)
        if compaction is None:
            self._check_window(read)
        self.settings.limit.check(self.clock, self.in_flight, read.prompt.tokens)
        case = FaultCase(number=record.number, conversation=conversation, turn=turn, body=read.body)
        fault = self.settings.faults.choose(case)
        if fault is not None and fault.kind in {"status", "reset_before", "html"}:
            return self._fault_before(fault, record)
        call = Call(
            number=record.number,
            body=read.body,
            spec=read.spec,
            messages=read.shown,
            conversation=conversation,
            turn=turn,
            thinking_active=self.settings.persona.thinking and thinking.is_active(read.body, read.spec),
            memory=self.turns.memory.setdefault((conversation, read.spec.id), {}),
        )
        model = self.settings.models.get(read.spec.id) or self.settings.models["*"]
        mark = hashlib.sha256(incoming.body + str(record.number).encode()).hexdigest()
        answered = answering.answer(self, read, call, model, mark, incoming.betas)
        record.reply = answered.message
        return self._send(read, record, answered, fault)

    def _fault_before(self, fault: Fault, record: RecordedRequest) -> Outgoing:
        if fault.kind == "status":
            headers = {} if fault.retry_after_s is None else {"retry-after": f"{fault.retry_after_s:g}"}
            refused = Refused(
                fault.status, fault.message or _STATUS_TEXT.get(fault.status, "error"), code=fault.code, headers=headers
            )
            outgoing = self._refusal(refused, record, f"req_fault{record.number}")
        elif fault.kind == "html":
            page = b"<!DOCTYPE html>\n<html><head><title>Portal</title></head><body>Please sign in.</body></html>\n"
            outgoing = Outgoing(fault.status if fault.status != 529 else 200, {"content-type": "text/html"}, page)
            record.error = {"type": "html", "message": "a page of HTML"}
        else:
            outgoing = Outgoing(0, {})
            record.error = {"type": "reset", "message": "connection reset before the first byte"}
        outgoing.fault = fault
        return outgoing

    def _send(self, read: Read, record: RecordedRequest, answered: Answered, fault: Fault | None) -> Outgoing:
        if answered.message["stop_reason"] == "pause_turn":
            self._paused.add(_content_mark(answered.message["content"]))

        def begin() -> None:
            for use in answered.uses:
                self.cache.commit(use)
            for charge in answered.charges:
                charge.request = record.number
                charge.conversation = record.conversation
                self.charges.append(charge)

        def end(complete: bool) -> None:
            for charge in answered.charges:
                charge.delivered = complete

        if fault is not None:
            record.error = {"type": fault.kind, "message": "the answer was broken on purpose"}
        if read.body.get("stream"):
            chunks = answering.stream(answered, self.settings)
            headers = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}
            return Outgoing(200, headers, stream=chunks, fault=fault, begin=begin, end=end)
        body = orjson.dumps(answering.shown(answered.message, self.settings))
        return Outgoing(200, {"content-type": "application/json"}, body, fault=fault, begin=begin, end=end)


_STATUS_TEXT: Mapping[int, str] = {
    401: "invalid x-api-key",
    403: "Your API key does not have permission to use the specified resource.",
    408: "Request timed out",
    429: "This request would exceed your organization's rate limit.",
    500: "Internal server error",
    503: "Service unavailable",
    529: "Overloaded",
}


def _json(value: object) -> Outgoing:
    return Outgoing(200, {"content-type": "application/json"}, orjson.dumps(value))


def _content_mark(content: object) -> bytes:
    blocks = [canon.plain(block) for block in content]  # type: ignore[attr-defined]
    return hashlib.sha256(orjson.dumps(blocks, option=orjson.OPT_SORT_KEYS)).digest()
