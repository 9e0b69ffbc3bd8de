"""What the command line costs as a process: CPU seconds of each command beside `python -c pass` in the same run.

    python -m tests.bench.command_cost REPO [--runs 7]

The index of REPO is built first; everything measured is warm, compiled modules included (they go to a folder of this
run, whatever the caller's PYTHONDONTWRITEBYTECODE says). User plus system time, children included, and the wall clock.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

QUESTION = "How does a request reach the code that handles it?"


def cost(command: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """CPU seconds of one process and its children, and wall seconds."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    wall = time.perf_counter() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("repo", type=Path)
    parser.add_argument("--runs", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        environment = {
            **os.environ,
            "LEADLINE_STATE_DIR": str(Path(home) / "state"),
            "LEADLINE_CACHE_DIR": str(Path(home) / "cache"),
            "PYTHONPYCACHEPREFIX": str(Path(home) / "compiled"),
        }
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        ours = [sys.executable, "-m", "orchestrator"]
        commands = {
            "python -c pass": [sys.executable, "-c", "pass"],
            "import click": [sys.executable, "-c", "import click"],
            "leadline --help": [*ours, "--help"],
            "leadline sessions": [*ours, "sessions"],
            "leadline find": [*ours, "find", str(options.repo), QUESTION],
            "leadline map": [*ours, "map", str(options.repo)],
            "leadline explore": [*ours, "explore", str(options.repo), QUESTION, "--engine", "static", "--quiet"],
        }
        for command in commands.values():
            cost(command, environment)
        rows: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
        for _ in range(options.runs):
            for name, command in commands.items():
                rows[name].append(cost(command, environment))
        base = statistics.median(cpu for cpu, _ in rows["python -c pass"])
        print("| command | CPU s, median | min | x `python -c pass` | wall s, median |\n|---|---|---|---|---|")
        for name, times in rows.items():
            cpu, wall = (statistics.median(column) for column in zip(*times, strict=True))
            print(f"| {name} | {cpu:.3f} | {min(times)[0]:.3f} | {cpu / base:.1f} | {wall:.3f} |")


if __name__ == "__main__":
    main()
