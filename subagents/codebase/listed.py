"""What git's index lists, and how it differs from HEAD: asked of git once for each state of the index, then remembered.

The answers depend on nothing but the index file and the commit, so they hold for as long as the index is the very same
file, as far as the file system tells, and was old enough when it was listed that a later change must have given it
other times. They say nothing about the working tree: whether a file is as git saw it is decided anew each time. The
memory lies in the cache and may be deleted at any time; when it is damaged git is asked again.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from subagents.codebase.confined import Signature, signature
from subagents.codebase.gitrun import Git
from subagents.codebase.paths import from_key, to_key

_TIMEOUT_S = 60.0
_HEADER = b"leadline index 1\n"
_YOUNG_NS = 2_000_000_000
_SKIP_WORKTREE = 0x40000000
_ENTRY = re.compile(
    rb"(\d{6}) ([0-9a-f]+) ([0-3])\t([^\0]+)\0  ctime: (\d+):(\d+)\n  mtime: (\d+):(\d+)\n"
    rb"  dev: \d+\tino: (\d+)\n  uid: \d+\tgid: \d+\n  size: (\d+)\tflags: ([0-9a-f]+)\n"
)

Record = tuple[bytes, str, str, str, int, int, int, int, bool]
"""One file of the index: path and its key, git mode, blob; as git saw it: change time and modification time
(nanoseconds), inode, size; and whether a sparse checkout left it out. Plain tuples: there are as many as the repository
has files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    records: tuple[Record, ...]
    """Sorted by path."""
    conflicts: frozenset[bytes]
    """Paths in conflict, which have no single record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """A commit, its tree, and the paths at which the index differs from it."""

    commit: str
    tree: str
    staged: frozenset[bytes]


class IndexMemory:
    """Answers about one index file, remembered in `file` (None: not at all). Made for one opening of a snapshot."""

    def __init__(self, git: Git, file: Path | None) -> None:
        self._git = git
        self._file = file
        self._began_ns = time.time_ns()
        self._index = _signature(git.index)
        """Taken before anything is asked: what comes of a later state is filed under one that never comes back."""
        self._known = _load(file) if file is not None else {}
        if self._known.get("index") != list(self._index or ()):
            self._known = {}
        self._is_new = not self._known

    def listing(self) -> Listing:
        """Raises GitFailed, UsageError."""
        with suppress(KeyError, TypeError, ValueError):
            return _unpacked(self._known["listing"])
        made = _listed(self._git)
        self._known["listing"] = _packed(made)
        self._is_new = True
        return made

    def head(self, commit: str) -> Head:
        """Raises GitFailed, UsageError."""
        with suppress(KeyError, TypeError, ValueError):
            head = self._known["head"]
            if head["commit"] == commit:
                return Head(commit=commit, tree=head["tree"], staged=frozenset(map(from_key, head["staged"])))
        words = self._git.run(
            ["diff-index", "--cached", "--raw", "-z", "--no-renames", "--no-ext-diff", commit, "--"]
        ).split(b"\0")
        made = Head(commit=commit, tree=tree_of(self._git, commit), staged=frozenset(words[1::2]))
        self._known["head"] = {"commit": commit, "tree": made.tree, "staged": [to_key(path) for path in made.staged]}
        self._is_new = True
        return made

    def save(self) -> None:
        """Keep what was asked. A cache that cannot be written is no error: it costs time only."""
        if self._file is None or self._index is None or not self._is_new:
            return
        if max(self._index[2], self._index[3]) < self._began_ns - _YOUNG_NS:
            _save(self._file, {**self._known, "index": self._index})


def tree_of(git: Git, commit: str) -> str:
    return git.run(["rev-parse", "--verify", "--end-of-options", f"{commit}^{{tree}}"]).decode().strip()


def _signature(index: Path | None) -> Signature | None:
    if index is None:
        return None
    try:
        return signature(index.lstat())
    except OSError:
        return None


def _listed(git: Git) -> Listing:
    records: list[Record] = []
    conflicts: set[bytes] = set()
    listed = git.run(["ls-files", "--stage", "--debug", "-z"], timeout_s=_TIMEOUT_S)
    for mode, blob, stage, path, changed, changed_ns, modified, modified_ns, inode, size, flags in _ENTRY.findall(
        listed
    ):
        if stage != b"0":
            conflicts.add(path)
            continue
        records.append(
            (
                path,
                to_key(path),
                mode.decode(),
                blob.decode(),
                int(changed) * 1_000_000_000 + int(changed_ns),
                int(modified) * 1_000_000_000 + int(modified_ns),
                int(inode),
                int(size),
                len(flags) > 7 and bool(int(flags, 16) & _SKIP_WORKTREE),
            )
        )
    return Listing(records=tuple(records), conflicts=frozenset(conflicts))


def _packed(listing: Listing) -> dict[str, Any]:
    columns = [list(column) for column in zip(*listing.records, strict=True)] or [[] for _ in range(9)]
    return {
        "records": columns[1:],
        "conflicts": [to_key(path) for path in listing.conflicts],
    }


def _unpacked(stored: Mapping[str, Any]) -> Listing:
    keys, *columns = stored["records"]
    paths = [key.encode() if "\\" not in key else from_key(key) for key in keys]
    return Listing(
        records=tuple(zip(paths, keys, *columns, strict=True)),
        conflicts=frozenset(map(from_key, stored["conflicts"])),
    )


def _load(file: Path) -> dict[str, Any]:
    """What was saved; empty when there is nothing or it is damaged."""
    import orjson

    try:
        content = file.read_bytes()
    except OSError:
        return {}
    start = len(_HEADER) + 32
    body = memoryview(content)[start:]
    if content[:start] != _HEADER + _checksum(body):
        return {}
    found = orjson.loads(body)
    return found if isinstance(found, dict) else {}


def _save(file: Path, known: Mapping[str, Any]) -> None:
    import orjson

    body = orjson.dumps(known)
    with suppress(OSError):
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd, temporary = tempfile.mkstemp(dir=file.parent)
        try:
            with os.fdopen(fd, "wb") as target:
                target.write(_HEADER + _checksum(body) + body)
            Path(temporary).replace(file)
        except OSError:
            Path(temporary).unlink(missing_ok=True)
            raise


def _checksum(body: bytes | memoryview) -> bytes:
    return hashlib.blake2b(body, digest_size=32).digest()
