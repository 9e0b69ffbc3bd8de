"""One writer a session: two processes, dead holders, other hosts, stale leases, file systems without locks."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from manifests.errors import StateError
from manifests.fileops import SystemFileOps, install
from manifests.locks import LEASE_S, Holder, _myself, acquire, holder_of, is_live
from tests.faults.processes import child_holding, kill, run_in_child

LONG_AGO = 10 * LEASE_S


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lock"


class WithoutLocks(SystemFileOps):
    def lock(self, descriptor: int, operation: int, *, label: str) -> None:
        raise OSError(errno.ENOLCK, "No locks available")


@contextmanager
def no_locks() -> Iterator[None]:
    before = install(WithoutLocks())
    try:
        yield
    finally:
        install(before)


def grow_stale(path: Path) -> None:
    then = time.time() - LONG_AGO
    os.utime(path, (then, then))


def test_a_second_process_is_told_who_holds_it(path: Path) -> None:
    with child_holding(lambda: acquire(path)) as child:
        assert is_live(path)
        with pytest.raises(StateError) as refusal:
            acquire(path)
        assert f"process {child} on {socket.gethostname()}" in str(refusal.value)
        assert refusal.value.exit_code == 3
        assert refusal.value.hint


def test_the_lock_dies_with_its_process(path: Path) -> None:
    with child_holding(lambda: acquire(path)) as child:
        kill(child)
        assert not is_live(path)
        acquire(path).release()


def test_a_worker_forked_by_the_holder_does_not_keep_the_lock(path: Path) -> None:
    read_end, write_end = os.pipe()
    holder = os.fork()
    if holder == 0:
        lock = acquire(path)
        if os.fork() == 0:
            os.write(write_end, b"%d" % os.getpid())
            signal.pause()
        while lock:
            signal.pause()
    worker = int(os.read(read_end, 20))
    try:
        kill(holder)
        acquire(path).release()
        os.kill(worker, 0)  # it still runs
    finally:
        os.kill(worker, signal.SIGKILL)
        os.close(read_end)
        os.close(write_end)


def test_a_program_started_by_the_holder_does_not_keep_the_lock(path: Path) -> None:
    lock = acquire(path)
    sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        lock.release()
        acquire(path).release()
    finally:
        sleeper.kill()
        sleeper.wait()


def test_one_process_cannot_take_it_twice(path: Path) -> None:
    lock = acquire(path)
    with pytest.raises(StateError, match=f"process {os.getpid()} "):
        acquire(path)
    lock.release()
    lock.release()
    acquire(path).release()


def test_of_many_processes_at_once_exactly_one_holds_it(path: Path) -> None:
    go = path.with_name("go")
    read_end, write_end = os.pipe()
    children = []
    for _ in range(8):
        child = os.fork()
        if child == 0:
            while not go.exists():
                time.sleep(0.001)
            try:
                lock = acquire(path)
            except StateError:
                os._exit(3)
            os.write(write_end, b"x")
            assert lock
            signal.pause()
        children.append(child)
    go.touch()
    refused = 0
    while refused < 7:
        _, status = os.wait()
        refused += os.waitstatus_to_exitcode(status) == 3
    assert os.read(read_end, 10) == b"x"
    for child in children:
        kill(child)
    os.close(read_end)
    os.close(write_end)


def test_whoever_looks_on_never_makes_another_be_refused(path: Path) -> None:
    acquire(path).release()

    def look_slowly() -> object:
        descriptor = os.open(path, os.O_RDONLY)
        fcntl.flock(descriptor, fcntl.LOCK_SH)  # as `holder_of` does, but put to sleep in the middle
        signal.signal(signal.SIGALRM, lambda *_: os._exit(0))
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        return descriptor

    with child_holding(look_slowly):
        acquire(path).release()


def test_looking_on_while_it_changes_hands_sees_no_error(path: Path) -> None:
    child = os.fork()
    if child == 0:
        while True:
            acquire(path).release()
    for _ in range(300):
        holder = holder_of(path)
        assert holder is None or holder.pid in (child, 1)
    kill(child)


def test_a_fresh_lease_is_not_taken_over(path: Path) -> None:
    with child_holding(lambda: acquire(path)), pytest.raises(StateError, match="held by process"):
        acquire(path, takeover=True)


def test_a_silent_holder_is_replaced_only_on_request_and_stops_when_it_wakes(path: Path) -> None:
    sleeper = acquire(path)
    sleeper.check()
    grow_stale(path)
    with pytest.raises(StateError) as refusal:
        acquire(path)
    assert "--takeover" in refusal.value.hint
    taken = acquire(path, takeover=True)
    taken.check()
    with pytest.raises(StateError, match=f"taken over by process {os.getpid()}"):
        sleeper.check()
    sleeper.release()
    assert is_live(path)
    taken.release()
    assert not is_live(path)


def test_a_holder_that_slept_for_a_day_goes_on_if_nobody_took_over(path: Path) -> None:
    lock = acquire(path)
    grow_stale(path)
    lock.check()
    lock.heartbeat()
    with pytest.raises(StateError):
        acquire(path, takeover=True)
    lock.release()


def test_a_half_written_record_of_a_dead_holder_does_no_harm(path: Path) -> None:
    acquire(path).release()
    for record in (b"{", b'{"pid": 1}', b"\0" * 100, b"[" * 3000):
        path.write_bytes(record)
        assert not is_live(path)
        acquire(path).release()


# --- file systems without locks ---


def leave(path: Path, **changes: object) -> Holder:
    holder = replace(_myself(), **changes)  # type: ignore[arg-type]
    path.write_bytes(holder.to_bytes())
    path.chmod(0o600)
    return holder


def dead_pid() -> int:
    return int(run_in_child(lambda say: say(str(os.getpid()))).said[0])


def test_without_locks_the_lease_refuses_a_second_process(path: Path) -> None:
    with no_locks():
        with child_holding(lambda: acquire(path)) as child, pytest.raises(StateError, match=f"process {child} "):
            acquire(path)
        acquire(path).release()


def test_without_locks_a_dead_holder_of_this_host_is_replaced(path: Path) -> None:
    with no_locks():
        leave(path, pid=dead_pid(), born="")
        lock = acquire(path)
        lock.check()
        lock.release()


def test_without_locks_a_reused_pid_is_not_taken_for_the_holder(path: Path) -> None:
    with no_locks():
        leave(path, pid=os.getpid(), born="another-boot/1")
        acquire(path).release()


def test_without_locks_a_holder_on_another_host_needs_a_takeover(path: Path) -> None:
    with no_locks():
        leave(path, host="elsewhere", pid=dead_pid())
        with pytest.raises(StateError, match="on elsewhere"):
            acquire(path, takeover=True)
        grow_stale(path)
        with pytest.raises(StateError) as refusal:
            acquire(path)
        assert "--takeover" in refusal.value.hint
        acquire(path, takeover=True).release()


def test_a_lock_is_not_taken_through_a_link(path: Path, tmp_path: Path) -> None:
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StateError):
        acquire(path)
    assert not (tmp_path / "elsewhere").exists()
