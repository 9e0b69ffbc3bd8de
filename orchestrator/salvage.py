"""Saves what is sound of a damaged session into a new one, which is listed as interrupted and resumes.

The old session is only read. Findings are taken over if their citations check against the snapshot, evidence if its
bytes have the hash in its name, results of tasks if all that belongs to them is whole; every other task is asked again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from manifests.envelope import DOCTOR, TIMELESS, Schema
from manifests.errors import StateError
from manifests.fields import Fields, Malformed
from manifests.jsonl import LogReader
from manifests.manifest import Manifest, TaskRecord, task_from_dict
from manifests.sessions import (
    EVIDENCE_LOG,
    JOURNAL_SCHEMA,
    SCRATCH_SCHEMA,
    TRANSCRIPT_SCHEMA,
    Session,
    SessionEntry,
    SessionStore,
)
from orchestrator import stored
from orchestrator.doctor import snapshot_of
from orchestrator.outcomes import check_scratchpad, read_outcome, write_outcome
from scratch.evidence import EvidenceStore, is_evidence
from scratch.findings import Finding
from scratch.redaction import Redactor
from scratch.scratchpad import Scratchpad
from scratch.verify import Verifier
from subagents.codebase.types import CannotRead, Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Salvaged:
    """The new session, what it was given, and what had to be left behind."""

    session: str
    kept: Counter[str]
    left: tuple[str, ...]


def salvage(store: SessionStore, entry: SessionEntry, redactor: Redactor) -> Salvaged:
    """Raises StateError when there is nothing to begin with: no word of what it was about, or the code is gone."""
    if entry.holder is not None:
        raise StateError(f"session {entry.id} is live", hint="let it end, then look again")
    with store.read(entry) as old:
        about = _about(old)
        new = store.create(entry.repository)
        try:
            with snapshot_of(old, about, store=new.snapshot_store) as snapshot:
                work = _Work(old, new, about, snapshot, redactor)
                salvaged = work.run()
            new.close()
        except BaseException:
            new.close()
            if not new.has("manifest.json"):
                store.remove(
                    SessionEntry(id=new.id, repository=new.repository, path=new.folder, status="damaged", tasks={})
                )
            raise
    return salvaged


def _about(old: Session) -> Manifest:
    """The manifest, or what the journal says of the question if the manifest is lost."""
    try:
        return old.read_manifest()
    except StateError as problem:
        opened: dict[str, object] | None = None
        for body in _sound(old, "journal.jsonl", JOURNAL_SCHEMA):
            opened = body if body.get("kind") == "opened" else opened
        if opened is None:
            raise StateError(
                f"nothing sound says what session {old.id} was about: {problem}", hint="explore it anew"
            ) from problem
        try:
            return Manifest.from_about(opened, session=old.id, repository=old.repository)
        except Malformed as malformed:
            raise StateError(f"the journal of session {old.id} cannot be used: {malformed}", hint=DOCTOR) from malformed


def _sound(session: Session, name: str, schema: Schema) -> Iterator[dict[str, object]]:
    """The records before the first damage: each of them is vouched for by the sums up to it."""
    reader = LogReader(session.folder / name, schema=schema, owner=session.owner, trust=TIMELESS)
    try:
        for record in reader:
            yield record.body
    except (StateError, FileNotFoundError):
        return


class _Work:
    def __init__(self, old: Session, new: Session, about: Manifest, snapshot: Snapshot, redactor: Redactor) -> None:
        self._old = old
        self._new = new
        self._about = about
        self._verifier = Verifier(snapshot, cannot_read=CannotRead)
        self._evidence = EvidenceStore(new, redact=redactor.data)
        self._kept: Counter[str] = Counter()
        self._left: list[str] = []
        self._complete: set[str] = set()
        """Tasks whose scratchpads were taken over whole."""

    def run(self) -> Salvaged:
        self._take_evidence()
        for name in self._old.names_of("scratch", ".jsonl"):
            self._take_scratchpad(name)
        for name in self._old.names_of("transcripts", ".jsonl"):
            self._take_transcript(name)
        tasks = tuple(self._task(record) for record in self._about.tasks)
        self._take_answers()
        self._new.write_manifest(self._manifest(tasks))
        self._new.journal.append("salvaged", of=self._old.id, kept=dict(self._kept), left=self._left[:100])
        return Salvaged(session=self._new.id, kept=self._kept, left=tuple(self._left))

    def _manifest(self, tasks: tuple[TaskRecord, ...]) -> Manifest:
        open_phases = {record.phase for record in tasks if record.status != "finished"}
        phases = tuple(
            replace(phase, status="running") if phase.n in open_phases else phase for phase in self._about.phases
        )
        about = replace(self._about, session=self._new.id, tasks=tasks, phases=phases, answer="none")
        return about.with_status("interrupted", failure=f"salvaged from {self._old.id}")

    # --- evidence ---

    def _take_evidence(self) -> None:
        source = EvidenceStore(self._old, redact=lambda data: data)
        self._left += source.damage()
        for record, data in source.salvage():
            reference = self._evidence.put(
                data,
                tool=record.tool,
                tool_version=record.tool_version,
                arguments=record.arguments,
                task=record.task,
                at=record.at,
                sync=False,
            )
            self._kept["evidence"] += reference == record.reference
        if self._kept["evidence"]:
            self._new.settle(EVIDENCE_LOG)

    # --- scratchpads and transcripts ---

    def _take_scratchpad(self, task: str) -> None:
        """Records in their order; findings and what follows from them only if they hold."""
        pad = Scratchpad(self._new, task)
        lost = False
        for body in _sound(self._old, f"scratch/{task}.jsonl", SCRATCH_SCHEMA):
            try:
                held = self._take_record(pad, Fields(body, "record"), body)
            except Malformed as problem:
                held = False
                self._left.append(f"{task}: {problem}")
            lost = lost or not held
        try:
            Scratchpad(self._old, task).load()
        except StateError as problem:
            self._left.append(str(problem))
            return
        if not lost:
            self._complete.add(task)

    def _take_record(self, pad: Scratchpad, fields: Fields, body: dict[str, object]) -> bool:
        kind = fields.text("kind", limit=40)
        if kind in ("finding", "moved"):
            finding = Finding.from_dict(fields.raw("finding"))
            if not self._holds(finding):
                self._left.append(f"finding {finding.id}: its lines are not in the snapshot, or its evidence is gone")
                return False
            self._kept["findings"] += kind == "finding"
        pad.copy(body)
        return True

    def _holds(self, finding: Finding) -> bool:
        if any(not self._evidence.has(ref) for ref in finding.evidence):
            return False
        checked = self._verifier.check(finding)
        return not finding.citations or (checked.finding.status != "stale" and not checked.moved)

    def _take_transcript(self, name: str) -> None:
        log = self._new.log(f"transcripts/{name}.jsonl", TRANSCRIPT_SCHEMA, redact=lambda body: body)
        records = [
            body
            for body in _sound(self._old, f"transcripts/{name}.jsonl", TRANSCRIPT_SCHEMA)
            if not is_evidence(body)  # taken already
        ]
        for n, body in enumerate(records, 1):
            log.append(body, sync=n == len(records))
        try:
            self._old.read_log(f"transcripts/{name}.jsonl", TRANSCRIPT_SCHEMA, bodies=False).exhaust()
            self._kept["transcripts"] += 1
        except StateError as problem:
            self._left.append(f"{problem}; the {len(records)} records before that were kept")

    # --- tasks and answers ---

    def _task(self, record: TaskRecord) -> TaskRecord:
        """Finished if its outcome and all that it recorded are whole; else to be asked again. Charges stay."""
        again = TaskRecord(task=task_from_dict(record.to_dict()["task"]), phase=record.phase, usage=record.usage)
        if record.status != "finished":
            return replace(again, attempts=record.attempts, status="pending")
        try:
            found = read_outcome(self._old, record.id)
            check_scratchpad(self._old, record.id)
        except StateError as problem:
            self._left.append(str(problem))
            return again
        has_pad = record.id in self._old.names_of("scratch", ".jsonl")
        if found is None or (has_pad and record.id not in self._complete):
            return again
        write_outcome(self._new, record.id, found[0], found[1])
        self._kept["finished tasks"] += 1
        return record

    def _take_answers(self) -> None:
        for name in (stored.ANSWER, *(f"answers/{n}.json" for n in self._old.names_of("answers", ".json"))):
            try:
                if self._old.has(name):
                    kept = stored.read_earlier_answer(self._old, name)
                    self._new.write_document(name, stored.ANSWER_SCHEMA, kept.to_dict())
            except StateError as problem:
                self._left.append(str(problem))
