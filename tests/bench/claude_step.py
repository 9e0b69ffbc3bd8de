"""What one durable step costs beside the model: assemble, count, validate, send over loopback, record with fsync.

The fake API runs in a process of its own with no latency. Beside our step stand, measured in the same run so that a
busy machine slows both: a bare POST of the same bytes to the same fake by the SDK's HTTP library (its own work is in
it), and a bare append of the same bytes with fdatasync.

    python -m tests.bench.claude_step [--steps 100] [--agents 1] [--folder /dev/shm]

`--folder`: where the session is written; in memory it shows the step without the disk.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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

    def timed(self: AppendLog, *given: Any, **options: Any) -> int:
        started = time.perf_counter()
        try:
            return append(self, *given, **options)
        finally:
            spent.append(time.perf_counter() - started)

    AppendLog.append = timed  # type: ignore[method-assign]
    return spent


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Milliseconds: wall, and this process's own processor time."""

    wall_ms: float
    cpu_ms: float


async def bare_posts(api: FakeApiProcess, bodies: list[bytes]) -> Cost:
    """The median POST of these bytes by nothing but the HTTP library, replies read to their end."""
    import httpx2

    headers = {"content-type": "application/json", "anthropic-version": "2023-06-01", "x-api-key": api.api_key}
    spent: list[float] = []
    async with httpx2.AsyncClient() as client:
        cpu = time.process_time()
        for body in bodies:
            started = time.perf_counter()
            answer = await client.post(f"{api.base_url}/v1/messages", content=body, headers=headers)
            answer.raise_for_status()
            spent.append(time.perf_counter() - started)
        cpu = time.process_time() - cpu
    return Cost(wall_ms=statistics.median(spent) * 1e3, cpu_ms=cpu / len(bodies) * 1e3)


def bare_sync(folder: Path, size: int, times: int = 100) -> float:
    """Milliseconds of the median append of so many bytes with fdatasync."""
    spent: list[float] = []
    with (folder / "bare").open("ab") as file:
        for _ in range(times):
            started = time.perf_counter()
            os.write(file.fileno(), b"x" * size)
            os.fdatasync(file.fileno())
            spent.append(time.perf_counter() - started)
    return statistics.median(spent) * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--agents", type=int, default=1)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    options = {"model": {"name": "explorer", "steps": given.steps, "parallel": 1}}
    with tempfile.TemporaryDirectory(dir=given.folder) as name, FakeApiProcess(**options) as api:
        folder = Path(name)
        (folder / "repository").mkdir()
        make_repository(folder / "repository", modules(16, functions=60))
        with opened(folder / "repository", folder / "cache") as workspace:
            with session_on(workspace, folder / "warm") as here:
                asyncio.run(run(here, api, agents=1, steps=given.steps, about="warmups"))
            bodies = [r.body for r in api.created][:: max(1, given.steps // 60)]
            posts = [asyncio.run(bare_posts(api, bodies))]
            with session_on(workspace, folder / "state") as here:
                spent = measured_appends()
                cpu = time.process_time()
                seconds, gaps = asyncio.run(run(here, api, agents=given.agents, steps=given.steps))
                cpu = time.process_time() - cpu
                written = sum(p.stat().st_size for p in here.session.folder.rglob("*") if p.is_file())
            posts.append(asyncio.run(bare_posts(api, bodies)))
            steps = given.steps * given.agents
            sync = bare_sync(folder, written // steps // 4)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    post = min(posts, key=lambda p: p.wall_ms)
    print(
        f"agents {given.agents}, steps {given.steps}: {seconds / steps * 1e3:.2f} ms a step, {memory:.0f} MiB at most"
    )
    if gaps:
        print(f"median of one step {statistics.median(gaps) * 1e3:.2f} ms")
    print(
        f"baseline: a bare POST of the same bytes {post.wall_ms:.2f} ms, {post.cpu_ms:.2f} ms of it our processor time"
    )
    print(f"processor time {cpu / steps * 1e3:.2f} ms a step")
    print(f"durable: {len(spent) / steps:.1f} appends a step, {sum(spent) / steps * 1e3:.2f} ms a step")
    print(f"baseline: one bare append with fdatasync {sync:.2f} ms")
    print(f"written: {written / steps / 1024:.1f} KiB a step")


if __name__ == "__main__":
    main()
