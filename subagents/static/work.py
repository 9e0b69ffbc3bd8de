"""Running one task: its facts are made in a thread, recorded one by one here, within a time that is bounded."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from manifests.tasks import Task
from scratch.recorder import CitationRejected
from subagents.codebase.types import Skipped
from subagents.engine import Coverage, Outcome, PhaseSummary, TaskContext, Workspace
from subagents.static.analysis import Analysis
from subagents.static.drafts import Draft
from subagents.static.question import Question

TASK_SECONDS = 90.0
"""Far above what any task takes; a task that meets it ends `partial`, with what it has."""


class TimeIsUp(Exception):
    """Raised by `tick` inside a task's thread when its time is over, or the task was cancelled."""


@dataclass(slots=True, kw_only=True)
class Job:
    """What the maker of a task's findings is given. `deliverable` is what to show for when nothing was found."""

    task: Task
    phase: int
    workspace: Workspace
    analysis: Analysis
    summary: PhaseSummary | None
    deadline: float
    ticks: int = 0
    stopped: bool = False
    deliverable: str = ""
    truncated: list[str] = field(default_factory=list)

    @property
    def question(self) -> Question:
        return self.analysis.question

    def tick(self) -> None:
        """A sign of life out of long work."""
        self.ticks += 1
        if self.stopped or time.monotonic() > self.deadline:
            raise TimeIsUp


Maker = Callable[[Job], Iterator[Draft]]


async def carry_out(context: TaskContext, analysis: Analysis, make: Maker, *, seconds: float = TASK_SECONDS) -> Outcome:
    """Record what `make` yields. Cancellation stops the thread at its next tick."""
    job = Job(
        task=context.task,
        phase=context.phase,
        workspace=analysis.workspace,
        analysis=analysis,
        summary=context.summary,
        deadline=time.monotonic() + seconds,
    )
    drafts = make(job)
    timed_out = False
    try:
        while True:
            draft = await _next(drafts, job, context.heartbeat)
            if draft is None:
                break
            record(draft, context, job)
            context.heartbeat()
    except TimeIsUp:
        timed_out = True
    finally:
        job.stopped = True
    return Outcome(
        status="partial" if timed_out else "finished",
        coverage=Coverage(
            files_read=analysis.sources.read,
            skipped=tuple(_unique(analysis.sources.skipped)),
            truncated=tuple(job.truncated),
            timed_out=(f"{context.task.role}: stopped after {seconds:.0f} s",) if timed_out else (),
        ),
        failure=f"stopped after {seconds:.0f} s" if timed_out else "",
        deliverable=job.deliverable,
    )


def record(draft: Draft, context: TaskContext, job: Job) -> None:
    """Through the one door; the cited lines were read to make the draft, which is said first.

    A place that cannot be cited (a blank line, a file that is no text) is left out, and coverage says so.
    """
    for path, start, end in draft.citations:
        context.recorder.shown(path, start, end)
    try:
        context.recorder.record(
            draft.claim,
            kind=draft.kind,
            citations=draft.citations,
            symbols=tuple(dict.fromkeys(draft.symbols)),
            confidence=min(1.0, max(0.0, draft.confidence)),
            relevance=min(1.0, max(0.0, draft.relevance)),
            data=draft.data,
        )
    except CitationRejected as rejected:
        job.truncated.append(f"left out, since it cannot be cited: {rejected}")


async def _next(drafts: Iterator[Draft], job: Job, heartbeat: Callable[[], None]) -> Draft | None:
    """The next draft, made in a thread; beats only when the thread has shown a sign of life meanwhile."""
    making = asyncio.ensure_future(asyncio.to_thread(next, drafts, None))
    seen = job.ticks
    try:
        while True:
            done, _ = await asyncio.wait({making}, timeout=0.5)
            if done:
                return making.result()
            if job.ticks != seen:
                seen = job.ticks
                heartbeat()
    except BaseException:
        job.stopped = True
        making.add_done_callback(_seen)
        await asyncio.wait({making}, timeout=2.0)
        raise


def _seen(making: asyncio.Future[Draft | None]) -> None:
    """The thread was told to stop; what it ended with has nobody left to tell."""
    if not making.cancelled():
        making.exception()


def _unique(skipped: list[Skipped]) -> Iterator[Skipped]:
    seen: set[str] = set()
    for one in sorted(skipped, key=lambda s: (s.path, s.reason)):
        if one.path not in seen:
            seen.add(one.path)
            yield one
