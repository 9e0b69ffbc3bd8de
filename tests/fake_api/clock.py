"""The clock that cache lifetimes and rate limits run on: it stands still until the test moves it."""

from __future__ import annotations


class Clock:
    """Seconds since the server started, as the test says."""

    def __init__(self) -> None:
        self._now_s = 0.0

    def now_s(self) -> float:
        return self._now_s

    def advance(self, seconds: float) -> None:
        if seconds < 0:
            raise ValueError(f"time does not run backwards: {seconds}")
        self._now_s += seconds
