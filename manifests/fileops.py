"""The one seam through which every durable operation of the store goes.

Tests replace the operations by ones that fail, write a part, or kill the process, at the n-th call; so there must be
no other way to the disk for anything that has to survive. Each call carries a label, `<verb>:<what>`, that names what
the operation is part of (`append:journal`, `replace:manifest`, `lock:session`).

The calls are as thin as the system calls they stand for. `EINTR` and short writes are handled by those who call them
(`retrying`, `write_all`), so that a faulty implementation can show both.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

T = TypeVar("T")

INTERRUPTIONS_BORNE = 100
"""How often one call may be interrupted in a row before it counts as an error."""


class FileOps(Protocol):
    """System calls that change what is on disk. Each may raise OSError; `write` may write less than all."""

    def open(self, path: Path, flags: int, mode: int, *, label: str) -> int: ...
    def write(self, descriptor: int, data: bytes | memoryview, *, label: str) -> int: ...
    def sync(self, descriptor: int, *, label: str, data_only: bool) -> None: ...
    def truncate(self, descriptor: int, length: int, *, label: str) -> None: ...
    def rename(self, source: Path, target: Path, *, label: str) -> None: ...
    def sync_folder(self, folder: Path, *, label: str) -> None: ...
    def lock(self, descriptor: int, operation: int, *, label: str) -> None: ...
    def unlink(self, path: Path, *, label: str) -> None: ...
    def mkdir(self, path: Path, mode: int, *, label: str) -> None: ...
    def rmdir(self, path: Path, *, label: str) -> None: ...


class SystemFileOps:
    """The real thing."""

    def open(self, path: Path, flags: int, mode: int, *, label: str) -> int:
        return os.open(path, flags, mode)

    def write(self, descriptor: int, data: bytes | memoryview, *, label: str) -> int:
        return os.write(descriptor, data)

    def sync(self, descriptor: int, *, label: str, data_only: bool) -> None:
        if data_only and hasattr(os, "fdatasync"):
            os.fdatasync(descriptor)
        else:
            os.fsync(descriptor)

    def truncate(self, descriptor: int, length: int, *, label: str) -> None:
        os.ftruncate(descriptor, length)

    def rename(self, source: Path, target: Path, *, label: str) -> None:
        source.rename(target)

    def sync_folder(self, folder: Path, *, label: str) -> None:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def lock(self, descriptor: int, operation: int, *, label: str) -> None:
        fcntl.flock(descriptor, operation)

    def unlink(self, path: Path, *, label: str) -> None:
        path.unlink()

    def mkdir(self, path: Path, mode: int, *, label: str) -> None:
        path.mkdir(mode)

    def rmdir(self, path: Path, *, label: str) -> None:
        path.rmdir()


_installed: FileOps = SystemFileOps()


def current() -> FileOps:
    """The operations in force."""
    return _installed


def install(operations: FileOps) -> FileOps:
    """Put other operations in force, process-wide; returns those that were. For tests and their launcher."""
    global _installed
    before = _installed
    _installed = operations
    return before


def unguessable(size: int) -> str:
    """Hex digits of so many random bytes from the system; what `secrets` gives, without 5 ms of imports."""
    return os.urandom(size).hex()


def retrying(call: Callable[[], T]) -> T:
    """Call again as long as a signal interrupts it."""
    for _ in range(INTERRUPTIONS_BORNE):
        try:
            return call()
        except InterruptedError:
            continue
    return call()


def write_all(descriptor: int, data: bytes, *, label: str) -> None:
    """Write every byte, whatever the kernel takes at a time. One call of `write` unless it is cut short."""
    rest: bytes | memoryview = data
    while rest:
        written = retrying(partial(current().write, descriptor, rest, label=label))
        if written == len(rest):
            return
        rest = memoryview(rest)[written:]
