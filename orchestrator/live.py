"""The live view: phases, subagents, findings and time, redrawn in place on a terminal."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from orchestrator.terminal import printable_line

if TYPE_CHECKING:
    from manifests.tasks import Task
    from scratch.findings import Finding
    from subagents.engine import Outcome

_MARKS = {"finished": ("✓", "green"), "partial": ("◐", "yellow"), "failed": ("✗", "red"), "stopped": ("■", "yellow")}


class LiveView:
    """Implements View with rich. Redrawn eight times a second; the last picture stays above the answer."""

    def __init__(self, stream: TextIO) -> None:
        self._lock = threading.Lock()
        self._start = time.monotonic()
        self._phase = Text("opening the repository", style="bold")
        self._rows: dict[str, list[Text]] = {}
        self._counts: dict[str, int] = {}
        self._latest = Text("")
        self._progress = Text("")
        self._live = Live(console=Console(file=stream), get_renderable=self._render, refresh_per_second=8)
        self._live.start()

    def say(self, text: str) -> None:
        self._live.console.print(Text(printable_line(text)))

    def progress(self, what: str, done: int, total: int) -> None:
        with self._lock:
            self._progress = Text(f"{what}: {done:,}" + (f" of {total:,}" if total else ""), style="dim")

    def phase(self, number: int, title: str, tasks: int) -> None:
        with self._lock:
            self._phase = Text(f"phase {number}: {printable_line(title)}", style="bold")
            self._rows = {}
            self._progress = Text("")

    def started(self, task: Task) -> None:
        with self._lock:
            self._rows[task.id] = [Text("…", style="cyan"), Text(task.role), Text(printable_line(task.question)[:70])]

    def finding(self, finding: Finding) -> None:
        with self._lock:
            self._counts[finding.task] = self._counts.get(finding.task, 0) + 1
            where = f"  {finding.citations[0].where}" if finding.citations else ""
            self._latest = Text(printable_line(finding.claim)[:120], style="italic") + Text(
                printable_line(where), style="cyan"
            )

    def ended(self, task: Task, outcome: Outcome, findings: int) -> None:
        mark, colour = _MARKS.get(outcome.status, ("?", "yellow"))
        with self._lock:
            row = self._rows.setdefault(task.id, [Text(""), Text(task.role), Text(printable_line(task.question)[:70])])
            row[0] = Text(mark, style=colour)
            if outcome.failure:
                row[2] = Text(printable_line(outcome.failure)[:70], style=colour)

    @contextmanager
    def paused(self) -> Iterator[None]:
        self._live.stop()
        try:
            yield
        finally:
            self._live.start()

    def close(self) -> None:
        self._live.stop()

    def _render(self) -> RenderableType:
        with self._lock:
            table = Table.grid(padding=(0, 1))
            for _ in range(4):
                table.add_column(no_wrap=True, overflow="ellipsis")
            for task, row in self._rows.items():
                table.add_row(*row, Text(f"{self._counts.get(task, 0)} findings", style="dim"))
            clock = Text(f"  {time.monotonic() - self._start:.1f} s", style="dim")
            total = Text(f"  {sum(self._counts.values())} findings", style="dim")
            return Group(self._phase + total + clock, table, self._latest, self._progress)
