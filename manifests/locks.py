"""One writer a session: a lock that dies with its process, and a lease where locks cannot be had or cannot be trusted.

The lock is `flock` on the session's lock file: the kernel drops it when the process ends, however it ends. The file
holds who has it (pid, host, since when), so that whoever is refused can be told. Its modification time is the holder's
heartbeat. A lease whose heartbeat stopped can be taken over on request: the new holder puts a new file in place of the
old, and the old holder, should it wake up, sees at its next write that the file is no longer its own, and stops.

On file systems without locks the lease alone decides; there, a holder of this very host that no longer runs is replaced
without asking.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
import weakref
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import orjson

from manifests.durable import explained, open_private, replace_file, state_error
from manifests.envelope import encode
from manifests.errors import StateError
from manifests.fields import Fields, Malformed, timestamp
from manifests.fileops import current, retrying, unguessable, write_all

LEASE_S = 60.0
"""A holder silent for longer may be taken over by `--takeover`."""
HEARTBEAT_S = 10.0

_LABEL = "lock:session"
_PROBE_PATIENCE_S = 0.3
"""Whoever lists sessions holds each lock for some microseconds; a refusal counts only if it lasts."""
_NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL})


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Who holds, or last held, the lock."""

    pid: int
    host: str
    since: str
    born: str
    """When the process was born, as the host counts (boot, clock ticks): a pid alone may be another process by now."""
    nonce: str

    def to_bytes(self) -> bytes:
        return encode({"pid": self.pid, "host": self.host, "since": self.since, "born": self.born, "nonce": self.nonce})

    @staticmethod
    def from_bytes(data: bytes) -> Holder | None:
        """None for an empty or half-written record."""
        try:
            fields = Fields(orjson.loads(data), "the lock")
            return Holder(
                pid=fields.integer("pid", low=1, high=1 << 31),
                host=fields.text("host", limit=300),
                since=fields.time("since"),
                born=fields.text("born", limit=100),
                nonce=fields.text("nonce", limit=100),
            )
        except (orjson.JSONDecodeError, Malformed):
            return None

    @property
    def is_of_this_host(self) -> bool:
        return self.host == os.uname().nodename

    @property
    def is_running(self) -> bool:
        """Whether the very process still runs; only to be asked about this host."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass
        born = _born(self.pid)
        return not born or not self.born or born == self.born


def _born(pid: int) -> str:
    """Boot id and start tick of a process; empty where the system does not tell."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""
    return f"{boot}/{ticks}"


def _myself() -> Holder:
    pid = os.getpid()
    host = os.uname().nodename
    return Holder(pid=pid, host=host, since=timestamp(), born=_born(pid), nonce=unguessable(8))


class SessionLock:
    """A held lock. `check` before writing, `heartbeat` now and then, `release` at the end (may be called twice)."""

    def __init__(self, path: Path, descriptor: int, holder: Holder) -> None:
        self.path = path
        self.holder = holder
        self._descriptor = descriptor
        mine = os.fstat(descriptor)
        self._identity = (mine.st_dev, mine.st_ino)
        self._beaten_at = time.monotonic()
        _held.add(self)

    def check(self) -> None:
        """Raise StateError if another process took the session over. Beats the heart when it is time."""
        if self._descriptor < 0:
            raise StateError("this process holds the session no longer", hint="open it again: `leadline resume`")
        try:
            found = self.path.stat()
        except OSError as error:
            raise state_error(error, self.path, "look at the lock") from error
        if (found.st_dev, found.st_ino) != self._identity:
            holder = _read_holder(self.path)
            who = f"process {holder.pid} on {holder.host}" if holder else "another process"
            raise StateError(
                f"the session was taken over by {who}", hint="let that one finish; see `leadline sessions`"
            )
        if time.monotonic() - self._beaten_at > HEARTBEAT_S:
            self.heartbeat()

    def heartbeat(self) -> None:
        """Say that this process is alive."""
        if self._descriptor >= 0:
            with explained(self.path, "renew the lock"):
                os.utime(self._descriptor)
            self._beaten_at = time.monotonic()

    def release(self) -> None:
        """Let go. The file stays, emptied."""
        if self._descriptor < 0:
            return
        descriptor, self._descriptor = self._descriptor, -1
        _held.discard(self)
        try:
            with suppress(OSError):  # an unreleased record does no harm: the lock itself goes with the descriptor
                current().truncate(descriptor, 0, label=_LABEL)
        finally:
            os.close(descriptor)

    def _close_in_child(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


_held: weakref.WeakSet[SessionLock] = weakref.WeakSet()


def _forget_locks() -> None:
    """A forked child shares the lock until it closes it, and would keep it alive past its parent's death."""
    for lock in list(_held):
        lock._close_in_child()


os.register_at_fork(after_in_child=_forget_locks)


def acquire(path: Path, *, takeover: bool = False, lease_s: float = LEASE_S) -> SessionLock:
    """Take the lock, or raise StateError naming the holder. `takeover` replaces a holder whose lease went stale."""
    patience = time.monotonic() + _PROBE_PATIENCE_S
    while True:
        descriptor = _open(path)
        try:
            outcome = _try(descriptor, path)
        except BaseException:
            os.close(descriptor)
            raise
        if outcome == "taken":
            return _settle(descriptor, path)
        os.close(descriptor)
        if outcome == "no_locks":
            return _acquire_lease(path, takeover, lease_s)
        if outcome == "held" and time.monotonic() > patience:
            return _take_over(path, takeover, lease_s)
        time.sleep(0.005)


def _open(path: Path) -> int:
    with explained(path, "open the lock"):
        return open_private(path, os.O_RDWR | os.O_CREAT, label=_LABEL)


def _try(descriptor: int, path: Path) -> str:
    """`taken`; `held` by another; `moved`: the file was replaced meanwhile; or `no_locks` on this file system."""
    try:
        retrying(lambda: current().lock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, label=_LABEL))
    except BlockingIOError:
        return "held"
    except OSError as error:
        if error.errno in _NO_LOCKS:
            return "no_locks"
        raise state_error(error, path, "lock") from error
    mine = os.fstat(descriptor)
    try:
        there = path.stat()
    except FileNotFoundError:
        return "moved"
    return "taken" if (mine.st_dev, mine.st_ino) == (there.st_dev, there.st_ino) else "moved"


