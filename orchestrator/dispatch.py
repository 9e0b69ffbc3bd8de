"""Runs the tasks of a phase side by side: bounded, siblings independent, the silent ones stopped (design, 3.4)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from manifests.errors import LeadlineError
from manifests.tasks import Task
from subagents.engine import Outcome, TaskStopped


class Heartbeat:
    """When a subagent last gave a sign of life. May be called from any thread.

    Once the task was stopped, the next sign of life raises TaskStopped, so that work in a thread ends there too.
    """

    def __init__(self) -> None:
        self.last = time.monotonic()
        self.stopped = False

    def __call__(self) -> None:
        if self.stopped:
            raise TaskStopped("the task was stopped")
        self.last = time.monotonic()

    @property
    def silent_s(self) -> float:
        return time.monotonic() - self.last


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """`deadline` is a time of the event loop's monotonic clock; past it nothing starts and what runs is stopped."""

    parallel: int
    silence_s: float
    deadline: float


Run = Callable[[Task, Heartbeat], Awaitable[Outcome]]
Ended = Callable[[Task, Outcome], Awaitable[None]]


async def dispatch(tasks: Sequence[Task], limits: Limits, run: Run, ended: Ended) -> bool:
    """Run every task once; `ended` is awaited as each one ends, and is not cancelled by the others.

    Returns False when the deadline kept tasks from starting or finishing. A task whose dependency failed still runs:
    it starts from what was found. A task that raises is a failed outcome, its siblings go on. A LeadlineError that
    belongs to the session (its endpoint refuses everyone) stops all tasks and is raised after they ended.
    """
    slots = asyncio.Semaphore(limits.parallel)
    done: dict[str, asyncio.Event] = {task.id: asyncio.Event() for task in tasks}
    fatal: list[LeadlineError] = []
    complete = True

    async def one(task: Task) -> None:
        nonlocal complete
        try:
            for dependency in task.depends_on:
                if dependency in done:
                    await done[dependency].wait()
            async with slots:
                if fatal:
                    return
                if time.monotonic() >= limits.deadline:
                    complete = False
                    return
                outcome, error = await _watched(task, limits, run)
                if error is not None:
                    fatal.append(error)
                complete = complete and outcome.failure != DEADLINE
                try:
                    await ended(task, outcome)
                except LeadlineError as failure:  # what ended could not be kept: nobody may go on as if it were
                    fatal.append(failure)
        finally:
            done[task.id].set()

    async with asyncio.TaskGroup() as group:
        for task in tasks:
            group.create_task(one(task), name=task.id)
    if fatal:
        raise fatal[0]
    return complete


DEADLINE = "the time limit of the session was reached"


async def _watched(task: Task, limits: Limits, run: Run) -> tuple[Outcome, LeadlineError | None]:
    """Run one task under its silence limit and the session's deadline."""
    heartbeat = Heartbeat()
    work = asyncio.ensure_future(run(task, heartbeat))
    try:
        while not work.done():
            now = time.monotonic()
            wait = min(limits.silence_s - heartbeat.silent_s, limits.deadline - now)
            if wait <= 0:
                reason = DEADLINE if now >= limits.deadline else f"silent for {limits.silence_s:g} s"
                await _cancel(work, heartbeat)
                return Outcome(status="stopped", failure=reason), None
            await asyncio.wait({work}, timeout=wait)
        return work.result(), None
    except LeadlineError as error:
        return Outcome(status="stopped", failure=str(error)), error
    except Exception as error:  # noqa: BLE001 - a subagent's fault is its own outcome; siblings go on
        return Outcome(status="failed", failure=f"{type(error).__name__}: {error}"), None
    finally:
        heartbeat.stopped = True
        if not work.done():
            await _cancel(work, heartbeat)


async def _cancel(work: asyncio.Future[Outcome], heartbeat: Heartbeat, grace_s: float = 5.0) -> None:
    """Cancel and wait a little; a subagent that does not even react to that is left behind, not waited for."""
    heartbeat.stopped = True
    work.cancel()
    await asyncio.wait({work}, timeout=grace_s)
    if work.done() and not work.cancelled():
        work.exception()  # seen: its outcome is that it was stopped
