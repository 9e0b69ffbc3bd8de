"""Freezing: which bytes stand in the working tree now, as a git tree, without asking git to look at the files.

`git status`, `git add` and `git diff` run the repository's filters and monitors and may write its index. So git only
lists what its index says (with the stat data it recorded) and which files are untracked and not ignored; whether a
file changed is decided here, by stat data first and by hashing its raw bytes where that leaves a doubt.
"""

from __future__ import annotations

import os
import re
import stat
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from manifests.errors import UsageError
from subagents.codebase.confined import ConfinedFolder, Signature, TooLarge, signature
from subagents.codebase.gitrun import Git, ObjectFormat
from subagents.codebase.listed import IndexMemory, Record
from subagents.codebase.objects import FILE_MODES, file_mode, hasher, object_id
from subagents.codebase.paths import is_plain, to_key
from subagents.codebase.remembered import Memory
from subagents.codebase.textfile import TEXT_LIMIT_BYTES, is_binary, lfs_pointer_to
from subagents.codebase.types import FileEntry, FileMode, Skipped, SkipReason

READ_LIMIT_BYTES = 64 * 1024 * 1024
"""Larger files are hashed piece by piece, never stored and never read."""
HASH_LIMIT_BYTES = 1024 * 1024 * 1024
"""Still larger files (sparse ones cost nothing to make) are left out by name: hashing them would take minutes."""
FOLDER_FILES_LIMIT = 1_000_000

_LISTING_TIMEOUT_S = 60.0
"""A pipe in place of a `.gitignore` would block git for ever."""

_CONVERTED = re.compile(rb"^[^#\n]*[ \t](?:filter|working-tree-encoding|ident)\b", re.MULTILINE)
_ATTRIBUTES_BYTES = 1024 * 1024
_INDEX_MODES = {name.decode(): mode for name, mode in FILE_MODES.items()}
_USUAL_MODES: dict[FileMode, int] = {"file": stat.S_IFREG, "executable": stat.S_IFREG | stat.S_IXUSR}
_VERSION_CONTROL = frozenset({b".git", b".hg", b".svn", b".bzr", b".jj", b".sl", b".pijul", b"_darcs", b"CVS"})
_MADE_BY_TOOLS = frozenset({b"node_modules", b"__pycache__", b"bower_components", b".tox", b".nox"})
_CACHE_TAG = b"Signature: 8a477f597d28d172789f06886806bc55"

Store = Callable[[str, bytes], None]
"""Called with id and content of each blob that the repository may not have."""


@dataclass(slots=True)
class Frozen:
    """`files` is every path with what it holds; `signatures` the state of the files whose bytes are known to be so."""

    files: dict[bytes, FileEntry] = field(default_factory=dict)
    signatures: dict[bytes, Signature] = field(default_factory=dict)
    changed: set[bytes] = field(default_factory=set)
    """Paths whose content differs from the index, or is not in it."""
    excluded: list[Skipped] = field(default_factory=list)
    """What lies in the folder and is not part of the snapshot, and why."""

    def put(self, path: bytes, blob: str, mode: FileMode) -> None:
        self.files[path] = FileEntry(to_key(path), path, blob, mode)


@contextmanager
def _listing_untracked(git: Git, exclude_files: list[Path]) -> Iterator[list[bytes]]:
    """Untracked, non-ignored paths (a nested repository ends in `/`), complete once the block is left.

    git walks the folders while the block looks at the files that git knows.
    """
    found: list[bytes] = []
    failed: list[BaseException] = []
    args: list[str | bytes] = ["ls-files", "--others", "-z", "--exclude-per-directory=.gitignore"]
    for file in exclude_files:
        args += ["-X", os.fsencode(file)]

    def list_them() -> None:
        try:
            found.extend(path for path in git.run(args, timeout_s=_LISTING_TIMEOUT_S).split(b"\0") if path)
        except BaseException as error:  # noqa: BLE001 - raised again below, in the caller's thread
            failed.append(error)

    thread = threading.Thread(target=list_them, name="untracked", daemon=True)
    thread.start()
    try:
        yield found
    finally:
        thread.join()
    if failed:
        raise failed[0]


_BEAT = 50
"""Files."""


