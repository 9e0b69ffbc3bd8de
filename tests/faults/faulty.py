"""File operations that fail on purpose: the n-th one dies, errs, or does a part.

Counting is by operation, in the order they happen in one process. `log` names a file to which each operation is
appended as `<n> <operation> <label>`, which is how a test enumerates what a run does before it makes each of them fail.
"""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import RLock
from typing import Literal, TypeVar

from manifests.fileops import SystemFileOps

T = TypeVar("T")

Fault = Literal[
    "none", "die_before", "die_after", "partial", "die_partial", "ENOSPC", "EIO", "EDQUOT", "EACCES", "EINTR"
]
ERRORS = ("ENOSPC", "EIO", "EDQUOT", "EACCES", "EINTR")
CHANGING = ("write", "sync", "truncate", "rename", "sync_folder", "lock", "unlink", "mkdir", "rmdir", "create")
"""Operations that count. Opening a file that exists changes nothing and is not among them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What goes wrong, and when: at the `at`-th operation (from 1) whose label contains `label`; from there on if
    `lasting`."""

    fault: Fault
    at: int
    label: str = ""
    operation: str = ""
    lasting: bool = False


class FaultyFileOps(SystemFileOps):
    """The real operations, but for the one that the plan names."""

    def __init__(self, plan: Plan, *, log: Path | None = None) -> None:
        self._plan = plan
        self._log = log
        self._count = 0
        self._mutex = RLock()
        self.seen: list[tuple[str, str]] = []

    def _hit(self, operation: str, label: str) -> bool:
        with self._mutex:
            self.seen.append((operation, label))
            if self._log is not None:
                with self._log.open("a") as file:
                    file.write(f"{len(self.seen)} {operation} {label}\n")
            if self._plan.label not in label or self._plan.operation not in ("", operation):
                return False
            self._count += 1
            return self._count == self._plan.at or (self._plan.lasting and self._count > self._plan.at)

    def _do(self, operation: str, label: str, call: Callable[[], T]) -> T:
        if not self._hit(operation, label):
            return call()
        fault = self._plan.fault
        if fault in ("die_before", "die_partial", "partial"):
            if fault != "partial":
                die()
            return call()
        if fault == "die_after":
            call()
            die()
        if fault in ERRORS:
            raise OSError(getattr(errno, fault), os.strerror(getattr(errno, fault)))
        return call()

    def open(self, path: Path, flags: int, mode: int, *, label: str) -> int:
        if not flags & os.O_CREAT or path.exists():
            return super().open(path, flags, mode, label=label)
        return self._do("create", label, lambda: SystemFileOps.open(self, path, flags, mode, label=label))

    def write(self, descriptor: int, data: bytes | memoryview, *, label: str) -> int:
        if self._plan.fault not in ("partial", "die_partial"):
            return self._do("write", label, lambda: SystemFileOps.write(self, descriptor, data, label=label))
        if not self._hit("write", label) or len(data) < 2:
            return super().write(descriptor, data, label=label)
        written = super().write(descriptor, memoryview(data)[: len(data) // 2], label=label)
        if self._plan.fault == "die_partial":
            die()
        return written

    def sync(self, descriptor: int, *, label: str, data_only: bool) -> None:
        self._do("sync", label, lambda: SystemFileOps.sync(self, descriptor, label=label, data_only=data_only))

    def truncate(self, descriptor: int, length: int, *, label: str) -> None:
        self._do("truncate", label, lambda: SystemFileOps.truncate(self, descriptor, length, label=label))

    def rename(self, source: Path, target: Path, *, label: str) -> None:
        self._do("rename", label, lambda: SystemFileOps.rename(self, source, target, label=label))

    def sync_folder(self, folder: Path, *, label: str) -> None:
        self._do("sync_folder", label, lambda: SystemFileOps.sync_folder(self, folder, label=label))

    def lock(self, descriptor: int, operation: int, *, label: str) -> None:
        self._do("lock", label, lambda: SystemFileOps.lock(self, descriptor, operation, label=label))

    def unlink(self, path: Path, *, label: str) -> None:
        self._do("unlink", label, lambda: SystemFileOps.unlink(self, path, label=label))

    def mkdir(self, path: Path, mode: int, *, label: str) -> None:
        self._do("mkdir", label, lambda: SystemFileOps.mkdir(self, path, mode, label=label))

    def rmdir(self, path: Path, *, label: str) -> None:
        self._do("rmdir", label, lambda: SystemFileOps.rmdir(self, path, label=label))


def die() -> None:
    """As a power cut of this one process: no handler runs, no buffer is flushed."""
    os.kill(os.getpid(), signal.SIGKILL)
    signal.pause()
