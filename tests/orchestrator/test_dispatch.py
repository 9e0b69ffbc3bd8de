import asyncio
import time

import pytest

from manifests.errors import EngineError, StateError
from manifests.tasks import Task
from orchestrator.dispatch import DEADLINE, Heartbeat, Limits, dispatch
from subagents.engine import Outcome


def tasks(n: int) -> list[Task]:
    return [Task(id=f"t{i}", role="investigate", question=f"q{i}") for i in range(n)]


def limits(parallel: int = 8, silence_s: float = 30, seconds: float = 30) -> Limits:
    return Limits(parallel=parallel, silence_s=silence_s, deadline=time.monotonic() + seconds)


class Ended:
    def __init__(self) -> None:
        self.outcomes: dict[str, Outcome] = {}

    async def __call__(self, task: Task, outcome: Outcome) -> None:
        assert task.id not in self.outcomes
        self.outcomes[task.id] = outcome

    @property
    def statuses(self) -> list[str]:
        return [self.outcomes[k].status for k in sorted(self.outcomes)]


async def test_one_task_that_raises_does_not_cancel_its_siblings() -> None:
    ended = Ended()

    async def run(task: Task, heartbeat: Heartbeat) -> Outcome:
        if task.id == "t1":
            raise RuntimeError("boom")
        await asyncio.sleep(0.02)
        return Outcome(status="finished")

    assert await dispatch(tasks(3), limits(), run, ended)
    assert ended.statuses == ["finished", "failed", "finished"]
    assert ended.outcomes["t1"].failure == "RuntimeError: boom"


async def test_a_silent_task_is_stopped_and_one_with_a_heartbeat_is_not() -> None:
    ended = Ended()

    async def run(task: Task, heartbeat: Heartbeat) -> Outcome:
        for _ in range(6):
            await asyncio.sleep(0.1)
            if task.id == "t0":
                heartbeat()
        return Outcome(status="finished")

    assert await dispatch(tasks(2), limits(silence_s=0.3), run, ended)
    assert ended.statuses == ["finished", "stopped"]
    assert "silent for 0.3 s" in ended.outcomes["t1"].failure


async def test_never_more_than_the_limit_run_at_once() -> None:
    running = most = 0

    async def run(task: Task, heartbeat: Heartbeat) -> Outcome:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.001)
        running -= 1
        return Outcome(status="finished")

    assert await dispatch(tasks(20), limits(parallel=3), run, Ended())
    assert most == 3


async def test_a_dependent_task_starts_after_what_it_depends_on_even_when_that_fails() -> None:
    order: list[str] = []
    first, second = tasks(2)
    second = Task(id="t1", role="investigate", question="q", depends_on=("t0",))

    async def run(task: Task, heartbeat: Heartbeat) -> Outcome:
        order.append(task.id)
        await asyncio.sleep(0.01)
        order.append(task.id + " done")
        if task.id == "t0":
            raise ValueError("no")
        return Outcome(status="finished")

    await dispatch([second, first], limits(parallel=1), run, Ended())
    assert order == ["t0", "t0 done", "t1", "t1 done"]


async def test_the_deadline_stops_what_runs_and_starts_nothing_new() -> None:
    ended = Ended()

    async def run(task: Task, heartbeat: Heartbeat) -> Outcome:
        await asyncio.sleep(60)
        return Outcome(status="finished")

    assert not await dispatch(tasks(3), limits(parallel=1, seconds=0.1), run, ended)
    assert {k: v.failure for k, v in ended.outcomes.items()} == {"t0": DEADLINE}


async def test_a_fault_of_the_whole_session_ends_it_after_the_running_ones() -> None:
    ended = Ended()

    async def run(task: Task, heartbeat: Heartbeat) -> Outcome:
        if task.id == "t0":
            raise EngineError("the endpoint refused the key", hint="check it")
        await asyncio.sleep(0.02)
        return Outcome(status="finished")

    with pytest.raises(EngineError):
        await dispatch(tasks(5), limits(parallel=2), run, ended)
    assert ended.statuses == ["stopped", "finished"]


async def test_an_end_that_cannot_be_kept_is_raised_as_itself() -> None:
    async def run(task: Task, heartbeat: Heartbeat) -> Outcome:
        return Outcome(status="finished")

    async def ended(task: Task, outcome: Outcome) -> None:
        raise StateError("no space left", hint="make room")

    with pytest.raises(StateError, match="no space left"):
        await dispatch(tasks(3), limits(parallel=1), run, ended)
