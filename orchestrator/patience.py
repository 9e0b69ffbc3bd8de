"""What comes before the first task has no heartbeat of its own: reading the files is said, and ends at the limit."""

from __future__ import annotations

import time

from manifests.errors import LimitReached
from orchestrator.view import View

SAID_EACH_S = 3.0


class Patience:
    """Told how far the reading has come."""

    def __init__(self, view: View, max_minutes: float) -> None:
        self._view = view
        self._said = time.monotonic()
        self._deadline = self._said + max_minutes * 60

    def reading(self, files: int) -> None:
        """Says how many files were read, now and then. Raises LimitReached."""
        now = time.monotonic()
        if now > self._deadline:
            raise LimitReached(
                f"the time limit was reached after {files:,} files had been read; no session was begun",
                hint="give a part of it with --scope, or a higher --max-minutes",
            )
        if now - self._said > SAID_EACH_S:
            self._said = now
            self._view.say(f"reading files: {files:,}")
