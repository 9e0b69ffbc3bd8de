"""Reading the bytes of a snapshot: from the working tree while it still holds them, else from git's objects.

Whatever is returned hashes to the blob asked for, so neither a changed file nor a link that was swapped in can show
anything that is not part of the snapshot. Readers hold paths only until used, so they can be sent to other processes.
"""

from __future__ import annotations

import os
import select
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from subagents.codebase.confined import ConfinedFolder, read_all
from subagents.codebase.freeze import READ_LIMIT_BYTES
from subagents.codebase.gitrun import Git, stop
from subagents.codebase.objects import object_id
from subagents.codebase.types import CannotRead, FileEntry, Skipped

_REPLY_TIMEOUT_S = 30.0
_BATCH = 256
"""Requests written before replies are read; they must fit into a pipe (64 KiB) so that neither side blocks."""


_Reply = TypeVar("_Reply")


_Opener = Callable[[bytes], tuple[int, os.stat_result]]


class _NoReply(Exception):
    """cat-file died or did not answer."""


class _CatFile:
    """One `git cat-file` process in batch mode, started again after it died on a damaged object."""

    def __init__(self, git: Git, mode: str) -> None:
        self._git = git
        self._mode = mode
        self._nothing = "0" * (64 if git.object_format == "sha256" else 40)
        self._end = f"{self._nothing} missing\n".encode()
        self._process: subprocess.Popen[bytes] | None = None
        self._buffer = bytearray()

    def ask(self, names: Sequence[str]) -> None:
        """Request objects. After the last reply comes one for an object that cannot exist: see `finish`."""
        if self._process is None:
            self._process = self._git.interactive(["cat-file", self._mode])
            self._buffer.clear()
        assert self._process.stdin is not None
        try:
            self._process.stdin.write("".join(f"{name}\n" for name in (*names, self._nothing)).encode())
            self._process.stdin.flush()
        except OSError as error:
            raise _NoReply from error

    def line(self) -> bytes:
        while (end := self._buffer.find(b"\n")) < 0:
            self._fill(65536)
        found = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return found

    def exactly(self, size: int) -> bytes:
        while len(self._buffer) < size:
            self._fill(max(65536, size - len(self._buffer)))
        found = bytes(self._buffer[:size])
        del self._buffer[:size]
        return found

    def finish(self) -> None:
        """All replies were read; if git thinks otherwise, begin anew with another process."""
        if self.line() + b"\n" != self._end:
            raise _NoReply

    def _fill(self, wanted: int) -> None:
        assert self._process is not None and self._process.stdout is not None
        if self._buffer.endswith(self._end):
            raise _NoReply  # an object is shorter than it claims: what is missing will never come
        fd = self._process.stdout.fileno()
        ready = select.poll()
        ready.register(fd, select.POLLIN)
        if not ready.poll(_REPLY_TIMEOUT_S * 1000):
            raise _NoReply
        piece = os.read(fd, min(wanted, 1 << 20))
        if not piece:
            raise _NoReply
        self._buffer += piece

    def close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            stop(process)


class ObjectReader:
    """Blobs out of the object database, sizes checked before anything is loaded. Thread-safe."""

    def __init__(self, git: Git, limit: int = READ_LIMIT_BYTES) -> None:
        self._git = git
        self._limit = limit
        self._lock = threading.Lock()
        self._check = _CatFile(git, "--batch-check")
        self._content = _CatFile(git, "--batch")

    def read(self, blobs: Sequence[str]) -> list[bytes | str]:
        """For each blob its bytes, or why there are none (`too_large:<size>`, or a message)."""
        with self._lock:
            found: list[bytes | str] = []
            for start in range(0, len(blobs), _BATCH):
                found += self._read_batch(blobs[start : start + _BATCH])
            return found

    def _read_batch(self, blobs: Sequence[str]) -> list[bytes | str]:
        sizes = self._sizes(blobs)
        good = [blob for blob, size in zip(blobs, sizes, strict=True) if isinstance(size, int)]
        contents = iter(self._contents(good))
        return [next(contents) if isinstance(size, int) else size for size in sizes]

    def _sizes(self, blobs: Sequence[str]) -> list[int | str]:
        found: list[int | str] = []
        self._replies(self._check, blobs, found, self._size)
        return found

    def _contents(self, blobs: Sequence[str]) -> list[bytes | str]:
        found: list[bytes | str] = []
        self._replies(self._content, blobs, found, self._one)
        return found

    def _replies(
        self, source: _CatFile, blobs: Sequence[str], found: list[_Reply], take: Callable[[str], _Reply]
    ) -> None:
        """One reply for each blob. A damaged object costs its own reply and a new process, not those of the others."""
        while len(found) < len(blobs):
            try:
                source.ask(blobs[len(found) :])
                while len(found) < len(blobs):
                    found.append(take(blobs[len(found)]))
                source.finish()
            except _NoReply:
                source.close()
                if len(found) < len(blobs):
                    found.append("damaged object")  # type: ignore[arg-type]

    def _size(self, blob: str) -> int | str:
        words = self._check.line().split(b" ")
        if words[0] != blob.encode():
            raise _NoReply
        if len(words) != 3 or words[1] != b"blob":
            return "missing object" if words[1:] == [b"missing"] else "no blob"
        size = int(words[2])
        return f"too_large:{size}" if size > self._limit else size

    def _one(self, blob: str) -> bytes | str:
        words = self._content.line().split(b" ")
        if words[1:] == [b"missing"]:
            return "missing object"
        if words[0] != blob.encode() or len(words) != 3 or int(words[2]) > self._limit:
            raise _NoReply
        data = self._content.exactly(int(words[2]) + 1)[:-1]
        if object_id(self._git.object_format, "blob", data) != blob:
            raise _NoReply  # its size may be a lie too, so what follows could be anything
        return data

    def close(self) -> None:
        with self._lock:
            self._check.close()
            self._content.close()