def _settle(descriptor: int, path: Path) -> SessionLock:
    """Write who we are into the file we locked."""
    holder = _myself()
    try:
        with explained(path, "write the lock"):
            retrying(lambda: current().truncate(descriptor, 0, label=_LABEL))
            os.lseek(descriptor, 0, os.SEEK_SET)
            write_all(descriptor, holder.to_bytes(), label=_LABEL)
    except BaseException:
        os.close(descriptor)
        raise
    return SessionLock(path, descriptor, holder)


def _take_over(path: Path, takeover: bool, lease_s: float) -> SessionLock:
    holder, silent_s = _read_holder(path), _silence(path)
    if not takeover or silent_s <= lease_s:
        raise _refusal(path, holder, silent_s, lease_s)
    return _replace(path)


def _acquire_lease(path: Path, takeover: bool, lease_s: float) -> SessionLock:
    holder, silent_s = _read_holder(path), _silence(path)
    if holder is not None:
        dead = holder.is_of_this_host and not holder.is_running
        if not dead and not (takeover and silent_s > lease_s):
            raise _refusal(path, holder, silent_s, lease_s)
    return _replace(path)


def _replace(path: Path) -> SessionLock:
    """Put a lock file of our own in place. Of two that do so at once the later one wins, and the other notices."""
    holder = _myself()
    replace_file(path, holder.to_bytes(), label=_LABEL)
    descriptor = _open(path)
    try:
        if _read_holder(path) != holder or _try(descriptor, path) not in ("taken", "no_locks"):
            raise _refusal(path, _read_holder(path), 0.0, LEASE_S)
    except BaseException:
        os.close(descriptor)
        raise
    return SessionLock(path, descriptor, holder)


def _refusal(path: Path, holder: Holder | None, silent_s: float, lease_s: float) -> StateError:
    name = path.parent.name
    if holder is None:
        return StateError(f"session {name} is held by another process", hint="wait for it to end, then try again")
    if silent_s > lease_s:
        hint = f"it has been silent for {silent_s:.0f} s: if it is gone for good, add --takeover"
    else:
        hint = "wait for it to end, or stop it; it was alive a moment ago, so --takeover is refused as well"
    return StateError(
        f"session {name} is held by process {holder.pid} on {holder.host} since {holder.since}", hint=hint
    )


def _read_holder(path: Path) -> Holder | None:
    try:
        with path.open("rb") as file:
            return Holder.from_bytes(file.read(2000))
    except OSError:
        return None


def _silence(path: Path) -> float:
    try:
        return time.time() - path.stat().st_mtime
    except OSError:
        return 0.0


def holder_of(path: Path) -> Holder | None:
    """Who holds the lock now; None when nobody does. Never disturbs the holder."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        retrying(partial(fcntl.flock, descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB))
    except BlockingIOError:
        return _read_holder(path) or Holder(pid=1, host="unknown", since=timestamp(), born="", nonce="")
    except OSError:
        holder = _read_holder(path)
        if holder is None or (holder.is_of_this_host and not holder.is_running):
            return None
        return holder
    finally:
        os.close(descriptor)
    return None


def is_live(path: Path) -> bool:
    """Whether some process holds the session."""
    return holder_of(path) is not None
