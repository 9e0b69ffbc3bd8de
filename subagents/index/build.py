"""Bring the index of a repository to a snapshot: extract new blobs in parallel, then publish the snapshot at once.

Blobs are committed while the build goes on, so a killed build costs only what was not yet committed. The snapshot
(paths, import edges, extras) changes in one last transaction: readers see the old one or the new one.
"""

from __future__ import annotations

import sqlite3
import time
from array import array
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from types import MappingProxyType

import orjson

from subagents.codebase.textfile import classify_path, language_of
from subagents.codebase.types import CannotRead, FileEntry, Progress, Skipped, Snapshot
from subagents.index.extras import BlobExtra, Published
from subagents.index.languages import role_of
from subagents.index.pool import FILE_LIMIT_S, Pool, worker_count
from subagents.index.records import BlobRecord, decode_imports, numbers, seal
from subagents.index.resolve import LOOK_AT_NAMES, ImportedFile, resolve_all, steers_resolution
from subagents.index.resolve.base import FileTree
from subagents.index.store import EDGE_BITS, POSTING_BITS, get_meta, set_meta
from subagents.index.worker import FileTask, Setup, process_batch

_BATCH_BYTES = 400_000
_BATCH_FILES = 48
_TYPICAL_BYTES = 8_000
_COMMIT_S = 2.0
_FEW = 24
_SMALL_BYTES = 1_000_000
"""Changed files, and their bytes in all, up to which no worker is started."""
_READ_HERE = "read_here"
"""Name of the mark that stands in table `meta` while files are read in the building process itself."""
_KEPT_GENERATIONS = 12
"""For how many later snapshots a blob that none of them has is kept: switching branches back reads nothing."""


@dataclass(slots=True)
class Plan:
    """What a snapshot needs, told from paths alone."""

    files: dict[str, tuple[str, str]] = field(default_factory=dict)
    """path -> (blob oid, hint)"""
    skips: list[Skipped] = field(default_factory=list)


def plan(
    entries: Mapping[str, FileEntry], hints: Mapping[str, str] = MappingProxyType({}), skips: Collection[Skipped] = ()
) -> Plan:
    """`hints` and `skips` are what an earlier plan made of the same paths; names do not change their meaning."""
    made = Plan()
    earlier = {skip.path: skip for skip in skips if skip.reason not in ("link", "submodule")}
    for path, entry in entries.items():
        if entry.mode in ("link", "submodule"):
            made.skips.append(Skipped(path, "link" if entry.mode == "link" else "submodule"))
            continue
        hint = hints.get(path)
        if hint is not None:
            made.files[path] = (entry.blob, hint)
            continue
        known = earlier.get(path)
        if known is not None:
            made.skips.append(known)
            continue
        refused = classify_path(path)
        if refused is not None:
            made.skips.append(refused)
            continue
        language = language_of(path)
        if role_of(path, language) == "data":
            made.skips.append(Skipped(path, "no_grammar", "data"))
            continue
        made.files[path] = (entry.blob, language or "")
    return made


