"""SIGINT, SIGTERM and SIGHUP ask for the same: save, say how to resume, leave. Twice: leave at once."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopAsked(BaseException):
    """Raised in the main thread while no event loop runs. No KeyboardInterrupt: that one changes Python's exit code."""


class Stopper:
    """What the next signal does: raise StopAsked, or what `instead` put there. The one after it ends the process."""

    def __init__(self) -> None:
        self._asked = False
        self._then: Callable[[], None] | None = None

    def __call__(self, number: int, frame: FrameType | None = None) -> None:
        if self._asked:
            os._exit(130)  # every step is durable already; nothing of ours waits in memory
        self._asked = True
        if self._then is None:
            raise StopAsked
        self._then()

    @contextmanager
    def instead(self, then: Callable[[], None]) -> Iterator[None]:
        """While inside, a signal calls `then` (from the main thread, between two steps of Python)."""
        self._then = then
        try:
            yield
        finally:
            self._then = None

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """While inside, a signal raises StopAsked although a loop runs: somebody is asked something, and waits."""
        then, self._then = self._then, None
        try:
            yield
        finally:
            self._then = then


@contextmanager
def stoppable() -> Iterator[Stopper]:
    """Take the signals over; give them back afterwards. A signal that was ignored (nohup) stays ignored."""
    stopper = Stopper()
    before = {}
    for number in _NUMBERS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            before[number] = signal.signal(number, stopper)
    try:
        yield stopper
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
