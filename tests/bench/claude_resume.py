"""How long after `leadline resume` the first request of a killed exploration leaves, on a repository of your own.

Beside it, in the same run: a process that does nothing but `import anthropic`, which every run with a model pays for.
The exploration is killed with all its subagents running; the fake API runs in a process of its own.

    python -m tests.bench.claude_resume REPO [--runs 3] [--agents 8]
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.orchestrator.claude.lab import Lab, lab

QUESTION = "How do models, forms, queries, templates, views, caching, sessions and migrations work together?"


@dataclass(frozen=True)
class Spent:
    """Seconds of one process: by the clock, and of processor time."""

    wall: float
    cpu: float


@contextmanager
def measured(into: list[Spent]) -> Iterator[None]:
    """A child that ends inside is the only one."""
    started, before = time.perf_counter(), os.times()
    yield
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    into.append(Spent(time.perf_counter() - started, cpu))


def killed(one: Lab, repo: Path, agents: int) -> str:
    """The session of an exploration that was killed with its subagents running."""
    assert one.api is not None
    process = one.start("explore", str(repo), QUESTION, "--engine", "claude", "--quiet", "--yes", "--parallel", "8")
    seen = one.api.state["created"]
    while process.poll() is None and one.api.state["created"] < seen + 1 + 3 * agents:
        time.sleep(0.02)
    process.kill()
    process.communicate()
    (listed,) = one.json("sessions")["sessions"]
    return str(listed["session"])


def first_request(one: Lab, session: str) -> None:
    """Resume until the first request of a model has arrived; the process is then killed."""
    assert one.api is not None
    seen = one.api.state["created"]
    process = one.start("resume", session, "--quiet", "--yes", "--parallel", "8")
    while process.poll() is None and one.api.state["created"] == seen:
        time.sleep(0.03)  # asking costs both ends processor time
    process.kill()
    process.communicate()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("repo", type=Path)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--agents", type=int, default=8)
    given = parser.parse_args()
    slow = {"latency_s": 0.05, "event_delay_s": 0.002}
    with (
        tempfile.TemporaryDirectory() as folder,
        lab(Path(folder) / "home", settings=slow, tasks=given.agents, rounds=1, steps=60) as one,
    ):
        one.configure(fan_out=given.agents)
        session = killed(one, given.repo.absolute(), given.agents)
        resumed: list[Spent] = []
        imported: list[Spent] = []
        for _ in range(given.runs):
            with measured(resumed):
                first_request(one, session)
            with measured(imported):
                subprocess.run([sys.executable, "-c", "import anthropic"], check=True)
    for name, rows in (("resume to first request", resumed), ("baseline: import anthropic and end", imported)):
        wall, cpu = statistics.median(r.wall for r in rows), statistics.median(r.cpu for r in rows)
        print(f"{name}: {wall:.2f} s, {cpu:.2f} s of processor time (median of {given.runs})")


if __name__ == "__main__":
    main()