class Build:
    """One build, inside the builder's lock, on a writable connection that the caller closes."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        snapshot: Snapshot,
        extras: Sequence[BlobExtra],
        *,
        progress: Progress | None = None,
        workers: int | None = None,
        file_limit_s: float = FILE_LIMIT_S,
    ) -> None:
        self.connection = connection
        self.snapshot = snapshot
        self.extras = tuple(extras)
        self.progress = progress or (lambda what, done, total: None)
        self.workers = workers
        self.file_limit_s = file_limit_s

    def run(self, snapshot_key: str) -> None:
        """Raises sqlite3.Error (the caller tells damage from a full disk)."""
        connection = self.connection
        for extra in self.extras:
            connection.execute(f"CREATE TABLE IF NOT EXISTS {extra.table} (blob INTEGER PRIMARY KEY, data BLOB)")
        entries = self.snapshot.files()
        before: dict[str, tuple[int, int]] = {}
        hints: dict[str, str] = {}
        known: dict[tuple[str, str], int] = {}
        for number, path, blob, oid, hint in connection.execute(
            "SELECT f.id, f.path, f.blob, b.oid, b.hint FROM file f JOIN blob b ON b.id = f.blob"
        ):
            before[path], hints[path], known[oid, hint] = (number, blob), hint, blob
        skips = [Skipped(*row) for row in connection.execute("SELECT path, reason, detail FROM skip")]
        wanted = plan(entries, hints, skips)
        missing: dict[tuple[str, str], str] = {}
        for path, blob in wanted.files.items():
            if blob not in known:
                missing.setdefault(blob, path)
        known.update(self.kept(missing))
        new = [(blob, path) for blob, path in missing.items() if blob not in known]
        tasks = {blob: FileTask(number, entries[path], None) for number, (blob, path) in enumerate(new)}
        if tasks:
            self.extract(list(tasks.items()), known)
        self.publish(snapshot_key, wanted, known, before)

    def kept(self, blobs: Collection[tuple[str, str]]) -> Iterator[tuple[tuple[str, str], int]]:
        """The numbers of those blobs that the index has from earlier snapshots."""
        if len(blobs) > _FEW:
            for number, oid, hint in self.connection.execute("SELECT id, oid, hint FROM blob"):
                if (oid, hint) in blobs:
                    yield (oid, hint), number
            return
        for blob in blobs:
            row = self.connection.execute("SELECT id FROM blob WHERE oid = ? AND hint = ?", blob).fetchone()
            if row is not None:
                yield blob, row[0]

    # --- blobs ---

    def extract(self, tasks: list[tuple[tuple[str, str], FileTask]], known: dict[tuple[str, str], int]) -> None:
        connection = self.connection
        keys = [blob for blob, _ in tasks]
        row = connection.execute("SELECT max(id) FROM blob").fetchone()
        next_id = max(int(get_meta(connection, "next_blob") or 1), (row[0] or 0) + 1)
        pending = _Pending()
        self.progress("index", 0, len(tasks))
        committed = time.monotonic()
        done = 0
        with closing(self.records([task for _, task in tasks])) as found:
            for some in found:
                for task, record in some:
                    oid, hint = keys[task.number]
                    pending.add(next_id, oid, hint, record)
                    known[oid, hint] = next_id
                    next_id += 1
                done += len(some)
                self.progress("index", done, len(tasks))
                if len(pending.rows) >= 2000 or time.monotonic() - committed > _COMMIT_S:
                    pending.write(connection, self.extras)
                    committed = time.monotonic()
        pending.write(connection, self.extras)
        self.progress("index", done, len(tasks))

    def records(self, tasks: list[FileTask]) -> Generator[list[tuple[FileTask, BlobRecord]]]:
        """What is kept of each file, some at a time: few and small ones are read here, others by workers.

        Starting a worker costs more than reading what one edit changes. A grammar that crashes here takes the process
        with it, but only once: the mark that is left behind sends whoever comes next to the workers.
        """
        small = self.read_small(tasks)
        if small is not None:
            set_meta(self.connection, _READ_HERE, 1)
            made: list[BlobRecord] = []
            with suppress(Exception):  # workers find out whose fault it is
                made = process_batch(small, None, [extra.load_extract() for extra in self.extras])
            if made:
                yield list(zip(small, made, strict=True))
                return
        reader = getattr(self.snapshot, "reader", None)
        setup = Setup(reader() if reader is not None else None, self.extras)
        with Pool(setup, worker_count(self.workers, len(tasks)), file_limit_s=self.file_limit_s) as pool:
            yield from pool.run(self.batches(tasks, setup.reader is None))

    def read_small(self, tasks: list[FileTask]) -> list[FileTask] | None:
        """The tasks with their bytes, if they are few and small, and no process died over such before."""
        is_first = get_meta(self.connection, "snapshot") is None
        if is_first or len(tasks) > _FEW or self.workers is not None or get_meta(self.connection, _READ_HERE):
            return None
        made: list[FileTask] = []
        left = _SMALL_BYTES
        for task in tasks:
            data = self.read(task.entry.path)
            left -= len(data) if isinstance(data, bytes) else 0
            if left < 0:
                return None
            made.append(FileTask(task.number, task.entry, data))
        return made

    @property
    def generation(self) -> int:
        return int(get_meta(self.connection, "generation") or 0)

    def batches(self, tasks: list[FileTask], with_data: bool) -> Iterator[list[FileTask]]:
        """Small enough that no worker idles while another has a long tail."""
        files = max(1, min(_BATCH_FILES, len(tasks) // 8))
        batch: list[FileTask] = []
        size = 0
        for task in tasks:
            if with_data:
                task = FileTask(task.number, task.entry, self.read(task.entry.path))
            batch.append(task)
            size += len(task.data) if isinstance(task.data, bytes) else _TYPICAL_BYTES
            if len(batch) >= files or size >= _BATCH_BYTES:
                yield batch
                batch, size = [], 0
        if batch:
            yield batch

    def read(self, path: str) -> bytes | Skipped:
        try:
            return self.snapshot.read_bytes(path)
        except CannotRead as error:
            return error.skipped

    # --- the snapshot ---

    def publish(
        self,
        snapshot_key: str,
        wanted: Plan,
        known: Mapping[tuple[str, str], int],
        before: Mapping[str, tuple[int, int]],
    ) -> None:
        """`before` is what the file table says: (file, blob) of each path."""
        connection = self.connection
        self.progress("imports", 0, 0)
        connection.execute("BEGIN IMMEDIATE")
        try:
            first = get_meta(connection, "snapshot") is None
            generation = self.generation + 1
            after = {path: known[blob] for path, blob in wanted.files.items()}
            gone = [number for path, (number, _) in before.items() if path not in after]
            changed = [path for path, blob in after.items() if path not in before or before[path][1] != blob]
            connection.executemany("DELETE FROM file WHERE id = ?", ((number,) for number in gone))
            connection.executemany(
                "INSERT INTO file (path, blob) VALUES (?, ?) ON CONFLICT (path) DO UPDATE SET blob = excluded.blob",
                ((path, after[path]) for path in changed),
            )
            known_skips = {Skipped(*row) for row in connection.execute("SELECT path, reason, detail FROM skip")}
            skips = set(wanted.skips)
            connection.executemany("DELETE FROM skip WHERE path = ?", ((s.path,) for s in known_skips - skips))
            connection.executemany(
                "INSERT OR REPLACE INTO skip VALUES (?, ?, ?)",
                ((s.path, s.reason, s.detail) for s in skips - known_skips),
            )
            is_edit = self.is_edit(after, before, changed, bool(gone))
            resolved = self.resolve_imports(after, before, changed, is_edit)
            dropped = self.unused(generation)
            edited = {path: after[path] for path in changed} if is_edit and not resolved else None
            self.finish_extras(dropped, first, edited)
            self.drop(dropped)
            set_meta(connection, "generation", generation)
            row = connection.execute("SELECT max(id) FROM blob").fetchone()
            set_meta(connection, "next_blob", max(int(get_meta(connection, "next_blob") or 1), (row[0] or 0) + 1))
            set_meta(connection, "files", len(after))
            connection.execute("DELETE FROM meta WHERE key = ?", (_READ_HERE,))
            set_meta(connection, "snapshot", snapshot_key)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def is_edit(
        self, after: Mapping[str, int], before: Mapping[str, tuple[int, int]], changed: Sequence[str], gone: bool
    ) -> bool:
        """Whether only the contents of files changed, and of none that tells what the imports of others mean."""
        return (
            not gone
            and all(path in before for path in changed)
            and not any(steers_resolution(path) for path in changed)
            and self.same_places(changed, before, after)
        )

    def resolve_imports(
        self, after: Mapping[str, int], before: Mapping[str, tuple[int, int]], changed: Sequence[str], partly: bool
    ) -> bool:
        """Resolve the imports of all files, or (`partly`) of those changed files whose own have changed. Whether there
        were any."""
        connection = self.connection
        if partly:
            changed = [path for path in changed if not self.same_imports(before[path][1], after[path])]
        everything = changed if partly else list(after)
        if not everything:
            return False
        select = (
            "SELECT f.id, f.path, b.language, b.package, p.imports, p.used FROM file f"
            " JOIN blob b ON b.id = f.blob JOIN part p ON p.blob = f.blob"
        )
        listed: Iterable[tuple[int, str, str | None, str, bytes | None, bytes | None]]
        if partly:
            listed = [connection.execute(select + " WHERE f.path = ?", (path,)).fetchone() for path in everything]
        else:
            listed = connection.execute(select + " WHERE b.is_read = 1")
        files = [
            ImportedFile(number, path, language, decode_imports(imports) if imports else [], used or b"")
            for number, path, language, _, imports, used in listed
        ]
        all_files = connection.execute(
            "SELECT f.path, b.language, b.package FROM file f JOIN blob b ON b.id = f.blob WHERE b.is_read = 1"
        ).fetchall()
        if partly:
            ids = {path: number for path, (number, _) in before.items()}
        else:
            ids = dict(connection.execute("SELECT path, id FROM file"))
        tree = FileTree(
            {path: language for path, language, _ in all_files},
            {path: package for path, _, package in all_files if package},
            self.snapshot.files(),
            self.read_config,
        )
        resolved = resolve_all(files, tree)
        if partly:
            for file in files:
                self.remove_edges(file.number)
        else:
            connection.execute("DELETE FROM import_out")
            connection.execute("DELETE FROM import_in")
        edges: set[tuple[int, int]] = set()
        updates: list[tuple[bytes | None, int]] = []
        for file, targets in zip(files, resolved, strict=True):
            updates.append((seal(orjson.dumps(targets)) if any(targets) else None, file.number))
            for several in targets:
                edges.update((file.number, ids[target]) for target, _ in several if target != file.path)
        connection.executemany("UPDATE file SET targets = ? WHERE id = ?", updates)
        connection.executemany(
            "INSERT OR IGNORE INTO import_out VALUES (?)", [(s << EDGE_BITS | t,) for s, t in sorted(edges)]
        )
        connection.executemany(
            "INSERT OR IGNORE INTO import_in VALUES (?)", sorted((t << EDGE_BITS | s,) for s, t in edges)
        )
        return True

    def same_places(
        self, changed: Sequence[str], before: Mapping[str, tuple[int, int]], after: Mapping[str, int]
    ) -> bool:
        """Whether the changed files are still what the imports of others can mean."""
        for path in changed:
            pair = self.connection.execute(
                "SELECT DISTINCT package, language, is_read FROM blob WHERE id IN (?, ?)",
                (before[path][1], after[path]),
            ).fetchall()
            if len(pair) != 1:
                return False
        return True

    def same_imports(self, one: int, other: int) -> bool:
        """Whether two states of a file import the same, so that nothing is to be resolved: mostly after an edit."""
        states = []
        for blob in (one, other):
            row = self.connection.execute(
                "SELECT b.language, p.imports, p.used FROM blob b JOIN part p ON p.blob = b.id WHERE b.id = ?", (blob,)
            ).fetchone()
            language, imports, used = row
            stated = [rest for _, *rest in decode_imports(imports)] if imports else []
            states.append((stated, used if stated and language in LOOK_AT_NAMES else b""))
        return states[0] == states[1]

    def remove_edges(self, number: int) -> None:
        low = number << EDGE_BITS
        mask = (1 << EDGE_BITS) - 1
        out = self.connection.execute(
            "SELECT key FROM import_out WHERE key BETWEEN ? AND ?", (low, low | mask)
        ).fetchall()
        for (key,) in out:
            self.connection.execute("DELETE FROM import_in WHERE key = ?", ((key & mask) << EDGE_BITS | number,))
        self.connection.execute("DELETE FROM import_out WHERE key BETWEEN ? AND ?", (low, low | mask))

    def read_config(self, path: str) -> str:
        """Text of a small configuration file that steers resolution; empty when it cannot be read."""
        try:
            return "\n".join(self.snapshot.text(path).lines)
        except CannotRead:
            return ""

    def finish_extras(self, dropped: Sequence[int], first: bool, edited: Mapping[str, int] | None) -> None:
        next_blob = int(get_meta(self.connection, "next_blob") or 1)  # still what the last publication left
        rows = self.connection.execute("SELECT id FROM blob WHERE id >= ?", (next_blob,)).fetchall()
        added = [row[0] for row in rows]
        for extra in self.extras:
            finish = extra.load_finish()
            if finish is not None:
                self.progress(extra.name, 0, 0)
                finish(Published(connection=self.connection, added=added, dropped=dropped, first=first, edited=edited))

    def unused(self, generation: int) -> list[int]:
        """Retire what this snapshot does not use; give back what was retired too long ago."""
        connection = self.connection
        connection.execute("DELETE FROM retired WHERE blob IN (SELECT blob FROM file)")
        connection.execute(
            "INSERT OR IGNORE INTO retired SELECT id, ? FROM blob WHERE id NOT IN (SELECT blob FROM file)",
            (generation,),
        )
        rows = connection.execute(
            "SELECT blob FROM retired WHERE generation < ?", (generation - _KEPT_GENERATIONS,)
        ).fetchall()
        return [row[0] for row in rows]

    def drop(self, dropped: Sequence[int]) -> None:
        connection = self.connection
        for number in dropped:
            row = connection.execute("SELECT defined, used FROM part WHERE blob = ?", (number,)).fetchone()
            for table, stored in (("definition", row[0]), ("reference", row[1])):
                connection.executemany(
                    f"DELETE FROM {table} WHERE key = ?",
                    ((key << POSTING_BITS | number,) for key in numbers(stored or b"")),
                )
            for extra in self.extras:
                connection.execute(f"DELETE FROM {extra.table} WHERE blob = ?", (number,))
            connection.execute("DELETE FROM part WHERE blob = ?", (number,))
            connection.execute("DELETE FROM retired WHERE blob = ?", (number,))
            connection.execute("DELETE FROM blob WHERE id = ?", (number,))


class _Pending:
    """Rows not yet written. Postings are written sorted: random inserts into a B-tree cost several times as much."""

    def __init__(self) -> None:
        self.rows: list[tuple[object, ...]] = []
        self.parts: list[tuple[object, ...]] = []
        self.extras: list[tuple[int, tuple[bytes, ...]]] = []
        self.defined: array[int] = array("Q")
        self.used: array[int] = array("Q")

    def add(self, number: int, oid: str, hint: str, record: BlobRecord) -> None:
        self.rows.append((
            number, oid, hint, record.language, record.lines, record.is_read, record.reason, record.detail,
            record.package,
        ))  # fmt: skip
        self.parts.append((
            number, record.symbols, record.strings, record.references, record.bindings, record.imports,
            record.defined, record.used,
        ))  # fmt: skip
        self.extras.append((number, record.extras))
        self.defined.extend([key << POSTING_BITS | number for key in numbers(record.defined)])
        self.used.extend([key << POSTING_BITS | number for key in numbers(record.used)])

    def write(self, connection: sqlite3.Connection, extras: Sequence[BlobExtra]) -> None:
        if not self.rows:
            return
        connection.execute("BEGIN IMMEDIATE")
        try:
            connection.executemany("INSERT INTO blob VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", self.rows)
            connection.executemany("INSERT INTO part VALUES (?, ?, ?, ?, ?, ?, ?, ?)", self.parts)
            for place, extra in enumerate(extras):
                connection.executemany(
                    f"INSERT OR REPLACE INTO {extra.table} VALUES (?, ?)",
                    ((number, made[place]) for number, made in self.extras if made),
                )
            for table, keys in (("definition", self.defined), ("reference", self.used)):
                connection.executemany(f"INSERT OR IGNORE INTO {table} VALUES (?)", zip(sorted(keys), strict=False))
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        self.__init__()  # type: ignore[misc]
