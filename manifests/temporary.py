"""Private folders outside of any session: views of a repository, copies for ripgrep. They go with the process.

A process that is killed cleans up nothing. So each folder is held by a lock that the kernel drops with its process
(and with those it forked), and the first use in a process removes the folders of this user that nobody holds.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path

_PREFIX = "leadline-"
_YOUNG_S = 60.0
"""Younger ones may be just being made, and not be locked yet."""

_held: dict[Path, int] = {}
_swept: set[str] = set()


def make_temporary(kind: str) -> Path:
    """A new folder, mode 0700, in the system's place for such; to be removed by `remove_temporary`."""
    place = tempfile.gettempdir()
    if place not in _swept:
        _swept.add(place)
        sweep(Path(place))
    folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{kind}-", dir=place))
    with suppress(OSError):  # without locks there is nothing to tell the living by, and nothing is swept
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        _held[folder] = descriptor
    return folder


def remove_temporary(folder: Path) -> None:
    """May be called twice."""
    shutil.rmtree(folder, ignore_errors=True)
    descriptor = _held.pop(folder, None)
    if descriptor is not None:
        os.close(descriptor)


def sweep(place: Path) -> int:
    """Remove the folders of dead processes; returns how many. What cannot be looked at stays."""
    swept = 0
    with suppress(OSError), os.scandir(place) as entries:
        for entry in entries:
            if entry.name.startswith(_PREFIX) and _is_abandoned(Path(entry.path)):
                shutil.rmtree(entry.path, ignore_errors=True)
                swept += 1
    return swept


def _is_abandoned(folder: Path) -> bool:
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        found = os.fstat(descriptor)
        if found.st_uid != os.geteuid() or found.st_mode & 0o077 or time.time() - found.st_mtime < _YOUNG_S:
            return False
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    else:
        return True
    finally:
        os.close(descriptor)
