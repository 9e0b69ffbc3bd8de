"""Sessions on disk: creating, finding, opening, listing and removing them, and all that a coordinator writes into one.

<root>/<repository key>/<session id>/
  manifest.json  journal.jsonl  evidence.jsonl  lock  answer.json  answer.md
  scratch/<task id>.jsonl  transcripts/<task id>.jsonl  evidence/<aa>/<sha256>  phases/<n>.json  snapshot.git/
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Literal

from manifests import durable, envelope, locks
from manifests.durable import check_private_folder, explained, make_folder, replace_file, state_error
from manifests.envelope import DOCTOR, TIMELESS, Owner, Schema, Trust
from manifests.errors import LeadlineError, StateError, UsageError
from manifests.fields import Fields, Malformed, is_name, parse_timestamp, timestamp, utc_now
from manifests.fileops import unguessable
from manifests.jsonl import AppendLog, LogReader, OpenLogs, Record, TornTail
from manifests.schemas import (
    EVIDENCE_SCHEMA,
    JOURNAL_SCHEMA,
    MANIFEST_SCHEMA,
    SCRATCH_SCHEMA,
    SESSION_STATUSES,
    TRANSCRIPT_SCHEMA,
)

if TYPE_CHECKING:
    from manifests.manifest import Manifest

__all__ = [
    "EVIDENCE_LOG",
    "EVIDENCE_SCHEMA",
    "JOURNAL_SCHEMA",
    "SCRATCH_SCHEMA",
    "SNAPSHOT_STORE",
    "TRANSCRIPT_SCHEMA",
    "EntryStatus",
    "Journal",
    "Session",
    "SessionEntry",
    "SessionStore",
    "new_session_id",
]

EntryStatus = Literal["live", "interrupted", "stopped", "failed", "finished", "damaged"]
"""`interrupted`: nobody holds it and it had not come to an end. `stopped`: it ended at a limit with a partial answer.
`failed`: the engine failed. All three resume."""

SNAPSHOT_STORE = "snapshot.git"
EVIDENCE_LOG = "evidence.jsonl"
_FOLDERS = ("scratch", "transcripts", "evidence", "outcomes", "phases")
_TRASH = ".trash-"
_SESSION_ID = re.compile(r"\d{8}-\d{6}-[0-9a-f]{8}")
_DEEP_CHECK_S = 0.02

Redact = Callable[[object], object]


def new_session_id(at: datetime | None = None) -> str:
    """`20261130-234207-9f86d081`: sorts by time, cannot be guessed."""
    return f"{(at or utc_now()):%Y%m%d-%H%M%S}-{unguessable(4)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEntry:
    """One line of `leadline sessions`. What a damaged session cannot tell is empty."""

    id: str
    repository: str
    path: Path
    status: EntryStatus
    question: str = ""
    root: str = ""
    engine: str = ""
    created_at: str = ""
    updated_at: str = ""
    tasks: Mapping[str, int]
    """How many tasks have which status."""
    holder: locks.Holder | None = None
    problem: str = ""
    """What is damaged."""

    @property
    def resumable(self) -> bool:
        return self.status in ("interrupted", "stopped", "failed")


class Session:
    """One session's folder. Held by a lock when opened for writing; then a context manager that lets go of it.

    Everything written passes `redact` first, except bytes given to `write_bytes`, which are the caller's business.
    """

    def __init__(
        self, folder: Path, *, owner: Owner, redact: Redact, trust: Trust, lock: locks.SessionLock | None
    ) -> None:
        self.folder = folder
        self.owner = owner
        self.redact = redact
        self._trust = trust
        self._lock = lock
        self._logs: dict[str, AppendLog] = {}
        self._open_logs = OpenLogs()
        self._settled: set[str] = set()
        self._wrote_manifest = False
        self._outline: object = None
        self.journal = Journal(self)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def id(self) -> str:
        return self.owner.session

    @property
    def repository(self) -> str:
        return self.owner.repository

    @property
    def snapshot_store(self) -> Path:
        """Where a frozen working tree is kept."""
        return self.folder / SNAPSHOT_STORE

    def close(self) -> None:
        """Close all logs and let go of the lock. May be called twice."""
        for log in self._logs.values():
            log.close()
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def heartbeat(self) -> None:
        """Say that the holder lives. Writing does so too; call it while nothing is written for long."""
        if self._lock is not None:
            self._lock.check()

    def _check_writable(self) -> None:
        if self._lock is None:
            raise StateError(f"session {self.id} is open for reading only", hint="open it for writing first")
        self._lock.check()

    def path_of(self, *parts: str) -> Path:
        """A path inside the session, e.g. `path_of("scratch", f"{task}.jsonl")`. Refuses any way out."""
        relative = PurePosixPath(*parts)
        if not relative.parts or not all(is_name(part) for part in relative.parts):
            raise ValueError(f"not the name of a state file: {str(relative)!r}")
        return self.folder.joinpath(*relative.parts)

    # --- documents ---

    def write_manifest(self, manifest: Manifest) -> None:
        from manifests.manifest import Manifest  # listing sessions does not need it

        if (manifest.session, manifest.repository) != (self.id, self.repository):
            raise ValueError(f"the manifest is of session {manifest.session}, not {self.id}")
        if not self._wrote_manifest:  # what could not be read back must be refused before any work rests on it
            try:
                Manifest.from_dict(manifest.to_dict())
            except Malformed as problem:
                raise UsageError(f"this cannot be explored: {problem}", hint="make it shorter") from problem
        head = self.head_of(Journal.NAME, JOURNAL_SCHEMA)
        journal = {"journal": {"records": head[0], "sum": head[1]}} if head is not None else {}
        outline = _outline(manifest)
        self.write_document(
            "manifest.json", MANIFEST_SCHEMA, {**manifest.to_dict(), **journal}, lasting=outline != self._outline
        )
        self._outline = outline
        if not self._wrote_manifest:
            self._wrote_manifest = True
            self.journal.append("opened", **manifest.about())  # what salvage starts from when the manifest is lost

    def read_manifest(self) -> Manifest:
        from manifests.manifest import Manifest

        body = self.read_document("manifest.json", MANIFEST_SCHEMA)
        path = self.folder / "manifest.json"
        try:
            manifest = Manifest.from_dict(body)
            self._check_journal(body.get("journal"))
        except Malformed as problem:
            raise StateError(f"{str(path)!r} cannot be used: {problem}", hint=DOCTOR) from problem
        if (manifest.session, manifest.repository) != (self.id, self.repository):
            raise StateError(f"{str(path)!r} is about session {manifest.session!r}", hint=DOCTOR)
        return manifest

    def _check_journal(self, stated: object) -> None:
        """StateError unless the journal holds all that it held when the manifest was written."""
        if stated is None:
            return
        fields = Fields(stated, "journal")
        records, total = fields.integer("records", low=0, high=1 << 40), fields.text("sum", limit=16)
        path = str(self.folder / Journal.NAME)
        try:
            found = self.read_log(Journal.NAME, JOURNAL_SCHEMA, bodies=False).sum_at(records)
        except FileNotFoundError:
            raise StateError(f"{path!r} is missing", hint=DOCTOR) from None
        if found != total:
            raise StateError(f"{path!r} ends before record {records}, or is another: records are missing", hint=DOCTOR)

    def write_document(self, name: str, schema: Schema, body: Mapping[str, object], *, lasting: bool = True) -> None:
        """Redact, seal, replace. `lasting=False`: a power cut may leave the one before."""
        self._check_writable()
        redacted = self.redact(dict(body))
        if not isinstance(redacted, dict):
            raise TypeError("redaction made something else of an object")
        path = self.path_of(name)
        self._make_parent(path)
        envelope.write_document(path, redacted, schema=schema, owner=self.owner, lasting=lasting)

    def read_document(self, name: str, schema: Schema) -> dict[str, object]:
        """The body. A missing one is a StateError too."""
        path = self.path_of(name)
        try:
            trust = self._trust if schema == MANIFEST_SCHEMA else self._trust.ageless
            return envelope.read_document(path, schema=schema, owner=self.owner, trust=trust)
        except FileNotFoundError as error:
            raise StateError(f"{str(path)!r} is missing", hint=DOCTOR) from error

    def has(self, name: str) -> bool:
        return self.path_of(name).is_file()

    def write_text(self, name: str, text: str) -> None:
        """A file for people, e.g. answer.md. The journal keeps its hash, so that a change is noticed."""
        self._check_writable()
        redacted = str(self.redact(text))
        data = redacted.encode("utf-8", "replace")
        replace_file(self.path_of(name), data, label="replace:text")
        self.journal.append("text_written", name=name, sha256=hashlib.sha256(data).hexdigest())

    def write_bytes(self, name: str, data: bytes, *, label: str) -> None:
        """As they are: whoever calls this has redacted them."""
        self._check_writable()
        path = self.path_of(name)
        self._make_parent(path)
        replace_file(path, data, label=label)

    def _make_parent(self, path: Path) -> None:
        if path.parent != self.folder and not path.parent.is_dir():
            make_folder(path.parent, label="mkdir:session", parents=True)

    # --- logs ---

    def log(self, name: str, schema: Schema, *, redact: Redact | None = None) -> AppendLog:
        """The writing end of a log; the same one each time. `redact` takes the place of the session's."""
        if name not in self._logs:
            path = self.path_of(name)
            self._make_parent(path)
            self._logs[name] = AppendLog(
                path,
                schema=schema,
                owner=self.owner,
                redact=redact or self.redact,
                guard=self._check_writable,
                pool=self._open_logs,
            )
        return self._logs[name]

    def begun_log(self, name: str) -> AppendLog | None:
        """The writing end of a log, if this process has one already."""
        return self._logs.get(name)

    def settle(self, name: str) -> None:
        """Put on disk what was appended to a log without syncing, by this process or by one that died."""
        log = self._logs.get(name)
        if log is not None:
            log.open()
            log.settle()
        elif name not in self._settled:
            durable.sync_file(self.path_of(name), label="append:before")
            self._settled.add(name)

    def head_of(self, name: str, schema: Schema) -> tuple[int, str] | None:
        """Number and sum of the last record of a log that is on disk; None if there is none.

        Who keeps them can tell later that records were cut off at the end, which the log alone cannot.
        """
        if not self.has(name):
            return None
        log = self._logs.get(name)
        if log is not None:
            log.open()
            return log.head
        log = AppendLog(self.path_of(name), schema=schema, owner=self.owner, redact=self.redact)
        log.open()
        log.close()
        return log.head

    def read_log(self, name: str, schema: Schema, *, bodies: bool = True) -> LogReader:
        """To be iterated, any number of times; `torn` says afterwards whether a last record was dropped."""
        trust = self._trust.ageless
        return LogReader(self.path_of(name), schema=schema, owner=self.owner, trust=trust, bodies=bodies)

    def names_of(self, folder: str, suffix: str) -> list[str]:
        """Names of the files in a folder of the session, without the suffix, sorted."""
        with explained(self.folder / folder, "list"):
            try:
                found = [path.name for path in (self.folder / folder).iterdir()]
            except FileNotFoundError:
                return []
        return sorted(name.removesuffix(suffix) for name in found if name.endswith(suffix) and is_name(name))


