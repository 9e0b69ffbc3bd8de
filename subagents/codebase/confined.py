"""Reading below a root folder without ever leaving it.

Each part of a path is opened relative to the folder before it and links are refused at every step, so a link that is
put in place between a check and the opening leads nowhere. Only regular files are read, and only up to a limit.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from types import TracebackType

from manifests.errors import UsageError
from subagents.codebase.paths import is_plain

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


class Outside(OSError):
    """The path is not a plain relative one, or something on the way is a link or no regular file."""


class TooLarge(OSError):
    """The file has more bytes than the limit; `size` says how many."""

    def __init__(self, size: int) -> None:
        super().__init__(f"{size} bytes")
        self.size = size


Signature = tuple[int, int, int, int, int]
"""What changes when a file's content does, as far as the file system tells: inode, size, times, mode."""


def signature(status: os.stat_result) -> Signature:
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_mode


class ConfinedFolder:
    """Opens files below `root`. Not thread-safe: it keeps the chain of folders of the last path open.

    Reading paths in order therefore opens each folder about once. `close` releases the chain; it may be called twice
    and the object can be used again afterwards.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._chain: list[tuple[bytes, int]] = []
        self._root_fd = -1
        self._current: bytes | None = None  # the folder that the chain leads to, once it does

    def __enter__(self) -> ConfinedFolder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        for _, fd in self._chain:
            os.close(fd)
        self._chain.clear()
        if self._root_fd >= 0:
            os.close(self._root_fd)
            self._root_fd = -1

    def folder(self, raw: bytes) -> int:
        """Descriptor of a folder (empty: the root), owned by this object, valid until the next call. Raises OSError."""
        if raw == self._current and self._root_fd >= 0:
            return self._chain[-1][1] if self._chain else self._root_fd
        if raw and not is_plain(raw):
            raise Outside("not a path below the root")
        self._current = None
        if self._root_fd < 0:
            self._root_fd = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        parts = raw.split(b"/") if raw else []
        shared = 0
        for (name, _), part in zip(self._chain, parts, strict=False):
            if name != part:
                break
            shared += 1
        while len(self._chain) > shared:
            os.close(self._chain.pop()[1])
        for part in parts[shared:]:
            fd = os.open(part, _FOLDER, dir_fd=self._chain[-1][1] if self._chain else self._root_fd)
            self._chain.append((part, fd))
        self._current = raw
        return self._chain[-1][1] if self._chain else self._root_fd

    def lstat(self, raw: bytes) -> os.stat_result:
        """Status of the path itself, not following links. Raises OSError."""
        parent, name = _split(raw)
        return os.stat(name, dir_fd=self.folder(parent), follow_symlinks=False)

    def open(self, raw: bytes) -> tuple[int, os.stat_result]:
        """Descriptor (the caller closes it) and status of a regular file. Raises OSError, Outside for anything else."""
        parent, name = _split(raw)
        fd = os.open(name, _FILE, dir_fd=self.folder(parent))
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            os.close(fd)
            raise Outside("not a regular file")
        return fd, status

    def read(self, raw: bytes, limit: int) -> tuple[bytes, os.stat_result]:
        """Content and status (as of before reading) of a regular file. Raises OSError, TooLarge above the limit."""
        fd, status = self.open(raw)
        try:
            return read_all(fd, status.st_size, limit), status
        finally:
            os.close(fd)

    def read_link(self, raw: bytes) -> bytes:
        """Target of a symbolic link, which is not followed. Raises OSError."""
        parent, name = _split(raw)
        return os.readlink(name, dir_fd=self.folder(parent))


def _split(raw: bytes) -> tuple[bytes, bytes]:
    folder, _, name = raw.rpartition(b"/")
    if name in (b"", b".", b"..") or b"\0" in name or raw.startswith(b"/"):
        raise Outside("not a path below the root")
    return folder, name


def read_all(fd: int, expected: int, limit: int) -> bytes:
    """Everything a descriptor gives; TooLarge above the limit, also once a growing file passes it."""
    if expected > limit:
        raise TooLarge(expected)
    data = os.read(fd, expected + 1)
    if len(data) == expected:
        return data
    pieces = [data]
    total = len(data)
    while piece := os.read(fd, 1 << 20):
        pieces.append(piece)
        total += len(piece)
        if total > limit:
            raise TooLarge(total)
    return b"".join(pieces)


def read_small(root: Path, raw: bytes, limit: int = 1 << 20) -> bytes | None:
    """Content of a small regular file below a root, or None when it is not there or not such a file.

    Raises UsageError when it cannot be read or is larger than it may be.
    """
    with ConfinedFolder(root) as folder:
        try:
            return folder.read(raw, limit)[0]
        except (FileNotFoundError, NotADirectoryError, Outside):
            return None
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENXIO):
                return None  # a link, or a socket
            name = str(root / os.fsdecode(raw))
            raise UsageError(
                f"cannot read {name!r}: {error.strerror or error}", hint="check it and its permissions"
            ) from error
