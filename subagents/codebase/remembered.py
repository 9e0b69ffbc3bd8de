"""What the files of a plain folder hashed to last time, so that looking again needs no reading.

A plain folder has no index that says which files are unchanged; this is one, kept in the cache. It may be deleted at
any time, and damage means that everything is hashed again. A file is remembered only if it was old enough when it was
hashed that a later change must have given it other times.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from subagents.codebase.confined import Signature

_HEADER = b"leadline folder 1\n"
_YOUNG_NS = 2_000_000_000

Memory = dict[bytes, tuple[Signature, str]]
"""Path to the state of the file when it was hashed, and its blob id."""


def load(file: Path) -> Memory:
    """What was saved; empty when there is nothing or it is damaged."""
    try:
        content = file.read_bytes()
    except OSError:
        return {}
    head, body = content[: len(_HEADER) + 64], content[len(_HEADER) + 64 :]
    if head != _HEADER + hashlib.sha256(body).hexdigest().encode():
        return {}
    found: Memory = {}
    for record in body.split(b"\0"):
        if record:
            inode, size, mtime, ctime, mode, blob, path = record.split(b" ", 6)
            found[path] = (int(inode), int(size), int(mtime), int(ctime), int(mode)), blob.decode()
    return found


def save(file: Path, memory: Mapping[bytes, tuple[Signature, str]], *, began_ns: int) -> None:
    """Replace what was saved. A cache that cannot be written is no error: it costs time only."""
    body = b"\0".join(
        b"%d %d %d %d %d %s %s" % (*signature, blob.encode(), path)
        for path, (signature, blob) in memory.items()
        if max(signature[2], signature[3]) < began_ns - _YOUNG_NS
    )
    with suppress(OSError):
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd, temporary = tempfile.mkstemp(dir=file.parent)
        try:
            with os.fdopen(fd, "wb") as target:
                target.write(_HEADER + hashlib.sha256(body).hexdigest().encode() + body)
            Path(temporary).replace(file)
        except OSError:
            Path(temporary).unlink(missing_ok=True)
            raise
