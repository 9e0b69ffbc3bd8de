"""What one durable step costs beside the model: assemble, count, validate, send over loopback, record with fsync.

The fake API runs in a process of its own with no latency; its own work is measured by it and shown apart.

    python -m tests.bench.claude_step [--steps 100] [--agents 1]
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import statistics
import tempfile
import time
from pathlib import Path

from manifests.jsonl import AppendLog
from tests.fake_api.process import FakeApiProcess
from tests.subagents.claude.world import World, make_repository, modules, opened, session_on, settings_for


class StepClock:
    """Collects the time between two requests' ends, and inside of it the time spent in durable appends."""

    def __init__(self) -> None:
        self.steps: list[float] = []
        self.durable_s = 0.0
        self.last = 0.0

    def entry(self, _: object) -> None:
        now = time.perf_counter()
        if self.last:
            self.steps.append(now - self.last)
        self.last = now


async def run(
    here: World, api: FakeApiProcess, *, agents: int, steps: int, about: str = "orders"
) -> tuple[float, list[float]]:
    """All agents at once on one loop: wall seconds, and the seconds between ends of requests of one agent alone."""
    clock = StepClock()
    engine = here.engine(settings_for(api, max_turns=steps + 50, parallel_requests=200))
    engine.on_entry = clock.entry if agents == 1 else (lambda _: None)
    tasks = [here.task(f"How are {about} of kind {n} handled?") for n in range(agents)]
    await engine.facts("claude-opus-5")
    started = time.perf_counter()
    try:
        outcomes = await asyncio.gather(*(engine.investigate(here.context(task)) for task in tasks))
    finally:
        await engine.close()
    assert all(outcome.status in ("finished", "partial") for outcome in outcomes), outcomes
    return time.perf_counter() - started, clock.steps


def measured_appends() -> list[float]:
    """From here on, the seconds of every append to a log."""
    spent: list[float] = []
    append = AppendLog.append

    def timed(self: AppendLog, body: object, *, sync: bool = True) -> int:
        started = time.perf_counter()
        try:
            return append(self, body, sync=sync)  # type: ignore[arg-type]
        finally:
            spent.append(time.perf_counter() - started)

    AppendLog.append = timed  # type: ignore[method-assign]
    return spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--agents", type=int, default=1)
    given = parser.parse_args()
    options = {"model": {"name": "explorer", "steps": given.steps, "parallel": 1}, "keep_bodies": False}
    with tempfile.TemporaryDirectory() as name, FakeApiProcess(**options) as api:
        folder = Path(name)
        (folder / "repository").mkdir()
        make_repository(folder / "repository", modules(16, functions=60))
        with opened(folder / "repository", folder / "cache") as workspace:
            with session_on(workspace, folder / "warm") as here:
                asyncio.run(run(here, api, agents=1, steps=given.steps, about="warmups"))
            with session_on(workspace, folder / "state") as here:
                spent = measured_appends()
                cpu = time.process_time()
                seconds, gaps = asyncio.run(run(here, api, agents=given.agents, steps=given.steps))
                cpu = time.process_time() - cpu
                written = sum(p.stat().st_size for p in here.session.folder.rglob("*") if p.is_file())
        served = statistics.median(r.handling_s for r in api.requests if r.number >= 0) * 1e3
    per_step = seconds / given.steps * 1e3 / given.agents
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"agents {given.agents}, steps {given.steps}: {per_step:.2f} ms a step, {memory:.0f} MiB at most")
    print(f"processor time {cpu / given.steps / given.agents * 1e3:.2f} ms a step")
    if gaps:
        print(f"median of one step {statistics.median(gaps) * 1e3:.2f} ms; the fake itself {served:.2f} ms of it")
    steps = given.steps * given.agents
    print(f"durable: {len(spent) / steps:.1f} appends a step, {sum(spent) / steps * 1e3:.2f} ms a step")
    print(f"written: {written / given.steps / given.agents / 1024:.1f} KiB a step")


if __name__ == "__main__":
    main()
