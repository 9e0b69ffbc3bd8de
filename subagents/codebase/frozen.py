"""The frozen repository that everything above reads through. Made by `subagents.codebase.snapshot.open_snapshot`."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType, TracebackType

from manifests.temporary import remove_temporary
from subagents.codebase.blobs import BlobReader
from subagents.codebase.confined import ConfinedFolder, signature
from subagents.codebase.copies import Copies
from subagents.codebase.freeze import READ_LIMIT_BYTES, Frozen
from subagents.codebase.gitrun import Git
from subagents.codebase.objects import object_id
from subagents.codebase.paths import in_scope
from subagents.codebase.repository import repository_key
from subagents.codebase.textfile import decode
from subagents.codebase.types import FileEntry, Skipped, SnapshotId, TextFile

_TEXTS_KEPT = 64


class FrozenSnapshot:
    """A `Snapshot`; see that protocol. Made by `open_snapshot`. Thread-safe; also a context manager."""

    def __init__(
        self,
        *,
        snapshot_id: SnapshotId,
        root: Path,
        working_tree: Path | None,
        git: Git,
        frozen: Frozen,
        owns_view: bool,
    ) -> None:
        self._id = snapshot_id
        self._root = root
        self._working_tree = working_tree
        self._git = git
        self._frozen = frozen
        self._owns_view = owns_view
        self._reader = BlobReader(working_tree, git)
        self._scope: tuple[str, ...] = ()
        self._files: Mapping[str, FileEntry] | None = None
        self._lock = threading.RLock()
        self._texts: OrderedDict[str, TextFile] = OrderedDict()
        self.copies = Copies()
        """Files of the snapshot written out for programs that need files; removed by `close`."""

    @property
    def id(self) -> SnapshotId:
        return self._id

    @property
    def root(self) -> Path:
        return self._root

    @property
    def repository_key(self) -> str:
        return repository_key(self._root)

    @property
    def scope(self) -> tuple[str, ...]:
        return self._scope

    @property
    def git(self) -> Git:
        """Runs git on this snapshot's repository, safely."""
        return self._git

    def restrict(self, scope: tuple[str, ...]) -> None:
        """Set the scope; called once, while opening."""
        self._scope = scope
        self._files = None

    def all_paths(self) -> Iterator[str]:
        """Path keys of the whole repository, whatever the scope."""
        return (entry.path for entry in self._frozen.files.values())

    def files(self) -> Mapping[str, FileEntry]:
        with self._lock:
            if self._files is None:
                entries: Iterable[FileEntry] = self._frozen.files.values()
                if self._scope:
                    entries = (entry for entry in entries if in_scope(entry.path, self._scope))
                self._files = MappingProxyType({entry.path: entry for entry in entries})
            return self._files

    def excluded(self) -> tuple[Skipped, ...]:
        """What lies in the folder, in scope, and is no part of the snapshot: nested repositories, unreadable files."""
        return tuple(
            item for item in self._frozen.excluded if not self._scope or in_scope(item.path.rstrip("/"), self._scope)
        )

    def read_bytes(self, path: str) -> bytes:
        return self._reader.read(self.files()[path])

    def read_many(self, paths: Iterable[str]) -> Iterator[tuple[str, bytes | Skipped]]:
        """Bytes of many paths, in their order; fastest when sorted. KeyError for a path not in the snapshot."""
        files = self.files()
        for entry, found in self._reader.read_many(files[path] for path in paths):
            yield entry.path, found

    def reader(self) -> BlobReader:
        """A reader of this snapshot's entries for another process (it can be pickled); the caller closes it.

        It is good for as long as this snapshot is open.
        """
        return BlobReader(self._working_tree, self._git)

    def text(self, path: str) -> TextFile:
        entry = self.files()[path]
        with self._lock:
            known = self._texts.get(path)
            if known is not None:
                self._texts.move_to_end(path)
                return known
        made = decode(entry, self._reader.read(entry))
        with self._lock:
            self._texts[path] = made
            while len(self._texts) > _TEXTS_KEPT:
                self._texts.popitem(last=False)
        return made

    def local_file(self, path: str) -> Path | None:
        """The file of the working tree that holds this path's bytes right now, or None when there is none.

        By the time it is opened it may have changed again: check what you read.
        """
        entry = self.files()[path]
        return self._local_path(entry) if next(self.are_local([entry])) else None

    def _local_path(self, entry: FileEntry) -> Path:
        assert self._working_tree is not None
        return self._working_tree / os.fsdecode(entry.raw)

    def are_local(self, entries: Iterable[FileEntry]) -> Iterator[bool]:
        """For each entry whether `root / raw` is a file that holds its bytes right now."""
        if self._working_tree is None:
            yield from (False for _ in entries)
            return
        root = os.fsencode(self._working_tree) + b"/"
        known = self._frozen.signatures
        with ConfinedFolder(self._working_tree) as folder:
            for entry in entries:
                if entry.mode not in ("file", "executable"):
                    yield False
                    continue
                before = known.get(entry.raw)
                if before is None:
                    yield self._is_unchanged(folder, entry)
                    continue
                try:
                    yield signature(os.lstat(root + entry.raw)) == before
                except OSError:
                    yield False

    def _is_unchanged(self, folder: ConfinedFolder, entry: FileEntry) -> bool:
        """Compare bytes where no earlier look left a signature, and leave one."""
        try:
            data, status = folder.read(entry.raw, READ_LIMIT_BYTES)
            same = object_id(self._git.object_format, "blob", data) == entry.blob
            unmoved = signature(folder.lstat(entry.raw)) == signature(status)
        except OSError:
            return False
        if same and unmoved:
            self._frozen.signatures[entry.raw] = signature(status)
        return same and unmoved

    def close(self) -> None:
        self._reader.close()
        self.copies.close()
        if self._owns_view:
            remove_temporary(self._git.view)

    def __enter__(self) -> FrozenSnapshot:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
