"""A power cut: what was not synced may be gone, and each file keeps or loses its own.

A killed process loses nothing that it wrote; a machine without power does. These operations note what each sync made
lasting, stop at the n-th operation, and then build the folder as a disk might have kept it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from manifests.fileops import SystemFileOps


class PowerLost(BaseException):
    """Nothing of the process runs after this; what does all the same changes nothing any more."""


class Powered(SystemFileOps):
    """`at`: the operation before which the power goes; 0 for never."""

    def __init__(self, at: int = 0) -> None:
        self.count = 0
        self._at = at
        self._bytes: dict[int, bytes] = {}
        """By inode: what a sync has made lasting."""
        self._names: dict[Path, set[str]] = {}
        """By folder: the names that a sync of it has made lasting."""

    def _tick(self) -> None:
        self.count += 1
        if self._at and self.count >= self._at:
            raise PowerLost

    def open(self, path: Path, flags: int, mode: int, *, label: str) -> int:
        if flags & os.O_CREAT and not path.exists():
            self._tick()
            descriptor = super().open(path, flags, mode, label=label)
            self._bytes.pop(os.fstat(descriptor).st_ino, None)
            return descriptor
        return super().open(path, flags, mode, label=label)

    def write(self, descriptor: int, data: bytes | memoryview, *, label: str) -> int:
        self._tick()
        return super().write(descriptor, data, label=label)

    def sync(self, descriptor: int, *, label: str, data_only: bool) -> None:
        self._tick()
        self._bytes[os.fstat(descriptor).st_ino] = Path(f"/proc/self/fd/{descriptor}").read_bytes()

    def truncate(self, descriptor: int, length: int, *, label: str) -> None:
        self._tick()
        super().truncate(descriptor, length, label=label)

    def rename(self, source: Path, target: Path, *, label: str) -> None:
        self._tick()
        super().rename(source, target, label=label)

    def sync_folder(self, folder: Path, *, label: str) -> None:
        self._tick()
        self._names[folder] = {path.name for path in folder.iterdir()}

    def unlink(self, path: Path, *, label: str) -> None:
        self._tick()
        super().unlink(path, label=label)

    def mkdir(self, path: Path, mode: int, *, label: str) -> None:
        self._tick()
        super().mkdir(path, mode, label=label)

    def kept(self, root: Path, target: Path, *, loses: Callable[[Path], bool]) -> None:
        """Copy `root` as it may be found: files that `loses` names lost all that no sync made lasting.

        A file that was replaced and whose folder was not synced is there as it was written: the other outcome, that the
        one before is back, is what replacing promises (tests of documents show it).
        """
        shutil.copytree(root, target, dirs_exist_ok=True)
        for path in sorted(root.rglob("*"), reverse=True):
            copy = target / path.relative_to(root)
            if not loses(path):
                continue
            if path.name not in self._names.get(path.parent, set()):
                shutil.rmtree(copy) if copy.is_dir() else copy.unlink(missing_ok=True)
            elif path.is_file():
                copy.write_bytes(self._bytes.get(path.stat().st_ino, b""))