class BlobReader:
    """Verified bytes of entries. Thread-safe; can be pickled (each process then starts its own git when needed)."""

    def __init__(self, root: Path | None, git: Git, limit: int = READ_LIMIT_BYTES) -> None:
        self._root = root
        self._git = git
        self._limit = limit
        self._objects = ObjectReader(git, limit)
        self._lock = threading.Lock()
        self._folder = ConfinedFolder(root) if root is not None else None

    def __getstate__(self) -> tuple[Path | None, Git, int]:
        return self._root, self._git, self._limit

    def __setstate__(self, state: tuple[Path | None, Git, int]) -> None:
        self.__init__(*state)  # type: ignore[misc]

    def close(self) -> None:
        """Release folders and end git; may be called twice, and reading again afterwards works."""
        self._objects.close()
        with self._lock:
            if self._folder is not None:
                self._folder.close()

    def read(self, entry: FileEntry) -> bytes:
        """The bytes of one entry. Raises CannotRead."""
        found: bytes | Skipped | None = _not_a_file(entry)
        if found is None:
            found = self._from_working_tree(self._open_shared, entry)
        if found is None:
            found = self._explain(entry, self._objects.read([entry.blob])[0])
        if isinstance(found, Skipped):
            raise CannotRead(found)
        return found

    def _open_shared(self, raw: bytes) -> tuple[int, os.stat_result]:
        """Open a file from the folder that the last read left open; reading itself needs no lock."""
        with self._lock:
            if self._folder is None:
                raise FileNotFoundError
            return self._folder.open(raw)

    def read_many(self, entries: Iterable[FileEntry]) -> Iterator[tuple[FileEntry, bytes | Skipped]]:
        """Each entry, in order, with its bytes or the reason why it has none."""
        if self._root is None:
            yield from self._from_objects(entries)
            return
        with ConfinedFolder(self._root) as folder:
            for entry in entries:
                refused = _not_a_file(entry)
                if refused is not None:
                    yield entry, refused
                    continue
                data = self._from_working_tree(folder.open, entry)
                yield entry, data if data is not None else self._explain(entry, self._objects.read([entry.blob])[0])

    def _from_working_tree(self, open_it: _Opener, entry: FileEntry) -> bytes | None:
        """The file's bytes if they are the entry's; None if it is gone, a link, unreadable, too large or changed."""
        try:
            fd, status = open_it(entry.raw)
        except OSError:
            return None
        try:
            data = read_all(fd, status.st_size, self._limit)
        except OSError:
            return None
        finally:
            os.close(fd)
        return data if object_id(self._git.object_format, "blob", data) == entry.blob else None

    def _from_objects(self, entries: Iterable[FileEntry]) -> Iterator[tuple[FileEntry, bytes | Skipped]]:
        batch: list[FileEntry] = []
        for entry in entries:
            batch.append(entry)
            if len(batch) == _BATCH:
                yield from self._batch(batch)
                batch = []
        yield from self._batch(batch)

    def _batch(self, batch: list[FileEntry]) -> Iterator[tuple[FileEntry, bytes | Skipped]]:
        refused = [_not_a_file(entry) for entry in batch]
        wanted = [entry.blob for entry, no in zip(batch, refused, strict=True) if no is None]
        replies = iter(self._objects.read(wanted))
        for entry, no in zip(batch, refused, strict=True):
            yield entry, no if no is not None else self._explain(entry, next(replies))

    def _explain(self, entry: FileEntry, reply: bytes | str) -> bytes | Skipped:
        if isinstance(reply, bytes):
            return reply
        reason, _, size = reply.partition(":")
        if reason == "too_large":
            return Skipped(entry.path, "too_large", f"{size} bytes")
        if self._root is not None and reply == "missing object":
            size_now = self._size_now(entry)
            if size_now > self._limit:
                return Skipped(entry.path, "too_large", f"{size_now} bytes")
            return Skipped(entry.path, "changed_while_reading", "the file changed since the snapshot was taken")
        return Skipped(entry.path, "unreadable", reply)

    def _size_now(self, entry: FileEntry) -> int:
        assert self._root is not None
        with ConfinedFolder(self._root) as folder:
            try:
                return folder.lstat(entry.raw).st_size
            except OSError:
                return 0


def _not_a_file(entry: FileEntry) -> Skipped | None:
    if entry.mode == "link":
        return Skipped(entry.path, "link", "links are not followed")
    if entry.mode == "submodule":
        return Skipped(entry.path, "submodule", "a repository of its own")
    return None
