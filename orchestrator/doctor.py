"""Checks one session through and through: files, checksums, references, citations against the snapshot, ledger sums.

Each check stands alone: what one finds damaged keeps no other from being made. Nothing of the session is changed, and
its holder, if there is one, is not disturbed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from manifests.durable import TEMPORARY_SUFFIX, check_private_file, check_private_folder, read_private
from manifests.envelope import DOCUMENT_LIMIT_BYTES, TIMELESS, Schema, check_document
from manifests.errors import LeadlineError, StateError
from manifests.jsonl import LogReader
from manifests.manifest import Manifest
from manifests.sessions import (
    EVIDENCE_SCHEMA,
    JOURNAL_SCHEMA,
    SCRATCH_SCHEMA,
    SNAPSHOT_STORE,
    TRANSCRIPT_SCHEMA,
    Session,
    SessionEntry,
    SessionStore,
)
from orchestrator import stored
from orchestrator.frozen_tree import damage_of
from orchestrator.outcomes import check_scratchpad, read_outcome
from orchestrator.pads import VERIFIER, in_order
from orchestrator.report import to_markdown
from orchestrator.runs import root_of
from orchestrator.spend import entries_of
from scratch.evidence import EvidenceStore
from scratch.findings import Finding
from scratch.scratchpad import Scratchpad, all_findings
from scratch.verify import Verifier
from subagents.codebase.types import CannotRead, Snapshot, SnapshotId

_LOGS: Mapping[str, Schema] = {
    "journal.jsonl": JOURNAL_SCHEMA,
    "evidence.jsonl": EVIDENCE_SCHEMA,
    "scratch": SCRATCH_SCHEMA,
    "transcripts": TRANSCRIPT_SCHEMA,
}
_PLAIN = ("lock", stored.ANSWER_TEXT)
_MOST_NAMED = 5


@dataclass(slots=True, kw_only=True)
class Diagnosis:
    """What was looked at, what is damaged, what could not be checked, and what `--repair` would keep."""

    session: str
    status: str
    checked: Counter[str] = field(default_factory=Counter)
    damage: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    savable: Counter[str] = field(default_factory=Counter)
    hint: str = ""
    """What to do about it."""

    @property
    def sound(self) -> bool:
        return not self.damage

    def document(self) -> dict[str, object]:
        return {
            "session": self.session,
            "status": self.status,
            "sound": self.sound,
            "checked": dict(self.checked),
            "damage": list(self.damage),
            "notes": list(self.notes),
            "savable": dict(self.savable),
            "hint": self.hint,
        }


def diagnose(store: SessionStore, entry: SessionEntry) -> Diagnosis:
    """Never raises for what is wrong with the session; that is the answer."""
    return _Examination(store, entry).run()


class _Examination:
    def __init__(self, store: SessionStore, entry: SessionEntry) -> None:
        self._entry = entry
        self._store = store
        self._result = Diagnosis(session=entry.id, status=entry.status)
        self._manifest: Manifest | None = None
        self._findings: dict[str, Finding] = {}
        self._whole: set[str] = set()
        """Names of files that were read to their end."""

    def run(self) -> Diagnosis:
        try:
            session = self._store.read(self._entry)
        except StateError as problem:
            self._result.damage.append(str(problem))
            self._result.hint = problem.hint
            return self._result
        with session:
            self._files(session)
            self._frozen_tree(session)
            self._attempt(lambda: self._read_manifest(session))
            if self._entry.status == "live":
                self._result.notes.append("it is live: its parts may be a moment apart and were not compared")
            else:
                self._compare(session)
        self._conclude(session)
        return self._result

    def _attempt(self, check: Callable[[], object]) -> bool:
        """Whether the check ran through. What it raises is damage, said once."""
        try:
            check()
        except (LeadlineError, OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as problem:
            self._damaged(
                str(problem) if isinstance(problem, LeadlineError) else f"{type(problem).__name__}: {problem}"
            )
            return False
        return True

    def _damaged(self, what: str) -> None:
        if what not in self._result.damage:
            self._result.damage.append(what)

    # --- file by file ---

    def _files(self, session: Session) -> None:
        for relative in _walk(session.folder):
            path, name = session.folder / relative, relative.as_posix()
            if path.is_dir() and not path.is_symlink():
                self._attempt(lambda path=path: check_private_folder(path))  # type: ignore[misc]
            elif relative.name.startswith(".") and relative.name.endswith(TEMPORARY_SUFFIX):
                self._result.notes.append(f"a replacement that was interrupted left {name!r}")
            elif self._attempt(lambda path=path: check_private_file(path, path.lstat())):  # type: ignore[misc]
                self._file(session, relative)

    def _file(self, session: Session, relative: Path) -> None:
        name, home = relative.as_posix(), relative.parts[0]
        schema = _LOGS.get(home)
        if schema is not None and name.endswith(".jsonl"):
            self._attempt(lambda: self._log(session, name, schema))
        elif name.endswith(".json"):
            self._result.checked["documents"] += 1
            self._attempt(lambda: check_document(session.folder / relative, owner=session.owner))
        elif home != "evidence" and name not in _PLAIN:
            self._result.notes.append(f"{name!r} is no file of ours")

    def _log(self, session: Session, name: str, schema: Schema) -> None:
        reader = LogReader(session.folder / name, schema=schema, owner=session.owner, trust=TIMELESS)
        for _ in reader:
            self._result.checked["records"] += 1
        if reader.torn is not None:
            self._result.notes.append(
                f"{name!r} ends in an incomplete record of {reader.torn.length} bytes, which is what a crash leaves"
            )

    def _frozen_tree(self, session: Session) -> None:
        store = session.snapshot_store
        if store.is_symlink() or not store.is_dir():
            if store.is_symlink() or store.exists():
                self._damaged(f"{str(store)!r} is not a folder")
            return
        self._attempt(lambda: check_private_folder(store))
        for problem in damage_of(store):
            self._damaged(problem)

    # --- one against another ---

    def _read_manifest(self, session: Session) -> None:
        self._manifest = session.read_manifest()

    def _compare(self, session: Session) -> None:
        self._attempt(lambda: self._evidence(session))
        for task in session.names_of("scratch", ".jsonl"):
            self._attempt(lambda task=task: self._scratchpad(session, task))  # type: ignore[misc]
        manifest = self._manifest
        if manifest is None:
            return
        known = {record.id for record in manifest.tasks}
        for record in manifest.tasks:
            self._attempt(lambda record=record: self._task(session, record.id, record.status))  # type: ignore[misc]
        for folder, others in (("scratch", {VERIFIER}), ("outcomes", set[str]())):
            suffix = ".jsonl" if folder == "scratch" else ".json"
            strange = set(session.names_of(folder, suffix)) - known - others
            if strange:
                self._damaged(f"{folder} of tasks that the manifest does not name: {_some(strange)}")
        self._attempt(lambda: self._journal(session, known))
        self._attempt(lambda: self._answers(session, manifest))
        self._attempt(lambda: self._summaries(session, manifest))
        self._attempt(lambda: self._ledger(session, manifest))
        self._citations(session, manifest)

    def _evidence(self, session: Session) -> None:
        evidence = EvidenceStore(session, redact=lambda data: data)
        there = set(evidence.digests())
        self._result.checked["evidence"] += len(there)
        broken = 0
        for problem in evidence.damage():
            self._damaged(problem)
            broken += 1
        self._result.savable["evidence"] = len(there) - broken
        described = {record.reference.removeprefix("sha256:") for record in evidence.records()}
        if missing := described - there:
            self._damaged(f"evidence that evidence.jsonl describes is missing: {_some(missing)}")
        if unknown := there - described:
            self._result.notes.append(
                f"nothing says where evidence {_some(unknown)} came from (a power cut can do that)"
            )

    def _scratchpad(self, session: Session, task: str) -> None:
        state = Scratchpad(session, task).load()
        self._findings.update(state.findings)
        evidence = {ref for finding in state.findings.values() for ref in finding.evidence}
        store = EvidenceStore(session, redact=lambda data: data)
        missing = {ref for ref in evidence if not store.has(ref)}
        if missing:
            self._damaged(f"findings of {task} rest on evidence that is missing: {_some(missing)}")

    def _task(self, session: Session, task: str, status: str) -> None:
        found = read_outcome(session, task)
        if found is None:
            if status not in ("pending", "running", "stopped"):
                self._damaged(
                    f"task {task} is {status}, but {str(session.path_of('outcomes', task + '.json'))!r} is missing"
                )
            return
        check_scratchpad(session, task)
        if status == "finished" != found[1].status:
            self._damaged(f"task {task} is {status} in the manifest, but its outcome says {found[1].status}")
        if status == "finished":
            self._whole.add(task)
            self._result.savable["finished tasks"] += 1

    def _journal(self, session: Session, known: set[str]) -> None:
        if not session.has("journal.jsonl"):
            self._damaged("its journal is missing")
            return
        named = set()
        for record in session.journal.records():
            task, tasks = record.body.get("task"), record.body.get("tasks")
            named |= {task} if isinstance(task, str) else set()
            named |= set(tasks) if isinstance(tasks, list) else set()
        if missing := named - known:
            self._damaged(f"the journal names tasks that the manifest does not: {_some(missing)}")

    def _answers(self, session: Session, manifest: Manifest) -> None:
        stored.check_answer(session, manifest, in_order(list(all_findings(session).values())))
        for name in session.names_of("answers", ".json"):
            stored.read_earlier_answer(session, f"answers/{name}.json")
        self._text(session)

    def _text(self, session: Session) -> None:
        """answer.md is what was written at some time, or what would be written now (a crash can leave either)."""
        written = {r.body.get("sha256") for r in session.journal.records() if r.body.get("kind") == "text_written"}
        path = session.folder / stored.ANSWER_TEXT
        if not path.is_file():
            if written:
                self._damaged(f"{str(path)!r} is missing")
            return
        data = read_private(path, limit_bytes=DOCUMENT_LIMIT_BYTES, label="read:text")
        if hashlib.sha256(data).hexdigest() in written:
            return
        if data != to_markdown(stored.load_report(session)).encode("utf-8", "replace"):
            self._damaged(f"{str(path)!r} is not what was written")

    def _summaries(self, session: Session, manifest: Manifest) -> None:
        known = all_findings(session)
        for name in session.names_of("phases", ".json"):
            body = session.read_document(f"phases/{name}.json", Schema(name="leadline/phase-summary", version=1))
            ids = body.get("findings")
            missing = {str(i) for i in ids if i not in known} if isinstance(ids, list) else {"(no list)"}
            if missing and not manifest.rounds:  # a later snapshot moves findings, and with their lines their ids
                self._damaged(f"phases/{name}.json names findings that are in no scratchpad: {_some(missing)}")
        ended = {phase.n for phase in manifest.phases if phase.status == "finished"}
        if manifest.status == "finished" and (
            gone := {str(n) for n in ended} - set(session.names_of("phases", ".json"))
        ):
            self._damaged(f"summaries of phases are missing: {_some(gone)}")

    def _ledger(self, session: Session, manifest: Manifest) -> None:
        """The sums inside the manifest were checked when it was read; here, against what the transcripts say."""
        spent: dict[str, Counter[str]] = {}
        for name in session.names_of("transcripts", ".jsonl"):
            for one in entries_of(session, name):
                spent.setdefault(one.task, Counter())["requests"] += 1
        for record in manifest.tasks:
            stated = record.usage.get("requests")
            found = spent.get(record.id, Counter())["requests"]
            self._result.checked["charges"] += found
            if manifest.status in ("finished", "stopped") and stated is not None and stated != found:
                self._damaged(f"task {record.id} was charged {stated:g} requests, its transcript has {found}")
            elif stated is None and found:
                self._result.notes.append(
                    f"task {record.id}: {found} requests not yet in the manifest; resume counts them"
                )

    # --- against the code ---

    def _citations(self, session: Session, manifest: Manifest) -> None:
        try:
            with snapshot_of(session, manifest) as snapshot:
                self._check_citations(snapshot, session, manifest)
        except (LeadlineError, OSError) as problem:
            self._result.notes.append(f"citations were not checked: {problem}")

    def _check_citations(self, snapshot: Snapshot, session: Session, manifest: Manifest) -> None:
        try:
            findings = all_findings(session)
        except StateError:
            findings = self._findings
        verifier = Verifier(snapshot, cannot_read=CannotRead)
        follows = bool(manifest.rounds) and manifest.rounds[-1].kind == "rebase" and manifest.status != "finished"
        for finding in findings.values():
            self._result.checked["findings"] += 1
            self._result.checked["citations"] += len(finding.citations)
            checked = verifier.check(finding)
            wrong = finding.status == "verified" and (checked.moved or checked.finding.status == "stale")
            if wrong and not follows:
                where = ", ".join(c.where for c in finding.citations[:_MOST_NAMED])
                self._damaged(f"finding {finding.id} counts as verified, but its lines do not stand at {where}")
            elif wrong:
                self._result.notes.append(f"finding {finding.id} is yet to be followed to the newer snapshot")
            else:
                self._result.savable["findings"] += 1

    def _conclude(self, session: Session) -> None:
        result = self._result
        if result.sound:
            return
        if result.status == "live":
            result.hint = "look again when its process has ended"
        elif (problem := next((p for p in result.damage if "leadline reads" in p), None)) is not None:
            result.hint = "a leadline of another version wrote it: use that version" if problem else ""
        else:
            result.hint = f"`leadline doctor {session.id} --repair` saves what is sound into a new session"


@contextmanager
def snapshot_of(session: Session, manifest: Manifest, *, store: Path | None = None) -> Iterator[Snapshot]:
    """The snapshot of a session without touching its own store. Raises LeadlineError when it is gone.

    `store`: where what the session had frozen is copied to; a temporary folder unless given.
    """
    from subagents.codebase.snapshot import open_snapshot

    pinned = SnapshotId(
        kind=manifest.snapshot.kind,
        commit=manifest.snapshot.commit,
        tree=manifest.snapshot.tree,
        dirty=manifest.snapshot.dirty,
    )
    with ExitStack() as stack:
        root = root_of(session, manifest)
        place = (
            store or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="leadline-doctor-"))) / SNAPSHOT_STORE
        )
        if session.snapshot_store.is_dir():
            shutil.copytree(session.snapshot_store, place, symlinks=True, dirs_exist_ok=True)
        yield stack.enter_context(open_snapshot(root, scope=manifest.scope, store=place, pinned=pinned))


def _walk(folder: Path) -> Iterator[Path]:
    """Everything in the session but the frozen tree (see `frozen_tree`); links are not followed."""
    for here, folders, files in os.walk(folder):
        if here == str(folder) and SNAPSHOT_STORE in folders:
            folders.remove(SNAPSHOT_STORE)
        for name in sorted((*folders, *files)):
            yield Path(here, name).relative_to(folder)


def _some(names: set[str]) -> str:
    shown = ", ".join(sorted(names)[:_MOST_NAMED])
    return shown if len(names) <= _MOST_NAMED else f"{shown} and {len(names) - _MOST_NAMED} more"