def _outline(manifest: Manifest) -> object:
    """What is known from the manifest alone. How tasks stand is known from their outcomes, scratchpads and transcripts:
    a manifest that is behind in that is brought in line by the next process."""
    return (manifest.status, manifest.phases, manifest.rounds, manifest.snapshot, manifest.answer, manifest.runs)


class Journal:
    """Every change of a session's state, in order."""

    NAME = "journal.jsonl"
    _UNHURRIED = frozenset({"task_started"})
    """Synced with the next record: a power cut can cost them, and nothing rests on them."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def append(self, kind: str, **fields: object) -> int:
        """On disk when it returns, that a task started apart; returns the record's number."""
        log = self._session.log(self.NAME, JOURNAL_SCHEMA)
        return log.append({"kind": kind, "at": timestamp(), **fields}, sync=kind not in self._UNHURRIED)

    def records(self) -> Iterator[Record]:
        """All records, oldest first. A journal not begun yet is empty."""
        try:
            yield from self._session.read_log(self.NAME, JOURNAL_SCHEMA)
        except FileNotFoundError:
            return

    def torn(self) -> TornTail | None:
        """Whether a crash cut the last record short. (Opening it for the first append mends it.)"""
        reader = self._session.read_log(self.NAME, JOURNAL_SCHEMA)
        try:
            return reader.exhaust().torn
        except FileNotFoundError:
            return None


