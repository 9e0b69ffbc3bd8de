"""What a person sees while it works, on stderr: a live table on a terminal, plain lines elsewhere, or nothing."""

from __future__ import annotations

import sys
import time
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Protocol, TextIO

from orchestrator.terminal import printable_line

if TYPE_CHECKING:
    from manifests.tasks import Task
    from scratch.findings import Finding
    from subagents.engine import Outcome


class View(Protocol):
    """Told of everything that happens; must never fail the run. Methods may be called from any thread."""

    def say(self, text: str) -> None: ...
    def progress(self, what: str, done: int, total: int) -> None: ...
    def phase(self, number: int, title: str, tasks: int) -> None: ...
    def started(self, task: Task) -> None: ...
    def finding(self, finding: Finding) -> None: ...
    def ended(self, task: Task, outcome: Outcome, findings: int) -> None: ...
    def paused(self) -> AbstractContextManager[None]:
        """While inside, nothing is drawn: somebody is asked something."""
        ...

    def close(self) -> None: ...


class QuietView:
    """Says nothing."""

    def say(self, text: str) -> None: ...
    def progress(self, what: str, done: int, total: int) -> None: ...
    def phase(self, number: int, title: str, tasks: int) -> None: ...
    def started(self, task: Task) -> None: ...
    def finding(self, finding: Finding) -> None: ...
    def ended(self, task: Task, outcome: Outcome, findings: int) -> None: ...
    def paused(self) -> AbstractContextManager[None]:
        return nullcontext()

    def close(self) -> None: ...


class PlainView:
    """One line an event, for pipes and logs. The first findings of a task are shown, the others counted."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._start = time.monotonic()
        self._progress_at = 0.0
        self._shown: dict[str, int] = {}

    def say(self, text: str) -> None:
        self._line(text)

    def progress(self, what: str, done: int, total: int) -> None:
        now = time.monotonic()
        if now - self._progress_at >= 2.0 and now - self._start >= 1.0:
            self._progress_at = now
            self._line(f"{what}: {done:,} of {total:,}" if total else f"{what}: {done:,}")

    def phase(self, number: int, title: str, tasks: int) -> None:
        self._line(f"phase {number}: {title} ({tasks} task{'s' if tasks != 1 else ''})")

    def started(self, task: Task) -> None: ...

    def finding(self, finding: Finding) -> None:
        shown = self._shown.get(finding.task, 0)
        self._shown[finding.task] = shown + 1
        if shown < 2:
            where = f" [{finding.citations[0].where}]" if finding.citations else ""
            self._line(f"  + {finding.claim[:140]}{where}")

    def ended(self, task: Task, outcome: Outcome, findings: int) -> None:
        why = f": {outcome.failure}" if outcome.failure else ""
        self._line(f"  {task.role} {outcome.status}, {findings} finding{'s' if findings != 1 else ''}{why}")

    def paused(self) -> AbstractContextManager[None]:
        return nullcontext()

    def close(self) -> None: ...

    def _line(self, text: str) -> None:
        print(f"[{time.monotonic() - self._start:6.1f}s] {printable_line(text)}", file=self._stream, flush=True)


def make_view(*, quiet: bool, stream: TextIO) -> View:
    """The view that fits the stream; the terminal one imports rich, so only when it is a terminal."""
    if quiet:
        return QuietView()
    if stream.isatty():
        from orchestrator.live import LiveView

        return LiveView(stream)
    return PlainView(stream)
