"""What it costs to open, read and search a snapshot, beside git and ripgrep doing the nearest thing, in the same run.

    python -m tests.bench.snapshot_cost REPO [--runs 5]

REPO is a git checkout whose index is fresh (`git status` in it first). CPU seconds are medians, children included.
Baselines: `git status --porcelain` for opening, reading every listed file for reading, and `rg --count-matches` over
the same list of files for a search that finds nothing.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from subagents.codebase.history import recent_commits
from subagents.codebase.ripgrep import rg_executable, search_text
from subagents.codebase.snapshot import open_snapshot
from subagents.codebase.types import Skipped

NEEDLE = "no such words are anywhere in it 4711"


def cost(work: Callable[[], object], runs: int) -> tuple[float, float]:
    """Median CPU (own and children's) and wall seconds."""
    cpu, wall = [], []
    for _ in range(runs):
        before, children, started = (
            time.process_time(),
            resource.getrusage(resource.RUSAGE_CHILDREN),
            time.perf_counter(),
        )
        work()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        wall.append(time.perf_counter() - started)
        spent = after.ru_utime + after.ru_stime - children.ru_utime - children.ru_stime
        cpu.append(time.process_time() - before + spent)
    return statistics.median(cpu), statistics.median(wall)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("repo", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    repo: Path = options.repo

    def show(what: str, ours: tuple[float, float], baseline: tuple[float, float] | None = None) -> None:
        line = f"{what:<28} {ours[0]:7.3f} s CPU {ours[1]:7.3f} s"
        if baseline is not None:
            line += f"   baseline {baseline[0]:7.3f} s CPU {baseline[1]:7.3f} s   ratio {ours[0] / baseline[0]:5.2f}"
        print(line)

    def run(command: list[str]) -> None:
        subprocess.run(command, cwd=repo, stdout=subprocess.DEVNULL, check=False)

    def opening() -> None:
        with open_snapshot(repo) as opened:
            opened.files()

    show("open", cost(opening, options.runs), cost(lambda: run(["git", "status", "--porcelain"]), options.runs))
    with open_snapshot(repo) as snapshot:
        files = [path for path, entry in snapshot.files().items() if entry.mode in ("file", "executable")]

        def reading() -> None:
            assert not any(isinstance(data, Skipped) for _, data in snapshot.read_many(files))

        def plain_reading() -> None:
            for path in files:
                (snapshot.root / path).read_bytes()

        show(f"read {len(files)} files", cost(reading, options.runs), cost(plain_reading, options.runs))
        show("first search", cost(lambda: search_text(snapshot, NEEDLE), 1))
        rg = [rg_executable(), "--no-config", "--count-matches", "--threads=1", "-e", NEEDLE, "--", *files]
        show("search", cost(lambda: search_text(snapshot, NEEDLE), options.runs), cost(lambda: run(rg), options.runs))
        show("1,500 commits", cost(lambda: recent_commits(snapshot), options.runs))


if __name__ == "__main__":
    main()
