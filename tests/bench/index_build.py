"""What the index costs, beside a bare one-process tree-sitter parse of the same files in the same run.

    python -m tests.bench.index_build REPO [--repeat N] [--workers N] [--no-extras]

Each figure is a process of its own, measured from outside: wall time, CPU of it and all its children, and the highest
sum of resident memory over the process tree. REPO is copied into a scratch folder for the changed-file runs only when
it is a work tree; a temporary cache is used throughout. Compiled modules are in place, in a folder of this run,
whatever the caller's PYTHONDONTWRITEBYTECODE says; workers keep theirs beside the sources.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

BARE = """
import sys
from pathlib import Path
from subagents.codebase.snapshot import open_snapshot
from subagents.codebase.types import Skipped
from subagents.codebase.textfile import classify, language_of
from subagents.index.grammars import parser_and_query
from subagents.index.languages import GRAMMARS, settle
from subagents.index.worker import PARSE_LIMIT_BYTES
count = size = 0
with open_snapshot(Path(sys.argv[1])) as snapshot:
    paths = [p for p, e in snapshot.files().items() if e.mode in ("file", "executable") and language_of(p) in GRAMMARS]
    for path, data in snapshot.read_many(paths):
        if isinstance(data, Skipped) or len(data) > PARSE_LIMIT_BYTES or classify(path, data) is not None:
            continue
        parser_and_query(settle(path, language_of(path), data))[0].parse(data)
        count += 1
        size += len(data)
print(count, size)
"""
SNAPSHOT = """
import sys
from pathlib import Path
from subagents.codebase.snapshot import open_snapshot
with open_snapshot(Path(sys.argv[1])) as snapshot:
    print(len(snapshot.files()))
"""
OPEN = """
import sys
from pathlib import Path
from subagents.codebase.snapshot import open_snapshot
from subagents.index.opening import open_index
workers = int(sys.argv[3]) or None
extras = () if sys.argv[4] == "none" else None
cache = Path(sys.argv[2])
with open_snapshot(Path(sys.argv[1]), cache=cache) as snapshot, open_index(
    snapshot, cache, workers=workers, extras=extras
) as index:
    print(index.file.stat().st_size)
"""


ENVIRONMENT: dict[str, str] = {}
"""Of the measured processes; set by `main`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    wall_s: float
    cpu_s: float
    peak_mib: float
    said: str


def tree_rss(root: int) -> int:
    """Bytes resident in a process and all its descendants (shared pages counted for each)."""
    children: dict[int, list[int]] = {}
    rss: dict[int, int] = {}
    page = os.sysconf("SC_PAGE_SIZE")
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            stat = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(stat[1]), []).append(int(entry.name))
        rss[int(entry.name)] = int(stat[21]) * page
    total, work = 0, [root]
    while work:
        process = work.pop()
        total += rss.get(process, 0)
        work.extend(children.get(process, ()))
    return total


def environment(compiled: str) -> dict[str, str]:
    made = {**os.environ, "PYTHONPYCACHEPREFIX": compiled}
    made.pop("PYTHONDONTWRITEBYTECODE", None)
    return made


def measure(code: str, *args: str) -> Cost:
    start = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", code, *args], stdout=subprocess.PIPE, env=ENVIRONMENT)
    peak = 0
    done = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.1):
            peak = max(peak, tree_rss(process.pid))

    watcher = threading.Thread(target=watch)
    watcher.start()
    assert process.stdout is not None
    said = process.stdout.read().decode().strip()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    done.set()
    watcher.join()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"a measured process failed: {process.returncode}")
    return Cost(wall_s=wall, cpu_s=usage.ru_utime + usage.ru_stime, peak_mib=peak / 2**20, said=said)


def best(costs: list[Cost]) -> Cost:
    """The least disturbed run: other work on the machine only ever adds."""
    return min(costs, key=lambda cost: cost.cpu_s)


def touch(repo: Path, number: int) -> tuple[Path, bytes]:
    """Append a definition to a source file of middling size; gives back what stood there."""
    sources = sorted(
        (path for path in repo.rglob("*.*") if path.suffix in (".py", ".go", ".c", ".ts", ".js") and path.is_file()),
        key=lambda path: (path.stat().st_size, path),
    )
    path = sources[len(sources) * 3 // 4]
    before = path.read_bytes()
    comment = b"#" if path.suffix == ".py" else b"//"
    path.write_bytes(before + b"\n" + comment + b" change %d\n" % number)
    return path, before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("repo", type=Path)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--no-extras", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    repo = str(options.repo.resolve())
    extras = "none" if options.no_extras else "all"
    compiled = tempfile.TemporaryDirectory()
    ENVIRONMENT.update(environment(compiled.name))
    measure(BARE, repo)
    rows: dict[str, Cost] = {}
    bare, cold, warm, changed, listing = [], [], [], [], []
    ratios: list[tuple[float, float]] = []
    for number in range(options.repeat):
        bare.append(measure(BARE, repo))
        with tempfile.TemporaryDirectory() as cache:
            cold.append(measure(OPEN, repo, cache, str(options.workers), extras))
            warm.append(measure(OPEN, repo, cache, str(options.workers), extras))
            path, before = touch(options.repo, number)
            try:
                changed.append(measure(OPEN, repo, cache, str(options.workers), extras))
            finally:
                path.write_bytes(before)
        listing.append(measure(SNAPSHOT, repo))
        again = measure(BARE, repo)  # before and after: a machine that others use changes its speed
        wall, cpu = (bare[-1].wall_s + again.wall_s) / 2, (bare[-1].cpu_s + again.cpu_s) / 2
        ratios.append((cold[-1].wall_s / wall, cold[-1].cpu_s / cpu))
    rows = {
        "bare one-process parse": best(bare),
        "index, cold": best(cold),
        "index, warm": best(warm),
        "index, one file changed": best(changed),
        "snapshot alone": best(listing),
    }
    files, size = rows["bare one-process parse"].said.split()
    if options.json:
        print(json.dumps({name: [cost.wall_s, cost.cpu_s, cost.peak_mib] for name, cost in rows.items()}))
        return
    print(f"{repo}: {files} files with a grammar, {int(size) / 1e6:.1f} MB; best of {options.repeat}, ratios: median")
    for name, cost in rows.items():
        ratio = (
            f"  wall x{statistics.median(w for w, _ in ratios):.2f}  CPU x{statistics.median(c for _, c in ratios):.2f}"
            if name == "index, cold"
            else ""
        )
        print(f"{name:26} wall {cost.wall_s:7.2f} s  CPU {cost.cpu_s:7.2f} s  peak {cost.peak_mib:6.0f} MiB{ratio}")
    print(f"index file: {int(rows['index, cold'].said) / 2**20:.1f} MiB")


if __name__ == "__main__":
    main()
