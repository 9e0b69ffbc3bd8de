"""One subagent's scratchpad: findings and notes on disk, outside any message history, recorded one at a time.

It is read back as untrusted input: whatever it holds ends up in a prompt.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from manifests.envelope import DOCTOR
from manifests.errors import StateError
from manifests.fields import Fields, Malformed, timestamp
from manifests.jsonl import TornTail
from manifests.sessions import SCRATCH_SCHEMA, Session
from scratch.findings import FINDING_STATUSES, Citation, Finding, FindingStatus

NOTE_LIMIT = 20_000
"""Characters of one note."""
RECORDS_LIMIT = 100_000
Range = tuple[int, int]


@dataclass(slots=True, kw_only=True)
class ScratchpadState:
    """What a scratchpad holds. `findings` in the order recorded, each once."""

    findings: dict[str, Finding] = field(default_factory=dict)
    origins: list[str] = field(default_factory=list)
    """Ids of findings that this task recorded too, and that stand in another task's scratchpad."""
    notes: list[str] = field(default_factory=list)
    shown: dict[str, list[Range]] = field(default_factory=dict)
    statuses: dict[str, FindingStatus] = field(default_factory=dict)
    """Changes of status, also of findings of other tasks."""
    moved: list[tuple[str, Finding]] = field(default_factory=list)
    """(id before, the same finding where its lines stand in a later snapshot), in the order recorded."""
    torn: TornTail | None = None


class Scratchpad:
    """The scratchpad of one task. Every method that records is durable when it returns, `shown` apart."""

    SCHEMA = SCRATCH_SCHEMA

    def __init__(self, session: Session, task: str) -> None:
        self.task = task
        self._session = session
        self._name = f"scratch/{task}.jsonl"
        self._log = session.log(self._name, SCRATCH_SCHEMA, redact=self._redacted)

    def _redacted(self, body: object) -> object:
        """Redact all but what a check depends on: paths, blobs and hashes have to stay what they are."""
        redacted = self._session.redact(body)
        if isinstance(body, dict) and isinstance(redacted, dict):
            _restore(body, redacted)
        return redacted

    def append_finding(self, finding: Finding) -> None:
        self._append("finding", finding=finding.to_dict())

    def append_origin(self, finding_id: str) -> None:
        """This task recorded what another had recorded before."""
        self._append("origin", finding=finding_id)

    def append_note(self, text: str) -> None:
        self._append("note", text=text[:NOTE_LIMIT])

    def append_status(self, finding_id: str, status: FindingStatus, reason: str = "") -> None:
        self._append("status", finding=finding_id, status=status, reason=reason[:NOTE_LIMIT])

    def append_moved(self, finding_id: str, finding: Finding) -> None:
        """A finding whose lines stand elsewhere in a later snapshot: this one takes its place."""
        self._append("moved", finding=finding.to_dict(), was=finding_id)

    def append_shown(self, path: str, start: int, end: int) -> None:
        """Not synced: a power cut loses the right to cite these lines, until they are read again."""
        self._log.append({"kind": "shown", "path": path, "start": start, "end": end}, sync=False)

    def copy(self, body: Mapping[str, object]) -> None:
        """A record of another session's scratchpad, as it stands there."""
        self._log.append(body)

    def _append(self, kind: str, **fields: object) -> None:
        self._log.append({"kind": kind, "at": timestamp(), **fields})

    def load(self) -> ScratchpadState:
        """Everything recorded so far. StateError for damage, naming the file; an absent scratchpad is an empty one."""
        state = ScratchpadState()
        reader = self._session.read_log(self._name, SCRATCH_SCHEMA)
        try:
            for record in reader:
                if record.seq > RECORDS_LIMIT:
                    raise Malformed(f"more than {RECORDS_LIMIT:,} records")
                _apply(state, Fields(record.body, f"record {record.seq}"))
        except FileNotFoundError:
            return state
        except Malformed as problem:
            raise StateError(f"{str(reader.path)!r} cannot be used: {problem}", hint=DOCTOR) from problem
        state.torn = reader.torn
        return state


def _restore(body: dict[str, object], redacted: dict[str, object]) -> None:
    if "path" in body:
        redacted["path"] = body["path"]
    finding, written = body.get("finding"), redacted.get("finding")
    if not (isinstance(finding, dict) and isinstance(written, dict)):
        return
    citations, copies = finding.get("citations"), written.get("citations")
    if isinstance(citations, list) and isinstance(copies, list):
        for citation, copy in zip(citations, copies, strict=True):
            copy["path"] = citation["path"]


def _apply(state: ScratchpadState, fields: Fields) -> None:
    match fields.text("kind", limit=40):
        case "finding":
            finding = Finding.from_dict(fields.raw("finding"))
            state.findings.setdefault(finding.id, finding)
        case "origin":
            finding_id = fields.name("finding")
            if finding_id not in state.origins:
                state.origins.append(finding_id)
        case "note":
            state.notes.append(fields.text("text", limit=NOTE_LIMIT + 1_000))
        case "status":
            status = fields.choice("status", FINDING_STATUSES)
            state.statuses[fields.name("finding")] = status
        case "moved":
            state.moved.append((fields.name("was"), Finding.from_dict(fields.raw("finding"))))
        case "shown":
            start = fields.integer("start", low=1, high=1 << 31)
            end = fields.integer("end", low=start, high=1 << 31)
            add_range(state.shown.setdefault(fields.text("path", limit=1 << 14), []), start, end)
        case other:
            raise Malformed(f"a record of unknown kind {other!r}")


def add_range(ranges: list[Range], start: int, end: int) -> bool:
    """Add lines to a sorted list of disjoint ranges, joining neighbours; False if they were all there already."""
    if covers(ranges, start, end):
        return False
    kept: list[Range] = []
    for first, last in ranges:
        if last + 1 < start or end + 1 < first:
            kept.append((first, last))
        else:
            start, end = min(start, first), max(end, last)
    ranges[:] = sorted([*kept, (start, end)])
    return True


def covers(ranges: Iterable[Range], start: int, end: int) -> bool:
    """Whether one of the ranges holds all these lines."""
    return any(first <= start and end <= last for first, last in ranges)


def all_findings(session: Session) -> dict[str, Finding]:
    """Every finding of a session, with all its origins and its latest status; StateError at the first damage."""
    findings: dict[str, Finding] = {}
    states = [(task, Scratchpad(session, task).load()) for task in session.names_of("scratch", ".jsonl")]
    for _, state in states:
        for finding in state.findings.values():
            known = findings.get(finding.id)
            findings[finding.id] = finding if known is None else known.with_origin(finding.task)
    for task, state in states:
        for finding_id in state.origins:
            if finding_id in findings:
                findings[finding_id] = findings[finding_id].with_origin(task)
    for _, state in states:
        for before, finding in state.moved:
            replaced(findings, before, finding)
    for _, state in states:
        for finding_id, status in state.statuses.items():
            if finding_id in findings:
                findings[finding_id] = replace(findings[finding_id], status=status)
    return findings


def replaced(findings: dict[str, Finding], before: str, finding: Finding) -> None:
    """Put a finding in the place of the one it was, or join it with one that says the same already."""
    was = findings.pop(before, None)
    known = findings.get(finding.id)
    for origin in (*(known.origins if known else ()), *(was.origins if was else ())):
        finding = finding.with_origin(origin)
    findings[finding.id] = finding


__all__ = [
    "NOTE_LIMIT",
    "Citation",
    "Range",
    "Scratchpad",
    "ScratchpadState",
    "add_range",
    "all_findings",
    "covers",
    "replaced",
]
