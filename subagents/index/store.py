"""The SQLite file of one repository's index: schema, opening, transactions, damage.

One file holds the current snapshot's paths and all blobs it needs, plus blobs of recent snapshots. Writers exclude each
other by a lock file; readers keep one read transaction open for as long as they live, so a build by another process
never changes what they see (write-ahead log). Everything can be rebuilt, so whatever is wrong with a file, it is put
aside and made anew.
"""

from __future__ import annotations

import fcntl
import os
import resource
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from manifests.errors import EngineError

FORMAT = 2
"""Number of the schema below; part of the file's name. Before 2, what is kept of a file was not redacted."""

SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS blob (
    id INTEGER PRIMARY KEY, oid TEXT NOT NULL, hint TEXT NOT NULL, language TEXT, lines INTEGER NOT NULL,
    is_read INTEGER NOT NULL, reason TEXT NOT NULL, detail TEXT NOT NULL, package TEXT NOT NULL,
    UNIQUE (oid, hint)
);
CREATE TABLE IF NOT EXISTS part (
    blob INTEGER PRIMARY KEY, symbols BLOB, strings BLOB, refs BLOB, bindings BLOB, imports BLOB,
    defined BLOB, used BLOB
);
CREATE TABLE IF NOT EXISTS retired (blob INTEGER PRIMARY KEY, generation INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS file (
    id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, blob INTEGER NOT NULL, targets BLOB
);
CREATE INDEX IF NOT EXISTS file_blob ON file (blob);
CREATE TABLE IF NOT EXISTS skip (path TEXT PRIMARY KEY, reason TEXT NOT NULL, detail TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS definition (key INTEGER PRIMARY KEY);
CREATE TABLE IF NOT EXISTS reference (key INTEGER PRIMARY KEY);
CREATE TABLE IF NOT EXISTS import_out (key INTEGER PRIMARY KEY);
CREATE TABLE IF NOT EXISTS import_in (key INTEGER PRIMARY KEY);
"""
"""`blob.hint` is the language implied by the path, since the same bytes may be read in two languages. `part` holds the
sealed records. `retired` says since which generation no snapshot has used a blob. `definition` and `reference` are
postings, name_key << POSTING_BITS | blob; `import_out` and `import_in` are edges, one file id << EDGE_BITS | the other:
a bare integer key is the smallest and quickest row SQLite has."""

POSTING_BITS = 28
EDGE_BITS = 31

BUSY_S = 30.0
"""How long to wait for a lock that is not ours: somebody looks at the file with a tool of his own."""


class CacheUnusable(Exception):
    """The cache cannot be used where it is; elsewhere it may."""


@contextmanager
def builder_lock(path: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Exclude other builders of this file, threads of this process included. Dies with the process."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise CacheUnusable(str(error)) from error
    try:
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                waiting()
                time.sleep(0.05)
            except OSError as error:
                raise CacheUnusable(str(error)) from error
        yield
    finally:
        os.close(fd)


def connect(path: Path, *, writable: bool) -> sqlite3.Connection:
    """Open the index. Used by many threads, under a lock of the owner. Raises sqlite3.Error, CacheUnusable."""
    if writable:
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        except OSError as error:
            raise CacheUnusable(str(error)) from error
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=BUSY_S)
    try:
        connection.execute("PRAGMA trusted_schema=OFF")
        connection.execute("PRAGMA cell_size_check=ON")
        if writable:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.execute("PRAGMA cache_size=-16000")
            connection.executescript(SCHEMA)
        else:
            connection.execute("PRAGMA query_only=ON")
            connection.execute("PRAGMA cache_size=-8000")
            connection.execute("PRAGMA mmap_size=268435456")
    except BaseException:
        connection.close()
        raise
    return connection


def is_damage(error: sqlite3.Error) -> bool:
    """Whether an error means that the file is not what we wrote (and not: busy, full, read-only)."""
    name = str(getattr(error, "sqlite_errorname", ""))
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_FORMAT", "SQLITE_SCHEMA")):
        return True
    text = str(error)
    return "malformed" in text or "not a database" in text or "no such table" in text or "no such column" in text


def translate(error: sqlite3.Error | OSError | CacheUnusable, path: Path) -> EngineError:
    """What a person can do about a cache that cannot be written or read now."""
    text = str(error)
    if "full" in text or getattr(error, "errno", None) == 28:
        return EngineError(
            f"no space left for the index {str(path)!r}",
            hint="free some space, or point LEADLINE_CACHE_DIR to another disk",
        )
    if resource.getrlimit(resource.RLIMIT_FSIZE)[0] != resource.RLIM_INFINITY:  # SQLite does not say that it is this
        return EngineError(f"the index {str(path)!r} cannot be used: {text}", hint="raise `ulimit -f`, or lift it")
    return EngineError(
        f"the index {str(path)!r} cannot be used: {text}", hint="delete the file; it is rebuilt from the repository"
    )


def remove(path: Path) -> None:
    """Delete an index with its log files. Others who have it open keep reading what they opened."""
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def get_meta(connection: sqlite3.Connection, key: str) -> str | int | None:
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return row[0] if row else None


def set_meta(connection: sqlite3.Connection, key: str, value: str | int) -> None:
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))
