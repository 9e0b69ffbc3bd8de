"""Running a function in a process of its own that may die: a fork, so that hundreds of crashes take seconds."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from manifests.fileops import install
from tests.faults.faulty import FaultyFileOps, Plan


@dataclass(frozen=True, slots=True)
class Ended:
    """How a child ended, and what it had acknowledged until then."""

    signal: int
    code: int
    said: tuple[str, ...]

    @property
    def killed(self) -> bool:
        return self.signal == signal.SIGKILL


Say = Callable[[str], None]


def run_in_child(work: Callable[[Say], None], *, plan: Plan | None = None) -> Ended:
    """Fork, put the faulty operations in force, do the work. `say` reaches us whatever becomes of the child."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 70
        try:
            os.close(reading)
            if plan is not None:
                install(FaultyFileOps(plan))
            work(lambda text: _say(writing, text))
            code = 0
        except BaseException:  # noqa: BLE001 - nothing of the child may run on in the test process's place
            traceback.print_exc(file=sys.stderr)
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "r") as stream:
        said = tuple(line.rstrip("\n") for line in stream)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return Ended(os.WTERMSIG(status), -1, said)
    return Ended(0, os.WEXITSTATUS(status), said)


def _say(descriptor: int, text: str) -> None:
    os.write(descriptor, text.encode() + b"\n")


@contextmanager
def child_holding(work: Callable[[], object]) -> Iterator[int]:
    """A child that did the work and now waits; its pid. Killed at the end, if it still lives."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            kept = work()
            os.write(writing, b"ready")
            while kept is not None:
                signal.pause()
        finally:
            os._exit(70)
    os.close(writing)
    try:
        assert os.read(reading, 10) == b"ready"
        yield child
    finally:
        os.close(reading)
        kill(child)


def kill(child: int) -> None:
    """SIGKILL and wait; may be called twice."""
    try:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    except (ProcessLookupError, ChildProcessError):
        return


@contextmanager
def faulty(plan: Plan) -> Iterator[FaultyFileOps]:
    """Faulty operations in force in this very process."""
    operations = FaultyFileOps(plan)
    before = install(operations)
    try:
        yield operations
    finally:
        install(before)