class SessionStore:
    """All sessions of the user, under one root."""

    def __init__(self, root: Path, *, redact: Redact, trust: Trust | None = None) -> None:
        self.root = root
        self._redact = redact
        self._trust = trust or Trust()

    # --- opening ---

    def create(self, repository: str) -> Session:
        """A new session, held by this process. It is not listed as more than live before its first manifest."""
        if not is_name(repository):
            raise ValueError(f"not a repository key: {repository!r}")
        make_folder(self.root, label="mkdir:session", parents=True)
        check_private_folder(self.root, shared_reading=True)
        home = self.root / repository
        make_folder(home, label="mkdir:session")
        check_private_folder(home)
        session_id = new_session_id()
        folder = home / session_id
        make_folder(folder, label="mkdir:session")
        lock = locks.acquire(folder / "lock")
        try:
            for name in _FOLDERS:
                make_folder(folder / name, label="mkdir:session", lasting=False)  # as its first manifest does
        except BaseException:
            lock.release()
            raise
        return self._session(folder, lock)

    def open(self, entry: SessionEntry, *, takeover: bool = False, lease_s: float = locks.LEASE_S) -> Session:
        """Open for writing: take the lock, clean up what crashed replacements left. StateError if another holds it."""
        self._check_folders(entry.path)
        lock = locks.acquire(entry.path / "lock", takeover=takeover, lease_s=lease_s)
        try:
            check_private_folder(entry.path)
            durable.clean_temporaries(entry.path, skip=frozenset({SNAPSHOT_STORE}), label="unlink:temporary")
        except BaseException:
            lock.release()
            raise
        return self._session(entry.path, lock)

    def read(self, entry: SessionEntry) -> Session:
        """Open for reading; never disturbs who holds it."""
        self._check_folders(entry.path)
        return self._session(entry.path, None)

    def _session(self, folder: Path, lock: locks.SessionLock | None) -> Session:
        owner = Owner(session=folder.name, repository=folder.parent.name)
        return Session(folder, owner=owner, redact=self._redact, trust=self._trust, lock=lock)

    def _check_folders(self, folder: Path) -> None:
        check_private_folder(self.root, shared_reading=True)
        check_private_folder(folder.parent)
        check_private_folder(folder)

    # --- finding ---

    def list(self, repository: str | None = None, *, deep_check_s: float = _DEEP_CHECK_S) -> list[SessionEntry]:
        """All sessions, newest first; one that cannot be read is listed as damaged and stops nobody.

        Manifests are always checked; other documents and logs, newest sessions first, as long as `deep_check_s` lasts.
        """
        deadline = time.monotonic() + deep_check_s
        entries: list[SessionEntry] = []
        for folder in self._folders(repository):
            entry = self._entry(folder)
            if entry is not None:
                entries.append(entry)
        entries.sort(key=lambda entry: entry.id, reverse=True)
        return [self._checked_deeper(entry, deadline) for entry in entries]

    def newest_interrupted(self, repository: str) -> SessionEntry | None:
        """The session of this repository that was worked on last, among those that resume."""
        resumable = [entry for entry in self.list(repository, deep_check_s=0) if entry.resumable]
        return max(resumable, key=lambda entry: (entry.updated_at, entry.id), default=None)

    def resolve(self, text: str, *, repository: str | None = None) -> SessionEntry:
        """A session by its id, or by the beginning of it or of its last part. UsageError for none or several."""
        found = [
            folder
            for folder in self._folders(repository)
            if text and (folder.name.startswith(text) or folder.name.rpartition("-")[2].startswith(text))
        ]
        found = [folder for folder in found if folder.name == text] or found
        entries = [entry for folder in found if (entry := self._entry(folder)) is not None]
        if not entries:
            raise UsageError(f"there is no session {text!r}", hint="see `leadline sessions`")
        if len(entries) > 1:
            names = ", ".join(sorted(entry.id for entry in entries)[:8])
            raise UsageError(f"{len(entries)} sessions match {text!r}: {names}", hint="give more of its id")
        return entries[0]

    def _folders(self, repository: str | None) -> Iterator[Path]:
        if self.root.exists() and not self.root.is_dir():
            raise StateError(
                f"{str(self.root)!r} is no folder", hint="point LEADLINE_STATE_DIR at one, or move it away"
            )
        homes = [repository] if repository is not None else _listed(self.root)
        for home in homes:
            if not is_name(home):
                continue
            for name in _listed(self.root / home):
                if _SESSION_ID.fullmatch(name):
                    yield self.root / home / name

    def _entry(self, folder: Path) -> SessionEntry | None:
        """None for what a crash left of a session that had not begun."""
        holder = locks.holder_of(folder / "lock")
        try:
            check_private_folder(folder)
            session = self._session(folder, None)
            if not (folder / "manifest.json").exists():
                return self._without_manifest(folder, holder)
            body = envelope.read_document(
                folder / "manifest.json", schema=MANIFEST_SCHEMA, owner=session.owner, trust=TIMELESS
            )
            return _summarised(Fields(body, "manifest"), folder, holder)
        except FileNotFoundError:
            return self._without_manifest(folder, holder)
        except (LeadlineError, Malformed, OSError) as problem:
            return _damaged(folder, holder, str(problem))

    def _without_manifest(self, folder: Path, holder: locks.Holder | None) -> SessionEntry | None:
        if holder is not None:
            return SessionEntry(
                id=folder.name, repository=folder.parent.name, path=folder, status="live", tasks={}, holder=holder
            )
        if (folder / Journal.NAME).exists():
            return _damaged(folder, None, "its manifest is missing")
        return None

    def _checked_deeper(self, entry: SessionEntry, deadline: float) -> SessionEntry:
        if entry.status in ("damaged", "live") or time.monotonic() > deadline:
            return entry
        problem = next(self.damage(entry, deadline=deadline), None)
        return entry if problem is None else _damaged(entry.path, entry.holder, problem)

    def damage(self, entry: SessionEntry, *, deadline: float | None = None) -> Iterator[str]:
        """What is wrong with the session's documents and logs, one line each. (Evidence: `EvidenceStore.damage`.)"""
        session = self.read(entry)
        for path in _documents_of(session):
            if _is_past(deadline):
                return
            try:
                envelope.check_document(path, owner=session.owner)
            except StateError as problem:
                yield str(problem)
        for name, schema in _logs_of(session):
            reader = LogReader(session.path_of(name), schema=schema, owner=session.owner, trust=TIMELESS, bodies=False)
            try:
                for _ in reader:
                    if _is_past(deadline):
                        return
            except FileNotFoundError:
                continue
            except StateError as problem:
                yield str(problem)

    # --- removing ---

    def remove(self, entry: SessionEntry) -> None:
        """Remove a session for good. StateError while another process holds it."""
        check_private_folder(entry.path.parent)
        lock = locks.acquire(entry.path / "lock")
        try:
            trash = entry.path.with_name(f"{_TRASH}{entry.id}-{unguessable(4)}")
            with explained(entry.path, "remove"):
                entry.path.rename(trash)  # from here on nobody lists half a session
            durable.remove_tree(trash, label="remove:session")
        finally:
            lock.release()

    def sweep(self) -> int:
        """Remove what interrupted removals and creations left; returns how many folders."""
        swept = 0
        for home in _listed(self.root):
            for name in _listed(self.root / home):
                folder = self.root / home / name
                if name.startswith(_TRASH) or (_SESSION_ID.fullmatch(name) and self._is_unborn(folder)):
                    durable.remove_tree(folder, label="remove:session")
                    swept += 1
        return swept

    def _is_unborn(self, folder: Path) -> bool:
        """No manifest, no journal, no holder, and not just being made."""
        try:
            age_s = time.time() - folder.stat().st_mtime
        except OSError:
            return False
        return age_s > locks.LEASE_S and self._entry(folder) is None


