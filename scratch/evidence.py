"""Raw tool output, kept once under the hash of its bytes, so that each finding can be traced to what it came from.

The bytes are redacted first; the hash is of what is stored. They and where they came from (tool, version, arguments,
time, task) are a record in the transcript of the task, or in the session's `evidence.jsonl`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from threading import Lock

from manifests.envelope import DOCTOR
from manifests.errors import StateError, UsageError
from manifests.fields import Fields, Malformed, timestamp
from manifests.jsonl import AppendLog
from manifests.sessions import EVIDENCE_LOG, EVIDENCE_SCHEMA, Session
from scratch.pieces import EVIDENCE_LIMIT_BYTES, PAYLOAD, Pieces, name_of_file, payload

_PREFIX = "sha256:"
_REFERENCE = re.compile(r"(?:sha256:)?([0-9a-f]{4,64})")
_SHORTEST = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceRecord:
    """Where some evidence came from."""

    reference: str
    tool: str
    tool_version: str
    arguments: Mapping[str, object]
    at: str
    task: str
    size_bytes: int

    def to_dict(self) -> dict[str, object]:
        return {
            "reference": self.reference,
            "tool": self.tool,
            "tool_version": self.tool_version,
            "arguments": dict(self.arguments),
            "at": self.at,
            "task": self.task,
            "size_bytes": self.size_bytes,
        }

    @staticmethod
    def from_dict(value: object) -> EvidenceRecord:
        fields = Fields(value, "evidence")
        return EvidenceRecord(
            reference=fields.match("reference", re.compile(r"sha256:[0-9a-f]{64}")),
            tool=fields.text("tool", limit=200),
            tool_version=fields.text("tool_version", limit=200),
            arguments=fields.mapping("arguments", limit=1_000),
            at=fields.time("at"),
            task=fields.text("task", limit=100),
            size_bytes=fields.integer("size_bytes", low=0, high=1 << 40),
        )


class EvidenceStore:
    """The evidence of one session. Threads may share it."""

    def __init__(self, session: Session, *, redact: Callable[[bytes], bytes]) -> None:
        self._session = session
        self._redact = redact
        self._pieces = Pieces(session)
        self._holders: dict[str, str] = {}
        """Digest -> name of the log or file that holds it, of what was put here."""
        self._described: set[bytes] = set()
        self._mutex = Lock()

    def put(
        self,
        data: bytes,
        *,
        tool: str,
        tool_version: str = "",
        arguments: Mapping[str, object] | None = None,
        task: str = "",
        at: str | None = None,
        sync: bool = True,
    ) -> str:
        """Store and return `sha256:<hex>`. The same bytes are stored once.

        If the task has a transcript, they are on disk with whatever is synced there next, so before any record of it
        that refers to them; else when this returns, unless `sync=False`. Who refers to them elsewhere: `settle` first.
        """
        stored = self._redact(data)
        if len(stored) > EVIDENCE_LIMIT_BYTES:
            raise ValueError(f"evidence of {len(stored):,} bytes; at most {EVIDENCE_LIMIT_BYTES:,}")
        digest = hashlib.sha256(stored).hexdigest()
        record = EvidenceRecord(
            reference=_PREFIX + digest,
            tool=tool,
            tool_version=tool_version,
            arguments=dict(arguments or {}),
            at=at or timestamp(),
            task=task,
            size_bytes=len(stored),
        )
        with self._mutex:
            name, log = self._log_for(task)
            holder = self._holders.get(digest) or self._sound_holder(digest)
            if holder is None:
                holder = self._store(record, digest, stored, name, log, sync)
            else:
                if holder != name and sync:
                    self._session.settle(holder)
                self._describe(record, log)
            self._holders[digest] = holder
        return record.reference

    def _log_for(self, task: str) -> tuple[str, AppendLog]:
        name = f"transcripts/{task}.jsonl"
        log = self._session.begun_log(name)
        return (name, log) if log is not None else (EVIDENCE_LOG, self._session.log(EVIDENCE_LOG, EVIDENCE_SCHEMA))

    def _sound_holder(self, digest: str) -> str | None:
        """Where an earlier process put sound bytes; what a damaged disk left is written anew."""
        holder = self._pieces.holder_of(digest, only_before=True)
        try:
            return holder if holder is not None and self._pieces.read(digest) is not None else None
        except StateError:
            return None

    def _store(self, record: EvidenceRecord, digest: str, stored: bytes, name: str, log: AppendLog, sync: bool) -> str:
        """Where it stands from now on."""
        whole = payload(stored)
        if whole:
            self._describe(record, log, whole, sync=sync and name == EVIDENCE_LOG)
            return name
        self._session.write_bytes(name_of_file(digest), stored, label="replace:evidence")
        self._describe(record, log)
        return name_of_file(digest)

    def _describe(
        self, record: EvidenceRecord, log: AppendLog, whole: Mapping[str, str] | None = None, *, sync: bool = False
    ) -> None:
        """Once for each origin; always with the bytes, if they are given. A power cut can cost the newest origin."""
        origin = repr((record.reference, record.tool, record.arguments, record.task)).encode()
        key = hashlib.sha256(origin).digest()
        if whole or key not in self._described:
            body = {name: value for name, value in record.to_dict().items() if name != "reference"}
            first = {"reference": record.reference, **(whole or {})}
            log.append({**first, "k": "evidence", **body}, sync=sync, redact=self._redacted)
            self._described.add(key)

    def _redacted(self, body: object) -> object:
        """Redact all but the bytes, which were redacted before they were hashed."""
        if not isinstance(body, dict):
            return self._session.redact(body)
        first = {name: value for name, value in body.items() if name in PAYLOAD or name == "reference"}
        rest = self._session.redact({name: value for name, value in body.items() if name not in first})
        if not isinstance(rest, dict):
            raise TypeError("redaction made something else of an object")
        return {**first, **rest}

    def settle(self, references: Iterable[str]) -> None:
        """Put these on disk, if they are not yet. Call it before they are named in a file that is not their own."""
        for reference in references:
            digest = reference.removeprefix(_PREFIX)
            holder = self._holders.get(digest) or self._pieces.holder_of(digest)
            if holder is not None and holder.endswith(".jsonl"):
                self._session.settle(holder)

    def get(self, reference: str) -> bytes:
        """The bytes, checked against their hash. The reference may be abbreviated."""
        full = self.resolve(reference)
        data = self._pieces.read(full.removeprefix(_PREFIX))
        if data is None:
            raise self._missing(reference)
        return data

    def has(self, reference: str) -> bool:
        """Whether it stands there; whole or not is for `damage` to say."""
        return self._pieces.holder_of(reference.removeprefix(_PREFIX)) is not None

    def _missing(self, reference: str) -> UsageError:
        self._pieces.check_logs()
        return UsageError(f"there is no evidence {reference!r} in session {self._session.id}", hint=_LIST_HINT)

    def resolve(self, reference: str) -> str:
        """The full reference. UsageError for what is no reference, unknown, or ambiguous."""
        match = _REFERENCE.fullmatch(reference)
        if match is None:
            raise UsageError(
                f"not an evidence reference: {reference[:80]!r}", hint="give `sha256:` and at least four hex digits"
            )
        start = match.group(1)
        if len(start) == 64:
            return _PREFIX + start
        found = self._pieces.beginning_with(start)
        if not found:
            raise self._missing(reference)
        if len(found) > 1:
            names = ", ".join(name[: len(start) + 6] for name in found[:8])
            raise UsageError(f"{len(found)} pieces of evidence match {reference!r}: {names}", hint="give more digits")
        return _PREFIX + found[0]

    def digests(self) -> list[str]:
        """Of all that stands there."""
        return self._pieces.digests()

    def damage(self) -> Iterator[str]:
        """What is wrong with the stored bytes, one line each; reads all of them."""
        for digest in self.digests():
            try:
                self._pieces.read(digest)
            except StateError as problem:
                yield str(problem)

    def salvage(self) -> Iterator[tuple[EvidenceRecord, bytes]]:
        """Every piece that has its hash with each origin that can be read, also behind damage."""
        for body in self._pieces.records():
            try:
                record = _record_of(body)
                yield record, self.get(record.reference)
            except (Malformed, StateError, UsageError):
                continue

    def records(self) -> Iterator[EvidenceRecord]:
        """Where everything came from, log by log, the oldest of each first."""
        for body in self._pieces.records():
            try:
                yield _record_of(body)
            except Malformed as problem:
                raise StateError(f"a record of evidence cannot be used: {problem}", hint=DOCTOR) from problem

    def described(self, reference: str) -> list[EvidenceRecord]:
        """Every origin of one piece of evidence."""
        full = self.resolve(reference)
        return [record for record in self.records() if record.reference == full]


def is_evidence(body: Mapping[str, object]) -> bool:
    """Whether a record of a transcript is one of evidence."""
    return body.get("k") == "evidence"


def _record_of(body: Mapping[str, object]) -> EvidenceRecord:
    return EvidenceRecord.from_dict({name: value for name, value in body.items() if name not in PAYLOAD})


_LIST_HINT = "see `leadline show SESSION --findings` for the references that findings carry"
