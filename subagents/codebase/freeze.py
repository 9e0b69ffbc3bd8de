"""Freezing: which bytes stand in the working tree now, as a git tree, without asking git to look at the files.

`git status`, `git add` and `git diff` run the repository's filters and monitors and may write its index. So git only
lists what its index says (with the stat data it recorded) and which files are untracked and not ignored; whether a
file changed is decided here, by stat data first and by hashing its raw bytes where that leaves a doubt.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from manifests.errors import UsageError
from subagents.codebase.confined import ConfinedFolder, Outside, Signature, TooLarge
from subagents.codebase.gitrun import Git, ObjectFormat
from subagents.codebase.objects import TreeFile, file_mode, hasher, object_id
from subagents.codebase.paths import to_key
from subagents.codebase.types import FileMode, Skipped

READ_LIMIT_BYTES = 64 * 1024 * 1024
"""Larger files are hashed piece by piece, never stored and never read."""
FOLDER_FILES_LIMIT = 1_000_000

_ENTRY = re.compile(
    rb"(\d{6}) ([0-9a-f]+) ([0-3])\t([^\0]+)\0  ctime: (\d+):(\d+)\n  mtime: (\d+):(\d+)\n"
    rb"  dev: \d+\tino: (\d+)\n  uid: \d+\tgid: \d+\n  size: (\d+)\tflags: ([0-9a-f]+)\n"
)
_SKIP_WORKTREE = 0x40000000
_VERSION_CONTROL = frozenset({b".git", b".hg", b".svn", b".bzr", b".jj", b".sl", b".pijul", b"_darcs", b"CVS"})
_MADE_BY_TOOLS = frozenset({b"node_modules", b"__pycache__", b"bower_components", b".tox", b".nox"})
_CACHE_TAG = b"Signature: 8a477f597d28d172789f06886806bc55"

Store = Callable[[str, bytes], None]
"""Called with id and content of each blob that the repository may not have."""


@dataclass(slots=True)
class Frozen:
    """`files` is every path with what it holds; `signatures` the state of the files whose bytes are known to be so."""

    files: dict[bytes, TreeFile] = field(default_factory=dict)
    signatures: dict[bytes, Signature] = field(default_factory=dict)
    changed: set[bytes] = field(default_factory=set)
    """Paths whose content differs from the index, or is not in it."""
    excluded: list[Skipped] = field(default_factory=list)
    """What lies in the folder and is not part of the snapshot, and why."""


@dataclass(frozen=True, slots=True)
class _IndexEntry:
    mode: FileMode
    blob: str
    ctime_ns: int
    mtime_ns: int
    inode: int
    size: int
    absent_on_purpose: bool

    def matches(self, status: os.stat_result) -> bool:
        return (
            self.mtime_ns == status.st_mtime_ns
            and self.size == status.st_size & 0xFFFFFFFF
            and self.ctime_ns == status.st_ctime_ns
            and self.inode == status.st_ino & 0xFFFFFFFF
        )


def _read_index(git: Git) -> tuple[dict[bytes, _IndexEntry], set[bytes]]:
    """Entries by path, and the paths in conflict (which have no single entry)."""
    listed = git.run(["ls-files", "--stage", "--debug", "-z"])
    entries: dict[bytes, _IndexEntry] = {}
    conflicts: set[bytes] = set()
    for mode, blob, stage, path, c_s, c_ns, m_s, m_ns, inode, size, flags in _ENTRY.findall(listed):
        if stage != b"0":
            conflicts.add(path)
            continue
        entries[path] = _IndexEntry(
            file_mode(mode),
            blob.decode(),
            int(c_s) * 1_000_000_000 + int(c_ns),
            int(m_s) * 1_000_000_000 + int(m_ns),
            int(inode),
            int(size),
            bool(int(flags, 16) & _SKIP_WORKTREE),
        )
    return entries, conflicts


def _untracked(git: Git, exclude_files: Iterable[Path]) -> list[bytes]:
    """Untracked, non-ignored paths; a nested repository ends in `/`."""
    args: list[str | bytes] = ["ls-files", "--others", "-z", "--exclude-per-directory=.gitignore"]
    for file in exclude_files:
        args += ["-X", os.fsencode(file)]
    return [path for path in git.run(args).split(b"\0") if path]


class Freezer:
    """Freezes one working tree. `store` receives what has to be kept outside the repository."""

    def __init__(self, root: Path, object_format: ObjectFormat, store: Store | None) -> None:
        self._root = root
        self._format = object_format
        self._store = store
        self._folder = ConfinedFolder(root)
        self.frozen = Frozen()

    def close(self) -> None:
        self._folder.close()

    def from_index(self, git: Git, *, index_mtime_ns: int, trust_modes: bool, exclude_files: Iterable[Path]) -> Frozen:
        """The working tree of a repository: index entries as they are on disk now, and untracked files."""
        entries, conflicts = _read_index(git)
        for path in sorted(entries):
            entry = entries[path]
            if entry.mode == "submodule" or entry.absent_on_purpose:
                self.frozen.files[path] = TreeFile(entry.mode, entry.blob)
                continue
            try:
                status = self._folder.lstat(path)
            except OSError:
                self.frozen.changed.add(path)  # deleted, or a link stands where its folder was
                continue
            mode = _mode_on_disk(status, entry.mode, trust_modes)
            if entry.matches(status) and mode == entry.mode and entry.mtime_ns < index_mtime_ns:
                self.frozen.files[path] = TreeFile(mode, entry.blob)
                self.frozen.signatures[path] = Signature.of(status)
            else:
                self._take(path, entry, trust_modes)
        for path in sorted(conflicts.union(_untracked(git, exclude_files))):
            if path.endswith(b"/"):
                self.frozen.excluded.append(Skipped(to_key(path), "submodule", "a repository of its own"))
            else:
                self._take(path, None, trust_modes)
        self.frozen.files = dict(sorted(self.frozen.files.items()))
        return self.frozen

    def from_folder(self, only: bytes = b"") -> Frozen:
        """A plain folder: everything but version control folders and what tools mark as made by them."""
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
            parts = folder.split(b"/")[:-1]
            try:
                fd = os.dup(self._folder.folder(parts))
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

    def _take(self, path: bytes, entry: _IndexEntry | None, trust_modes: bool) -> None:
        """Hash what stands at a path now and note whether it differs from its index entry."""
        try:
            status = self._folder.lstat(path)
            if stat.S_ISDIR(status.st_mode):
                self.frozen.changed.add(path)  # a folder took the file's place; its files are listed on their own
                return
            mode = _mode_on_disk(status, entry.mode if entry else "file", trust_modes)
            data: bytes | None
            if mode == "link":
                blob, data = self._link(path)
            else:
                blob, data, status = self._content(path)
        except OSError as error:
            self.frozen.changed.add(path)
            if not isinstance(error, FileNotFoundError):
                detail = str(error) if isinstance(error, Outside) else error.strerror or str(error)
                self.frozen.excluded.append(Skipped(to_key(path), "unreadable", detail))
            return
        if entry is not None and mode != "link" and blob != entry.blob and data is not None:
            unfiltered = self._with_unix_lines(data)
            if unfiltered is not None and object_id(self._format, "blob", unfiltered) == entry.blob:
                blob = entry.blob  # checked out with CRLF, as core.autocrlf or an attribute asks
        self.frozen.files[path] = TreeFile(mode, blob)
        if mode != "link":
            self.frozen.signatures[path] = Signature.of(status)
        if entry is None or blob != entry.blob or mode != entry.mode:
            self.frozen.changed.add(path)
            if self._store is not None and data is not None and (entry is None or blob != entry.blob):
                self._store(blob, data)

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

    @staticmethod
    def _with_unix_lines(data: bytes) -> bytes | None:
        return data.replace(b"\r\n", b"\n") if b"\r\n" in data else None


def _mode_on_disk(status: os.stat_result, recorded: FileMode, trust_modes: bool) -> FileMode:
    if stat.S_ISLNK(status.st_mode):
        return "link"
    if not trust_modes:
        return recorded if recorded in ("file", "executable") else "file"
    return "executable" if status.st_mode & stat.S_IXUSR else "file"
