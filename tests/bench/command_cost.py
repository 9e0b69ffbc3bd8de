"""What the command line costs as a process: CPU seconds of each command beside `python -c pass` in the same run.

    python -m tests.bench.command_cost REPO [--runs 7]

The index of REPO is built first; everything measured is warm. Medians of user plus system time, children included.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

QUESTION = "How does a request reach the code that handles it?"


def cpu_s(command: list[str], environment: dict[str, str]) -> float:
    """CPU seconds of one process and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


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
        }
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
        cpu_s(commands["leadline explore"], environment)
        rows: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(options.runs):
            for name, command in commands.items():
                rows[name].append(cpu_s(command, environment))
        base = statistics.median(rows["python -c pass"])
        print("| command | CPU s, median | min | x `python -c pass` |\n|---|---|---|---|")
        for name, times in rows.items():
            median = statistics.median(times)
            print(f"| {name} | {median:.3f} | {min(times):.3f} | {median / base:.1f} |")


if __name__ == "__main__":
    main()
