"""The files of the indexed snapshot as ranking sees them, in one row: paths, blobs, what paths say, imports.

Reading thousands of rows and joining them takes longer than answering a question; one row of arrays takes a
millisecond. The row is written in the transaction that publishes the snapshot, so it is always of that snapshot. What
was told of a path is taken over from the row before: a change of `roles` or `words` therefore needs a new `version` of
the extra, like any change of what is stored for ranking.
"""

from __future__ import annotations

import sqlite3
import struct
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from subagents.ranking.pathfacts import FACE, ROLES, PathFacts, path_facts, tell

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SCHEMA = "CREATE TABLE IF NOT EXISTS terms_listing (id INTEGER PRIMARY KEY, data BLOB NOT NULL)"

_HEADER = struct.Struct("<4I")
"""files, path terms, imports, checksum of what follows: u32 blobs[files], keys[terms], sources and targets[imports],
u16 sizes[files], u8 parts[files], then the paths, UTF-8, NUL between them; all in path order, little endian."""


_NOTHING = _HEADER.pack(0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Imports:
    """The import graph as parallel arrays of files, sorted by source and target, each pair once."""

    sources: NDArray[np.int64]
    targets: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Listing:
    """All files that were read, in path order."""

    paths: tuple[str, ...]
    blobs: NDArray[np.int64]
    facts: PathFacts
    imports: Imports


def update(connection: sqlite3.Connection) -> None:
    """Write the row of the snapshot being published; called as part of `finish`."""
    from subagents.index.store import EDGE_BITS

    connection.execute(SCHEMA)
    known: dict[str, tuple[int, list[int]]] = {}
    row = connection.execute("SELECT data FROM terms_listing").fetchone()
    with suppress(ValueError):  # damaged: everything is told anew
        before = decode(row[0] if row else _NOTHING)
        keys, end = before.facts.keys.tolist(), 0
        for path, part, size in zip(before.paths, before.facts.part.tolist(), before.facts.size.tolist(), strict=True):
            known[path] = part, keys[end : end + size]
            end += size
    files: list[tuple[int, str, int]] = connection.execute(
        "SELECT f.id, f.path, f.blob FROM file f JOIN blob b ON b.id = f.blob WHERE b.is_read = 1 ORDER BY f.path"
    ).fetchall()
    place = {number: at for at, (number, _, _) in enumerate(files)}
    mask = (1 << EDGE_BITS) - 1
    edges = [(key >> EDGE_BITS, key & mask) for (key,) in connection.execute("SELECT key FROM import_out")]
    pairs = sorted((place[s], place[t]) for s, t in edges if s in place and t in place and s != t)
    told = [known.get(path) or tell(path) for _, path, _ in files]
    data = encode([path for _, path, _ in files], [blob for _, _, blob in files], path_facts(told), pairs)
    connection.execute("INSERT OR REPLACE INTO terms_listing VALUES (1, ?)", (data,))


def replace_blobs(connection: sqlite3.Connection, edited: Mapping[str, int]) -> bool:
    """Write other blobs of some paths into the row, all else being as before. False: there is no such row."""
    connection.execute(SCHEMA)
    found = connection.execute("SELECT data FROM terms_listing").fetchone()
    if found is None:
        return False
    with suppress(ValueError):  # damaged: the caller makes it anew
        known = decode(found[0])
        body = bytearray(found[0][_HEADER.size :])
        place = {path: at for at, path in enumerate(known.paths)}
        for path, blob in edited.items():
            if path in place:
                struct.pack_into("<I", body, 4 * place[path], blob)
        head = _HEADER.unpack_from(found[0])[:3]
        connection.execute("UPDATE terms_listing SET data = ?", (_HEADER.pack(*head, zlib.crc32(body)) + body,))
        return True
    return False


def encode(paths: Sequence[str], blobs: Sequence[int], facts: PathFacts, imports: Sequence[tuple[int, int]]) -> bytes:
    import numpy as np

    body = b"".join([
        np.array(blobs, "<u4").tobytes(),
        facts.keys.astype("<u4").tobytes(),
        np.array([source for source, _ in imports], "<u4").tobytes(),
        np.array([target for _, target in imports], "<u4").tobytes(),
        facts.size.astype("<u2").tobytes(),
        facts.part.tobytes(),
        "\0".join(paths).encode(),
    ])  # fmt: skip
    return _HEADER.pack(len(paths), len(facts.keys), len(imports), zlib.crc32(body)) + body


def decode(data: bytes) -> Listing:
    """The inverse of `encode`. Raises ValueError for bytes that are no listing."""
    import numpy as np

    if len(data) < _HEADER.size:
        raise ValueError("not a listing: too short")
    files, terms, edges, checksum = _HEADER.unpack_from(data)
    if zlib.crc32(memoryview(data)[_HEADER.size :]) != checksum:
        raise ValueError("not a listing: its checksum is wrong")
    at = _HEADER.size

    def take(kind: str, count: int) -> NDArray[Any]:
        nonlocal at
        array = np.frombuffer(data, kind, count, at)
        at += array.nbytes
        return array

    blobs, keys = take("<u4", files).astype(np.int64), take("<u4", terms)
    imports = Imports(take("<u4", edges).astype(np.int64), take("<u4", edges).astype(np.int64))
    size, part = take("<u2", files).astype(np.int64), take("u1", files)
    paths = tuple(data[at:].decode().split("\0")) if files else ()
    if len(paths) != files or int(size.sum()) != terms or (files and int((part % FACE).max()) >= len(ROLES)):
        raise ValueError("not a listing: its counts do not agree")
    return Listing(paths, blobs, PathFacts(part, size, keys, np.repeat(np.arange(files), size)), imports)