def _is_past(deadline: float | None) -> bool:
    return deadline is not None and time.monotonic() > deadline


def _logs_of(session: Session) -> Iterator[tuple[str, Schema]]:
    """The longest last: whoever looks for a limited time sees most."""
    yield Journal.NAME, JOURNAL_SCHEMA
    for name in session.names_of("scratch", ".jsonl"):
        yield f"scratch/{name}.jsonl", SCRATCH_SCHEMA
    for name in session.names_of("transcripts", ".jsonl"):
        yield f"transcripts/{name}.jsonl", TRANSCRIPT_SCHEMA
    yield EVIDENCE_LOG, EVIDENCE_SCHEMA


def _documents_of(session: Session) -> Iterator[Path]:
    """Every document at the top and one folder below, whatever its schema."""
    for home in ("", *(name for name in _listed(session.folder) if name not in (SNAPSHOT_STORE, "evidence"))):
        for name in _listed(session.folder / home):
            if name.endswith(".json") and is_name(name):
                yield session.folder / home / name


def _listed(folder: Path) -> list[str]:
    try:
        return sorted(path.name for path in folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise state_error(error, folder, "list") from error


def _summarised(fields: Fields, folder: Path, holder: locks.Holder | None) -> SessionEntry:
    """What a listing needs of a manifest whose checksum holds."""
    stated = fields.choice("status", SESSION_STATUSES)
    status: EntryStatus
    if holder is not None:
        status = "live"
    else:
        status = "interrupted" if stated == "running" else stated
    counts: dict[str, int] = {}
    for record in fields.items("tasks", limit=100_000):
        name = Fields(record, "task").text("status", limit=20)
        counts[name] = counts.get(name, 0) + 1
    updated = fields.text("updated_at", limit=40)
    parse_timestamp(updated)
    return SessionEntry(
        id=folder.name,
        repository=folder.parent.name,
        path=folder,
        status=status,
        question=fields.text("question", limit=1_000_000),
        root=fields.text("root", limit=10_000),
        engine=Fields(fields.raw("engine"), "engine").text("name", limit=100),
        created_at=fields.text("created_at", limit=40),
        updated_at=updated,
        tasks=counts,
        holder=holder,
    )


def _damaged(folder: Path, holder: locks.Holder | None, problem: str) -> SessionEntry:
    return SessionEntry(
        id=folder.name,
        repository=folder.parent.name,
        path=folder,
        status="damaged",
        tasks={},
        holder=holder,
        problem=problem,
    )
