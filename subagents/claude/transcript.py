"""The durable record of one subagent's conversation: messages as sent and received, appended and never rewritten.

A reply is on disk before anything acts on it; each tool result is on disk when it is there; the record that closes a
step carries notices, state block and edits. So after a crash at any instant at most one model call is repeated, and no
tool result is lost. Results that equal their evidence are stored once, as evidence, and named here.

    open    opening text, model, hash of the fixed part; a later one begins the conversation anew
    reply   blocks as received, usage
    result  one tool result of an open step (only when several run side by side)
    user    closes the step: its results not yet recorded, notices, state block, edits, seconds (synced by the next)
    edit    edits made because a request did not fit; replaces the newest state block
    sent    a request is about to leave: if nothing follows, a crash lost its reply, and its cost is unknown, not zero
    refused it cost nothing after all
    cost    usage of a request that gave no reply of the conversation (cut streams, retries)
    end     how the task ended; at a limit, a later process goes on from here
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Protocol

from manifests.errors import StateError
from subagents.claude.history import Edits, History
from subagents.claude.ledger import Entry, entry_from_json, entry_to_json
from subagents.claude.messages import (
    AssistantTurn,
    Pair,
    Reply,
    Signed,
    ToolResult,
    UserTurn,
    block_from_json,
    block_to_json,
    result_from_json,
    result_to_json,
)
from subagents.claude.protocol import signature_key


class Log(Protocol):
    """Where records go: durable when `append` returns. Source: manifests.jsonl."""

    def append(self, body: Mapping[str, object], *, sync: bool = True) -> int: ...


FetchEvidence = Callable[[str], bytes]
"""Bytes of an evidence reference. Raises StateError for one that is not there."""


def no_evidence(ref: str) -> bytes:
    raise StateError(f"evidence {ref} is not there", hint="the session is damaged; `leadline doctor` says more")


@dataclass(slots=True)
class Transcript:
    """The record in memory and on disk. `history` is what `assemble` needs; the last pair may be open."""

    log: Log
    evidence: FetchEvidence = no_evidence
    history: History = field(default_factory=lambda: History(opening=""))
    results: dict[str, ToolResult] = field(default_factory=dict)
    """Results of the open step that are on disk already, by call."""
    entries: list[Entry] = field(default_factory=list)
    pending: Entry | None = None
    """The request that left last, as long as nothing is known of its end."""
    signed: set[str] = field(default_factory=set)
    used_ids: set[str] = field(default_factory=set)
    seconds: float = 0.0
    """Time of earlier processes on this task."""
    ended: str = ""
    at_limit: bool = False
    """It ended at a limit, with a conversation that can go on."""
    fixed_hash: str = ""
    model: str = ""

    @property
    def is_new(self) -> bool:
        return not self.history.opening

    @property
    def open_pair(self) -> Pair | None:
        """The newest step while it is not closed yet."""
        pairs = self.history.pairs
        return pairs[-1] if pairs and pairs[-1].user is None else None

    # --- writing ---

    def begin(
        self, opening: str, *, model: str, fixed_hash: str, edits: Edits, setting: Mapping[str, object] | None = None
    ) -> None:
        """`setting` is what reports need of the fixed part and the window; the loop never reads it."""
        body = {
            "k": "open",
            "opening": opening,
            "model": model,
            "fixed": fixed_hash,
            "edits": _edits_json(edits),
            "setting": dict(setting or {}),
        }
        self.log.append(body)
        self._take(body)

    def reply(self, reply: Reply, entry: Entry) -> None:
        """Durable before anything acts on it. A paused reply is continued by the next one under the same number."""
        number = self._number_of_next_reply()
        body = {
            "k": "reply",
            "n": number,
            "id": reply.turn.message_id,
            "stop": reply.turn.stop_reason,
            "blocks": [block_to_json(block) for block in reply.turn.blocks],
            "entry": entry_to_json(entry),
        }
        self.log.append(body)
        self._take(body)

    def result(self, result: ToolResult) -> None:
        """One result of the open step, while others still run.

        Not synced: a process that dies loses none, and after a power cut the call, which only reads, is made again.
        """
        body = {"k": "result", **self._result_json(result)}
        self.log.append(body, sync=False)
        self.results[result.tool_use_id] = result

    def close(self, user: UserTurn, edits: Edits, *, seconds: float) -> None:
        """Close the open step.

        Not synced: a process that dies loses nothing, and before anything that follows is acted on, the next reply is
        synced and this with it. After a power cut in between, calls that only read are made again, and one request.
        """
        body: dict[str, object] = {"k": "user", "n": self.history.next_number - 1, "s": round(seconds, 3)}
        fresh = [self._result_json(r) for r in user.results if r.tool_use_id not in self.results]
        if fresh:
            body["results"] = fresh
        if user.notices:
            body["notices"] = list(user.notices)
        if user.state:
            body["state"], body["whole"] = user.state, user.state_whole
        if edits != self.history.edits:
            body["edits"] = _edits_json(edits, before=self.history.edits)
        self.log.append(body, sync=False)
        self._close(user, edits)
        self.seconds = seconds

    def edit(self, edits: Edits, state: str) -> None:
        """Edits outside a step's end; `state` takes the place of the newest state block."""
        body = {"k": "edit", "edits": _edits_json(edits, before=self.history.edits), "state": state}
        self.log.append(body)
        self._take(body)

    def cost(self, entry: Entry) -> None:
        body = {"k": "cost", "entry": entry_to_json(entry)}
        self.log.append(body)
        self._take(body)

    def sent(self, entry: Entry) -> None:
        """Not synced: it is for a process that dies; a power cut may lose the bound of one request."""
        self.log.append({"k": "sent", "entry": entry_to_json(entry)}, sync=False)
        self.pending = entry

    def refused(self) -> None:
        """The request that left last cost nothing: it was refused before a model saw it."""
        self.log.append({"k": "refused"}, sync=False)
        self.pending = None

    def settle(self) -> None:
        """Put on record that the reply to the last request of an earlier process is lost."""
        if self.pending is not None:
            self.cost(self.pending)

    def end(self, status: str, why: str, *, at_limit: bool = False) -> None:
        body: dict[str, object] = {"k": "end", "status": status, "why": why}
        if at_limit:
            body["limit"] = True
        self.log.append(body)
        self._take(body)

    def _result_json(self, result: ToolResult) -> dict[str, object]:
        body = result_to_json(result)
        if result.tool == self._called(result.tool_use_id):
            del body["tool"]
        if result.evidence and len(result.text) > 400 and self._is_evidence(result):
            del body["text"]
            body["same"] = True
        return body

    def _called(self, call_id: str) -> str:
        """Name of the tool that the open step called by this id; empty for none."""
        pair = self.open_pair
        return next((call.name for call in pair.assistant.calls if call.id == call_id), "") if pair else ""

    def _is_evidence(self, result: ToolResult) -> bool:
        import hashlib

        sha = hashlib.sha256(result.text.encode("utf-8", "surrogatepass")).hexdigest()
        return result.evidence == f"sha256:{sha}"

    def _number_of_next_reply(self) -> int:
        open_pair = self.open_pair
        return open_pair.number if open_pair is not None else self.history.next_number

    # --- reading ---

    def load(self, bodies: Iterable[Mapping[str, Any]]) -> Transcript:
        """Take in all records, in order. Raises StateError for a record that cannot be ours."""
        for body in bodies:
            try:
                self._take(body)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise StateError(
                    f"a transcript record of kind {body.get('k')!r} is malformed: {error}",
                    hint="`leadline doctor` says what can be saved",
                ) from error
        return self

    @staticmethod
    def entry_of(body: Mapping[str, Any]) -> Entry:
        """The ledger's entry in a record that has one. Raises StateError for a malformed one."""
        try:
            return entry_from_json(body["entry"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise StateError(
                f"a transcript's ledger entry is malformed: {error}", hint="`leadline doctor` says what can be saved"
            ) from error

    def _take(self, body: Mapping[str, Any]) -> None:
        match body["k"]:
            case "open":
                edits = _edits_from(body["edits"], Edits())
                self.history = replace(self.history, opening=str(body["opening"]), pairs=(), edits=edits)
                self.results, self.ended, self.at_limit = {}, "", False
                self.model, self.fixed_hash = str(body["model"]), str(body["fixed"])
            case "reply":
                self._take_reply(body)
            case "result":
                result = self._result_from(body)
                self.results[result.tool_use_id] = result
            case "user":
                self._take_user(body)
            case "edit":
                self._take_edit(body)
            case "sent":
                self.pending = entry_from_json(body["entry"])
            case "refused":
                self.pending = None
            case "cost":
                self.entries.append(entry_from_json(body["entry"]))
                self.pending = None
            case "evidence":
                pass  # raw bytes, found by their hash
            case "end":
                self.ended, self.at_limit = str(body["status"]), bool(body.get("limit", False))
                self.pending = None
            case other:
                raise ValueError(f"unknown kind {other!r}")

    def _take_reply(self, body: Mapping[str, Any]) -> None:
        blocks = tuple(block_from_json(block) for block in body["blocks"])
        open_pair = self.open_pair
        if open_pair is not None:
            blocks = (*open_pair.assistant.blocks, *blocks)
            self.history = replace(self.history, pairs=self.history.pairs[:-1])
        turn = AssistantTurn(blocks=blocks, stop_reason=str(body["stop"]), message_id=str(body["id"]))
        number = int(body["n"])
        if number != self.history.next_number:
            raise ValueError(f"step {number} where {self.history.next_number} belongs")
        self.history = replace(self.history, pairs=(*self.history.pairs, Pair(number=number, assistant=turn)))
        self.entries.append(entry_from_json(body["entry"]))
        self.pending = None
        self.used_ids.update(call.id for call in turn.calls)
        self.signed.update(signature_key(b.raw) for b in blocks if isinstance(b, Signed) and b.is_thinking)
        self.ended, self.at_limit = "", False

    def _take_user(self, body: Mapping[str, Any]) -> None:
        open_pair = self.open_pair
        if open_pair is None or open_pair.number != int(body["n"]):
            raise ValueError(f"step {body['n']} is closed without a reply")
        for item in body.get("results", ()):
            result = self._result_from(item)
            self.results[result.tool_use_id] = result
        user = UserTurn(
            results=tuple(self.results[call.id] for call in open_pair.assistant.calls),
            notices=tuple(str(n) for n in body.get("notices", ())),
            state=str(body.get("state", "")),
            state_whole=bool(body.get("whole", False)),
        )
        self.seconds = float(body["s"])
        self._close(user, _edits_from(body.get("edits", {}), self.history.edits))

    def _close(self, user: UserTurn, edits: Edits) -> None:
        pairs = self.history.pairs
        closed = replace(pairs[-1], user=user)
        self.history = replace(self.history, pairs=(*pairs[:-1], closed), edits=edits)
        self.results = {}

    def _take_edit(self, body: Mapping[str, Any]) -> None:
        edits = _edits_from(body["edits"], self.history.edits)
        pairs = self.history.pairs
        if pairs and pairs[-1].user is not None:
            user = replace(pairs[-1].user, state=str(body["state"]), state_whole=True)
            pairs = (*pairs[:-1], replace(pairs[-1], user=user))
        self.history = replace(self.history, pairs=pairs, edits=edits)

    def _result_from(self, body: Mapping[str, Any]) -> ToolResult:
        result = result_from_json({"text": "", "tool": self._called(str(body["id"])), **body})
        if body.get("same"):
            data = self.evidence(result.evidence)
            result = replace(result, text=data.decode("utf-8", "surrogatepass"))
        return result


def _edits_json(edits: Edits, *, before: Edits | None = None) -> dict[str, object]:
    body: dict[str, object] = asdict(edits)
    if before is not None:
        body = {name: value for name, value in body.items() if value != getattr(before, name)}
    return body


def _edits_from(body: Mapping[str, Any], before: Edits) -> Edits:
    return before.advanced(**{name: body[name] for name in asdict(before) if name in body})


def redact_record(body: object, redact: Callable[[object], object]) -> object:
    """Redact a transcript record, except what must come back untouched: blocks with a signature.

    Nothing secret is in those: what a subagent is shown was redacted before it was shown.
    """
    if not isinstance(body, Mapping) or body.get("k") in _WITHOUT_TEXT:
        return body
    if "blocks" not in body:
        return redact(body)
    blocks = body["blocks"]
    assert isinstance(blocks, Sequence)
    whole = ("blocks", "entry")
    rest = redact({name: value for name, value in body.items() if name not in whole})
    assert isinstance(rest, dict)
    rest["blocks"] = [b if b.get("type") not in ("text", "tool_use") else redact(b) for b in blocks]
    return {**rest, "entry": body["entry"]} if "entry" in body else rest


_WITHOUT_TEXT = ("sent", "refused", "cost")
"""Records of numbers and names of ours only."""