class Freezer:
    """Freezes one working tree. `store` receives what has to be kept outside the repository."""

    def __init__(
        self, root: Path, object_format: ObjectFormat, store: Store | None, beat: Callable[[int], None] = lambda _: None
    ) -> None:
        """`beat` is called with the number of files read so far, now and then; what it raises ends the freezing."""
        self._root = root
        self._beat = beat
        self._taken = 0
        self._root_bytes = os.fsencode(root) + b"/"
        self._format = object_format
        self._store = store
        self._folder = ConfinedFolder(root)
        self._folders = {b"": True}
        self._converted = False
        self._store_text_only = False
        self._memory: Memory = {}
        self.frozen = Frozen()

    def close(self) -> None:
        self._folder.close()

    def from_index(
        self,
        git: Git,
        memory: IndexMemory,
        *,
        index_mtime_ns: int,
        trust_modes: bool,
        exclude_files: Iterable[Path],
        attributes: bytes,
    ) -> Frozen:
        """The working tree of a repository: index entries as they are on disk now, and untracked files.

        `attributes` is the repository's own attributes file, outside of the tree.
        """
        with _listing_untracked(git, list(exclude_files)) as untracked:
            listing = memory.listing()
            self._converted = self._may_be_converted(listing.records, attributes)
            self._compare(listing.records, index_mtime_ns, trust_modes)
        for path in sorted(listing.conflicts.union(untracked)):
            if path.endswith(b"/"):
                self.frozen.excluded.append(Skipped(to_key(path), "submodule", "a repository of its own"))
            else:
                self._take(path, None, trust_modes)
        self.frozen.files = dict(sorted(self.frozen.files.items()))
        return self.frozen

    def _compare(self, records: Iterable[Record], index_mtime_ns: int, trust_modes: bool) -> None:
        """All index records against what is on disk.

        Looking by full path is enough here: a file that is the very inode git saw, unchanged, holds what the index
        says, by whatever way it was reached. Files in doubt are opened part by part.
        """
        root, lstat = self._root_bytes, os.lstat
        files, signatures, folders = self.frozen.files, self.frozen.signatures, self._folders
        doubtful = []
        for record in records:
            path, key, git_mode, blob, ctime_ns, mtime_ns, inode, size, is_absent = record
            mode = _INDEX_MODES.get(git_mode, "file")
            if mode == "submodule" or is_absent:
                files[path] = FileEntry(key, path, blob, mode)
                continue
            folder = path.rpartition(b"/")[0]
            is_there = folders.get(folder)
            try:
                status = lstat(root + path) if (self._is_folder(folder) if is_there is None else is_there) else None
            except OSError:
                status = None
            if status is None:
                self.frozen.changed.add(path)
                continue
            seen_ns, changed_ns, on_disk = status.st_mtime_ns, status.st_ctime_ns, status.st_mode
            if (  # as it was when git last looked, and that was not in the moment it changed
                mtime_ns == seen_ns < index_mtime_ns
                and size == status.st_size & 0xFFFFFFFF
                and inode == status.st_ino & 0xFFFFFFFF
                and ctime_ns == changed_ns
                and (
                    (trust_modes and on_disk & 0o170100 == _USUAL_MODES.get(mode))
                    or _mode_on_disk(status, mode, trust_modes) == mode
                )
            ):
                files[path] = FileEntry(key, path, blob, mode)
                if not self._converted:
                    signatures[path] = status.st_ino, status.st_size, seen_ns, changed_ns, on_disk
            else:
                doubtful.append(record)
        for record in doubtful:
            self._take(record[0], record, trust_modes)

    def _may_be_converted(self, records: Iterable[Record], attributes: bytes) -> bool:
        """Whether git may have made files of the working tree out of other bytes: filters, encodings, identities.

        Then an unchanged file proves that the blob is unchanged, but not that the file holds the blob's bytes.
        """
        if _CONVERTED.search(attributes):
            return True
        for name in [record[0] for record in records if record[0].endswith(b".gitattributes")]:
            if name.rpartition(b"/")[2] == b".gitattributes":
                try:
                    content, _ = self._folder.read(name, _ATTRIBUTES_BYTES)
                except TooLarge:
                    return True
                except OSError:
                    continue
                if _CONVERTED.search(content):
                    return True
        return False

    def _is_folder(self, folder: bytes) -> bool:
        """Whether a path of the index still is a folder, and so is all above it: no links."""
        known = self._folders.get(folder)
        if known is None:
            known = is_plain(folder) and self._is_folder(folder.rpartition(b"/")[0])
            if known:
                try:
                    known = stat.S_ISDIR(os.lstat(self._root_bytes + folder).st_mode)
                except OSError:
                    known = False
            self._folders[folder] = known
        return known

    def from_folder(self, only: bytes = b"", memory: Memory | None = None) -> Frozen:
        """A plain folder: everything but version control folders and what tools mark as made by them.

        Files that are as `memory` knows them are not read again (without a store, which needs their bytes).
        Only what can be read as text is stored: else gigabytes of data and media would be copied into each session.
        """
        self._store_text_only = True
        if memory is not None and self._store is None:
            self._memory = memory
        if only:
            self._take(only, None, True)
        else:
            self._walk(b"")
        self.frozen.files = dict(sorted(self.frozen.files.items()))
        return self.frozen

    def _walk(self, folder: bytes) -> None:
        pending = [folder]
        while pending:
            folder = pending.pop()
            try:
                fd = os.dup(self._folder.folder(folder.rstrip(b"/")))
            except OSError as error:
                self.frozen.excluded.append(Skipped(to_key(folder), "unreadable", error.strerror or ""))
                continue
            try:
                names = sorted(
                    (os.fsencode(found.name), found.is_dir(follow_symlinks=False)) for found in os.scandir(fd)
                )
            finally:
                os.close(fd)
            if reason := self._made_by_tools(folder, {name for name, _ in names}):
                self.frozen.excluded.append(Skipped(to_key(folder), "vendored", reason))
                continue
            for name, is_folder in names:
                if not is_folder:
                    self._take(folder + name, None, True)
                elif name in _VERSION_CONTROL:
                    self.frozen.excluded.append(Skipped(to_key(folder + name + b"/"), "vendored", "version control"))
                elif name in _MADE_BY_TOOLS:
                    self.frozen.excluded.append(Skipped(to_key(folder + name + b"/"), "vendored", "made by tools"))
                else:
                    pending.append(folder + name + b"/")
            if len(self.frozen.files) > FOLDER_FILES_LIMIT:
                raise UsageError(
                    f"{str(self._root)!r} holds more than {FOLDER_FILES_LIMIT} files", hint="give a smaller folder"
                )

    def _made_by_tools(self, folder: bytes, names: set[bytes]) -> str:
        if not folder:
            return ""
        if b"pyvenv.cfg" in names:
            return "a virtual environment"
        if b"CACHEDIR.TAG" in names:
            try:
                tag, _ = self._folder.read(folder + b"CACHEDIR.TAG", 4096)
            except OSError:
                return ""
            return "marked as a cache" if tag.startswith(_CACHE_TAG) else ""
        return ""

    def _take(self, path: bytes, record: Record | None, trust_modes: bool) -> None:
        """Hash what stands at a path now and note whether it differs from its index entry."""
        self._taken += 1
        if self._taken % _BEAT == 0:
            self._beat(self._taken)
        try:
            status = self._folder.lstat(path)
            if stat.S_ISDIR(status.st_mode):
                self.frozen.changed.add(path)  # a folder took the file's place; its files are listed on their own
                return
            recorded = file_mode(record[2].encode()) if record else "file"
            known = record[3] if record else ""
            mode = _mode_on_disk(status, recorded, trust_modes)
            data: bytes | None
            remembered = self._memory.get(path)
            if remembered is not None and remembered[0] == signature(status) and mode != "link":
                self.frozen.put(path, remembered[1], mode)
                self.frozen.signatures[path] = remembered[0]
                return
            if mode == "link":
                blob, data = self._link(path)
            else:
                blob, data, status = self._content(path)
                self.frozen.signatures[path] = signature(status)
        except OSError as error:
            self.frozen.changed.add(path)
            if not isinstance(error, FileNotFoundError):
                reason: SkipReason = "too_large" if isinstance(error, TooLarge) else "unreadable"
                self.frozen.excluded.append(Skipped(to_key(path), reason, error.strerror or str(error)))
            return
        if known and blob != known and data is not None and self._is_checkout_of(data, known):
            blob = known
        self.frozen.put(path, blob, mode)
        if record is None or blob != known or mode != recorded:
            self.frozen.changed.add(path)
            if self._store is not None and data is not None and blob != known and self._worth_storing(data):
                self._store(blob, data)

    def _worth_storing(self, data: bytes) -> bool:
        return not self._store_text_only or (len(data) <= TEXT_LIMIT_BYTES and not is_binary(data))

    def _is_checkout_of(self, data: bytes, known: str) -> bool:
        """Whether these bytes are what a checkout makes of a blob: lines that end in CRLF, or the file that an LFS
        pointer stands for. (The stat data usually tells before; not in a copied repository.)"""
        candidates = [lfs_pointer_to(data)]
        if b"\r\n" in data:
            candidates.append(data.replace(b"\r\n", b"\n"))
        return any(object_id(self._format, "blob", candidate) == known for candidate in candidates)

    def _link(self, path: bytes) -> tuple[str, bytes]:
        target = self._folder.read_link(path)
        return object_id(self._format, "blob", target), target

    def _content(self, path: bytes) -> tuple[str, bytes | None, os.stat_result]:
        try:
            data, status = self._folder.read(path, READ_LIMIT_BYTES)
        except TooLarge:
            return self._huge(path)
        return object_id(self._format, "blob", data), data, status

    def _huge(self, path: bytes) -> tuple[str, None, os.stat_result]:
        fd, status = self._folder.open(path)
        try:
            if status.st_size > HASH_LIMIT_BYTES:
                raise TooLarge(status.st_size)
            made = hasher(self._format, "blob", status.st_size)
            left = status.st_size
            while left and (piece := os.read(fd, min(left, 1 << 20))):
                made.update(piece)
                left -= len(piece)
            if left:
                raise OSError("shrank while it was read")
            return made.hexdigest(), None, status
        finally:
            os.close(fd)


def _mode_on_disk(status: os.stat_result, recorded: FileMode, trust_modes: bool) -> FileMode:
    if stat.S_ISLNK(status.st_mode):
        return "link"
    if not trust_modes:
        return recorded if recorded in ("file", "executable") else "file"
    return "executable" if status.st_mode & stat.S_IXUSR else "file"
