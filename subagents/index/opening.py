"""Open the index of a snapshot: from the cache when it is already there, else built; in private when need be."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path

from manifests.temporary import make_temporary, remove_temporary
from subagents.codebase.collecting import garbage_left_alone
from subagents.codebase.types import Progress, Snapshot
from subagents.index.code_index import StoredIndex
from subagents.index.extras import BlobExtra, default_extras
from subagents.index.grammars import toolchain_version
from subagents.index.records import Damaged
from subagents.index.store import (
    FORMAT,
    CacheUnusable,
    builder_lock,
    connect,
    get_meta,
    is_damage,
    remove,
    translate,
)

_STALE_DAYS = 30
_UNUSABLE = ("readonly", "unable to open", "attempt to write", "locked", "disk I/O error")
"""Of what SQLite says: an index elsewhere may do. A full disk on which the index lies already is an I/O error: SQLite
has no room for the few kilobytes that readers share."""


def open_index(
    snapshot: Snapshot,
    cache_dir: Path,
    *,
    progress: Progress | None = None,
    workers: int | None = None,
    extras: Sequence[BlobExtra] | None = None,
    file_limit_s: float = 30.0,
) -> StoredIndex:
    """The index of `snapshot`, brought up to date first. The caller closes it; the snapshot must stay open as long.

    It lives in `cache_dir / snapshot.repository_key`; when that cannot be written, in a private temporary folder that
    `close` removes (`notices` says so). A file that takes a worker longer than `file_limit_s` is skipped. Raises
    EngineError when there is no space left.
    """
    opening = _Opening(
        snapshot,
        cache_dir / snapshot.repository_key,
        default_extras() if extras is None else tuple(extras),
        progress or (lambda what, done, total: None),
        workers,
        file_limit_s,
    )
    return opening.open()


class _Opening:
    def __init__(
        self,
        snapshot: Snapshot,
        folder: Path,
        extras: tuple[BlobExtra, ...],
        progress: Progress,
        workers: int | None,
        file_limit_s: float,
    ) -> None:
        self.snapshot = snapshot
        self.folder = folder
        self.extras = extras
        self.progress = progress
        self.workers = workers
        self.file_limit_s = file_limit_s
        self.notices: list[str] = []
        self.private: Path | None = None
        versions = [toolchain_version(), *(f"{extra.name}={extra.version}" for extra in extras)]
        self.name = f"index-{FORMAT}-{hashlib.sha256(' '.join(versions).encode()).hexdigest()[:8]}.sqlite"
        scope = "\0".join(sorted(snapshot.scope))
        self.key = f"{snapshot.id.tree}:{hashlib.sha256(scope.encode()).hexdigest()[:16] if scope else ''}"

    @property
    def file(self) -> Path:
        return self.folder / self.name

    def open(self) -> StoredIndex:
        try:
            connection = self.ready() or self.build()
        except CacheUnusable as error:
            self.notices.append(f"the cache folder {str(self.folder)!r} cannot be used ({error}); indexed in private")
            self.progress(self.notices[-1], 0, 0)
            self.private = self.folder = make_temporary("index")
            try:
                connection = self.build()
            except CacheUnusable as again:
                self.clean_up()
                raise translate(again, self.file) from again
        return StoredIndex(
            connection,
            self.file,
            self.snapshot,
            notices=self.notices,
            rebuild=self.rebuild,
            on_close=self.clean_up,
        )

    def clean_up(self) -> None:
        if self.private is not None:
            remove_temporary(self.private)

    def ready(self) -> sqlite3.Connection | None:
        """A connection that reads the wanted snapshot, if the file has it; it holds a read transaction.

        Looks without the lock, perhaps at a file that another process is just making: whatever is odd here is judged
        by `build`, which holds the lock.
        """
        if not self.file.exists():
            return None
        connection = None
        try:
            connection = connect(self.file, writable=False)
            connection.execute("BEGIN")
            if get_meta(connection, "snapshot") == self.key and self.is_whole(connection):
                return connection
        except sqlite3.Error:
            pass
        if connection is not None:
            connection.close()
        return None

    def is_whole(self, connection: sqlite3.Connection) -> bool:
        """A cheap look at what every question needs. Damage elsewhere is noticed when it is read."""
        return bool(connection.execute("SELECT count(*) FROM file").fetchone()[0] == get_meta(connection, "files"))

    def fail(self, error: sqlite3.Error, connection: sqlite3.Connection | None) -> None:
        """Raise what fits an error that is no damage: a folder we cannot use, a lock that stays, a full disk."""
        if connection is not None:
            connection.close()
        text = str(error)
        if any(sign in text for sign in _UNUSABLE):
            raise CacheUnusable(text) from error
        raise translate(error, self.file) from error

    def locked(self) -> contextlib.AbstractContextManager[None]:
        self.make_folder()
        return builder_lock(
            self.file.with_suffix(".lock"), lambda: self.progress("waiting for another process's index", 0, 0)
        )

    def make_folder(self) -> None:
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise CacheUnusable(str(error)) from error
        if not os.access(self.folder, os.W_OK | os.X_OK):
            raise CacheUnusable("not writable")

    def build(self) -> sqlite3.Connection:
        """Build or update, then read; both under the lock, so that no other builder comes between."""
        from subagents.index.build import Build  # a warm start needs none of it

        for last in (False, True):
            with self.locked():
                connection = None
                try:
                    connection = connect(self.file, writable=True)
                    if get_meta(connection, "snapshot") is not None and not self.is_whole(connection):
                        raise Damaged
                    if get_meta(connection, "snapshot") != self.key:
                        build = Build(
                            connection,
                            self.snapshot,
                            self.extras,
                            progress=self.progress,
                            workers=self.workers,
                            file_limit_s=self.file_limit_s,
                        )
                        with garbage_left_alone():
                            build.run(self.key)
                        self.tidy()
                    connection.close()
                    connection = connect(self.file, writable=False)
                    connection.execute("BEGIN")
                    get_meta(connection, "snapshot")
                    return connection
                except (sqlite3.Error, Damaged) as error:
                    if connection is not None:
                        connection.close()
                    if isinstance(error, sqlite3.Error) and not is_damage(error):
                        self.fail(error, None)
                    if last:
                        raise translate(sqlite3.DatabaseError("malformed"), self.file) from error
                    self.notices.append(f"the index {str(self.file)!r} was damaged and has been rebuilt")
                    self.progress("the index cache was damaged: rebuilding", 0, 0)
                    remove(self.file)
                except BaseException:
                    if connection is not None:
                        connection.close()
                    raise
        raise AssertionError("unreachable")

    def rebuild(self) -> sqlite3.Connection:
        """Called by the index when it comes upon damage later on."""
        self.progress("the index cache was damaged: rebuilding", 0, 0)
        with self.locked():
            remove(self.file)
        return self.build()

    def tidy(self) -> None:
        """Remove indexes of earlier formats, and those of other versions that nobody has touched for long."""
        oldest = time.time() - _STALE_DAYS * 86400
        for other in self.folder.glob("index-*.sqlite"):
            is_earlier = other.name.split("-")[1] in map(str, range(FORMAT))
            if is_earlier or (other.name != self.name and other.stat().st_mtime < oldest):
                remove(other)
                other.with_suffix(".lock").unlink(missing_ok=True)
