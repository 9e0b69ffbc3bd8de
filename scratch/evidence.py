"""Raw tool output, kept once under the hash of its bytes, so that each finding can be traced to what it came from.

The bytes are redacted first; the hash is of what is stored. Where they came from (tool, version, arguments, time, task)
is a record in the session's `evidence.jsonl`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from threading import Lock

from manifests.durable import read_private
from manifests.envelope import DOCTOR
from manifests.errors import StateError, UsageError
from manifests.fields import Fields, Malformed, timestamp
from manifests.sessions import EVIDENCE_SCHEMA, Session

EVIDENCE_LIMIT_BYTES = 64 << 20
_NAME = "evidence.jsonl"
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
        self._known: set[str] = set()
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
    ) -> str:
        """Store and return `sha256:<hex>`; the bytes are on disk when it returns. The same bytes are stored once."""
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
            if digest not in self._known:
                if not self._is_stored(digest):
                    self._session.write_bytes(f"evidence/{digest[:2]}/{digest}", stored, label="replace:evidence")
                self._known.add(digest)
            self._describe(record)
        return record.reference

    def _is_stored(self, digest: str) -> bool:
        """Whether sound bytes stand there; what a damaged disk left is written anew."""
        try:
            return self._bytes(digest) is not None
        except StateError:
            return False

    def _describe(self, record: EvidenceRecord) -> None:
        origin = repr((record.reference, record.tool, record.arguments, record.task)).encode()
        key = hashlib.sha256(origin).digest()
        if key not in self._described:
            # not synced: a power cut can cost the origin of the newest evidence, never the evidence
            self._session.log(_NAME, EVIDENCE_SCHEMA).append(record.to_dict(), sync=False)
            self._described.add(key)

    def get(self, reference: str) -> bytes:
        """The bytes, checked against their hash. The reference may be abbreviated."""
        full = self.resolve(reference)
        data = self._bytes(full.removeprefix(_PREFIX))
        if data is None:
            raise UsageError(f"there is no evidence {reference!r} in session {self._session.id}", hint=_LIST_HINT)
        return data

    def _bytes(self, digest: str) -> bytes | None:
        path = self._session.path_of("evidence", digest[:2], digest)
        try:
            data = read_private(path, limit_bytes=EVIDENCE_LIMIT_BYTES, label="read:evidence")
        except FileNotFoundError:
            return None
        if hashlib.sha256(data).hexdigest() != digest:
            raise StateError(f"{str(path)!r} is damaged: its bytes do not have the hash in its name", hint=DOCTOR)
        return data

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
        found = [name for name in self._session.names_of(f"evidence/{start[:2]}", "") if name.startswith(start)]
        if not found:
            raise UsageError(f"there is no evidence {reference!r} in session {self._session.id}", hint=_LIST_HINT)
        if len(found) > 1:
            names = ", ".join(name[: len(start) + 6] for name in found[:8])
            raise UsageError(f"{len(found)} pieces of evidence match {reference!r}: {names}", hint="give more digits")
        return _PREFIX + found[0]

    def damage(self) -> Iterator[str]:
        """What is wrong with the stored bytes, one line each; reads all of them."""
        for start in self._session.names_of("evidence", ""):
            for digest in self._session.names_of(f"evidence/{start}", ""):
                try:
                    self._bytes(digest)
                except StateError as problem:
                    yield str(problem)

    def records(self) -> Iterator[EvidenceRecord]:
        """Where everything came from, oldest first."""
        reader = self._session.read_log(_NAME, EVIDENCE_SCHEMA)
        try:
            for record in reader:
                yield EvidenceRecord.from_dict(record.body)
        except FileNotFoundError:
            return
        except Malformed as problem:
            raise StateError(f"{str(reader.path)!r} cannot be used: {problem}", hint=DOCTOR) from problem

    def described(self, reference: str) -> list[EvidenceRecord]:
        """Every origin of one piece of evidence."""
        full = self.resolve(reference)
        return [record for record in self.records() if record.reference == full]


_LIST_HINT = "see `leadline show SESSION --findings` for the references that findings carry"
