"""Whether the frozen tree of a session still is what was written: a bare repository of our own with packs in it.

git checks objects when it reads them, but not what it is told by configuration, nor objects that nobody asks for. All
of it is checked here without git: each pack and each index of one ends in the hash of the rest.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from manifests.durable import check_private_file, check_private_folder, explained, open_private
from manifests.errors import StateError
from subagents.codebase.gitrun import view_files

_PACKED = re.compile(r"objects/pack/pack-[0-9a-f]{40,64}\.(?:pack|idx|rev)")
_UNFINISHED = re.compile(r"objects/pack/tmp_[A-Za-z0-9_]+")
_BORROWED = re.compile(r"shallow|sharedindex\.[0-9a-f]{40,64}")
"""Copies of what the repository has, made anew at each opening."""
_FOLDERS = frozenset({"objects", "objects/pack", "objects/info", "refs", "refs/heads"})
_CHUNK_BYTES = 1 << 20
_LONGEST_HASH = 32


def damage_of(store: Path) -> Iterator[str]:
    """What is wrong with it, one line each. Nothing is changed."""
    for here, folders, files in os.walk(store):
        for name in sorted((*folders, *files)):
            path = Path(here, name)
            try:
                problem = _problem_of(path, path.relative_to(store).as_posix())
            except StateError as refusal:
                problem = str(refusal)
            if problem:
                yield problem


def _problem_of(path: Path, name: str) -> str:
    if path.is_dir() and not path.is_symlink():
        check_private_folder(path)
        return "" if name in _FOLDERS else f"{str(path)!r} is no folder of ours"
    check_private_file(path, path.lstat())
    if name in ("HEAD", "config"):
        with explained(path, "read"):
            written = path.read_bytes()
        if all(written != view_files(form)[name].encode() for form in ("sha1", "sha256")):
            return f"{str(path)!r} is not what was written (harmless: it is written anew before git reads it)"
        return ""
    if _PACKED.fullmatch(name):
        return "" if _ends_in_its_hash(path) else f"{str(path)!r} is damaged: its checksum does not match its bytes"
    known = _BORROWED.fullmatch(name) or _UNFINISHED.fullmatch(name)
    return "" if known else f"{str(path)!r} is no file of ours"


def _ends_in_its_hash(path: Path) -> bool:
    hashes = (hashlib.sha1(usedforsecurity=False), hashlib.sha256())
    with explained(path, "read"):
        descriptor = open_private(path, os.O_RDONLY, label="read:frozen")
        try:
            size = os.fstat(descriptor).st_size
            if size <= _LONGEST_HASH:
                return False
            for form in hashes:
                os.lseek(descriptor, 0, os.SEEK_SET)
                left = size - form.digest_size
                while left and (part := os.read(descriptor, min(left, _CHUNK_BYTES))):
                    form.update(part)
                    left -= len(part)
                if os.read(descriptor, _LONGEST_HASH + 1) == form.digest():
                    return True
        finally:
            os.close(descriptor)
    return False
