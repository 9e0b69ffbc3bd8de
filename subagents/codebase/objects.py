"""Git objects made by ourselves: ids, trees and packs, from raw bytes.

git would run the repository's filters to store a file of the working tree; here the bytes are taken as they are.
"""

from __future__ import annotations

import hashlib
import struct
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from typing import IO

from subagents.codebase.gitrun import Git, ObjectFormat
from subagents.codebase.types import FileEntry, FileMode

_PACK_TYPES = {"tree": 2, "blob": 3}
_COPY_BYTES = 1 << 20

GIT_MODES: dict[FileMode, bytes] = {
    "file": b"100644",
    "executable": b"100755",
    "link": b"120000",
    "submodule": b"160000",
}
FILE_MODES: dict[bytes, FileMode] = {mode: name for name, mode in GIT_MODES.items()}


def file_mode(git_mode: bytes) -> FileMode:
    """What a mode in a tree or an index stands for; old trees also know 100664."""
    return FILE_MODES.get(git_mode, "file")


def hasher(object_format: ObjectFormat, kind: str, size: int) -> hashlib._Hash:
    """A hash that has seen an object's header and waits for its content."""
    start = b"%s %d\0" % (kind.encode(), size)
    if object_format == "sha256":
        return hashlib.sha256(start)
    return hashlib.sha1(start, usedforsecurity=False)


def object_id(object_format: ObjectFormat, kind: str, data: bytes) -> str:
    made = hasher(object_format, kind, len(data))
    made.update(data)
    return made.hexdigest()


def trees(files: Iterable[FileEntry], object_format: ObjectFormat) -> Iterator[tuple[bytes, str, bytes]]:
    """Folder, id and content of all trees that hold these files, children first, the root (`b""`) last.

    `files` must be sorted by their paths' bytes: that is also the order git wants inside each tree.
    """
    open_folders: list[tuple[bytes, bytearray]] = [(b"", bytearray())]

    def close() -> tuple[bytes, str, bytes]:
        folder = b"/".join(name for name, _ in open_folders[1:])
        name, content = open_folders.pop()
        data = bytes(content)
        made = object_id(object_format, "tree", data)
        if open_folders:
            open_folders[-1][1].extend(b"40000 " + name + b"\0" + bytes.fromhex(made))
        return folder, made, data

    for file in files:
        *parents, name = file.raw.split(b"/")
        shared = 0
        for (open_name, _), parent in zip(open_folders[1:], parents, strict=False):
            if open_name != parent:
                break
            shared += 1
        while len(open_folders) > shared + 1:
            yield close()
        open_folders.extend((parent, bytearray()) for parent in parents[shared:])
        open_folders[-1][1].extend(GIT_MODES[file.mode] + b" " + name + b"\0" + bytes.fromhex(file.blob))
    while open_folders:
        yield close()


class PackWriter:
    """Collects objects in a temporary file and hands them to `git index-pack`, which checks and syncs them.

    Either all objects are in the store afterwards or none. `close` drops what was collected.
    """

    def __init__(self) -> None:
        self._body: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as this object
        self._seen: set[str] = set()

    def add(self, object_name: str, kind: str, data: bytes) -> None:
        if object_name in self._seen:
            return
        self._seen.add(object_name)
        self._body.write(_entry_header(_PACK_TYPES[kind], len(data)))
        self._body.write(zlib.compress(data, 1))

    def store(self, git: Git) -> None:
        """Write the pack into the view's own object folder. Raises GitFailed."""
        if not self._seen:
            return
        checksum = hashlib.sha256() if git.object_format == "sha256" else hashlib.sha1(usedforsecurity=False)
        self._body.seek(0)
        with tempfile.TemporaryFile() as pack:
            start = struct.pack(">4sII", b"PACK", 2, len(self._seen))
            checksum.update(start)
            pack.write(start)
            while piece := self._body.read(_COPY_BYTES):
                checksum.update(piece)
                pack.write(piece)
            pack.write(checksum.digest())
            pack.seek(0)
            git.run(["index-pack", "--stdin"], stdin=pack)

    def close(self) -> None:
        self._body.close()


def _entry_header(kind: int, size: int) -> bytes:
    first = (kind << 4) | (size & 15)
    size >>= 4
    made = bytearray()
    while size:
        made.append(first | 0x80)
        first = size & 0x7F
        size >>= 7
    made.append(first)
    return bytes(made)
