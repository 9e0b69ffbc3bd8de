"""How well ranked search finds the files a change had to touch, beside simpler ways of searching, in one run.

    python -m tests.bench.localization ROWS.jsonl --mirrors FOLDER --scratch FOLDER [--methods leadline,bm25]

ROWS holds one JSON object a line: id, repo (OWNER/NAME), base_commit, query, gold_files, gold_functions (`path:Name`).
FOLDER of --mirrors holds a git directory OWNER+NAME/repo for each. Rows without a mirror are left out, and said so.
Each row's commit is checked out; `leadline` goes the way of the product: snapshot, index (kept and grown from row to
row), finder. Acc@k: all gold files are among the first k. BM25 needs the package bm25s, ripgrep comes with leadline.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CUTS = (1, 3, 5, 10)
DEPTH = 20
_SUFFIXES = """.py .pyi .pyx .go .rs .ts .tsx .js .jsx .mjs .cjs .c .h .cc .cpp .cxx .hpp .hh .java .kt .rb .php .cs
.scala .swift"""
SOURCE = frozenset(_SUFFIXES.split())
_COMMON = "the a an and or of to in is it for on with this that as be are not from by when if at but"
_STOP = frozenset(_COMMON.split())
_WORD = re.compile(r"[A-Za-z_]\w+")
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")


@dataclass
class Outcome:
    """What one method did on the rows."""

    ranks: list[list[str]] = field(default_factory=list)
    gold: list[list[str]] = field(default_factory=list)
    definitions: list[list[str]] = field(default_factory=list)
    query_s: list[float] = field(default_factory=list)
    prepare_s: list[float] = field(default_factory=list)

    def accuracy(self, k: int) -> float:
        return accuracy(self.ranks, self.gold, k)

    def reciprocal_rank(self) -> float:
        total = 0.0
        for ranked, gold in zip(self.ranks, self.gold, strict=True):
            total += next((1 / at for at, one in enumerate(ranked, 1) if one in gold), 0.0)
        return total / max(1, len(self.ranks))


def accuracy(ranks: Sequence[Sequence[str]], gold: Sequence[Sequence[str]], k: int) -> float:
    hits = [set(wanted) <= set(ranked[:k]) for ranked, wanted in zip(ranks, gold, strict=True)]
    return 100 * sum(hits) / max(1, len(hits))


class Method:
    """One way of searching. `prepare` is timed apart from `rank`."""

    def prepare(self, folder: Path) -> None:
        self.folder = folder

    def rank(self, query: str) -> list[str]:
        raise NotImplementedError

    def definitions(self, query: str) -> list[str]:
        return []

    def close(self) -> None:
        pass


class Leadline(Method):
    def __init__(self, cache: Path) -> None:
        self.cache = cache
        self.open = ExitStack()

    def prepare(self, folder: Path) -> None:
        from subagents.codebase.snapshot import open_snapshot
        from subagents.index.opening import open_index
        from subagents.ranking import open_finder

        self.open.close()
        snapshot = self.open.enter_context(open_snapshot(folder))
        index = self.open.enter_context(open_index(snapshot, self.cache))
        self.finder = open_finder(snapshot, index, self.cache)

    def rank(self, query: str) -> list[str]:
        return [hit.path for hit in self.finder.find(query, limit=DEPTH)]

    def definitions(self, query: str) -> list[str]:
        hits = self.finder.find_symbols(query, limit=DEPTH)
        return [f"{hit.symbol.path}:{hit.symbol.qualified}" for hit in hits]

    def close(self) -> None:
        self.open.close()


class Bm25(Method):
    """Okapi BM25 over whole files, identifiers split into their parts, through the package bm25s."""

    def prepare(self, folder: Path) -> None:
        import bm25s  # type: ignore[import-not-found]

        self.files = source_files(folder)
        texts = [code_words((folder / name).read_text("utf-8", "replace") + f" {name}" * 3) for name in self.files]
        self.model = bm25s.BM25()
        self.model.index(texts, show_progress=False)

    def rank(self, query: str) -> list[str]:
        found, _ = self.model.retrieve([code_words(query)], k=min(DEPTH, len(self.files)), show_progress=False)
        return [self.files[place] for place in found[0].tolist()]


class RipgrepCount(Method):
    """Files by the number of different words of the question that ripgrep finds in them."""

    def rank(self, query: str) -> list[str]:
        from subagents.codebase.ripgrep import rg_executable

        counted: Counter[str] = Counter()
        for word in list(dict.fromkeys(w for w in _WORD.findall(query) if len(w) > 3 and w.lower() not in _STOP))[:40]:
            done = subprocess.run(
                [rg_executable(), "--no-config", "-l", "-i", "-F", "--no-messages", "-e", word, "--", "."],
                cwd=self.folder, capture_output=True, text=True, errors="replace", check=False,
            )  # fmt: skip
            counted.update(line[2:] for line in done.stdout.splitlines() if Path(line).suffix in SOURCE)
        return [path for path, _ in counted.most_common(DEPTH)]


class PathMatch(Method):
    """Files by the words of the question that stand in their path."""

    def prepare(self, folder: Path) -> None:
        self.files = source_files(folder)
        self.words = [set(code_words(name.rpartition(".")[0])) for name in self.files]
        self.df = Counter(word for some in self.words for word in some)

    def rank(self, query: str) -> list[str]:
        asked = set(code_words(query))
        scores = [
            sum(1 / self.df[word] ** 0.5 for word in some & asked) / (1 + len(some)) ** 0.5 for some in self.words
        ]
        order = sorted(range(len(scores)), key=lambda place: (-scores[place], self.files[place]))
        return [self.files[place] for place in order if scores[place] > 0][:DEPTH]


def source_files(folder: Path) -> list[str]:
    listed = subprocess.run(["git", "-C", str(folder), "ls-files", "-z"], capture_output=True, check=True).stdout
    names = [name for name in listed.decode("utf-8", "replace").split("\0") if Path(name).suffix in SOURCE]
    return [name for name in names if (folder / name).is_file() and (folder / name).stat().st_size < 1_000_000]


def code_words(text: str) -> list[str]:
    found: list[str] = []
    for word in _WORD.findall(text):
        parts = [part.lower() for piece in word.split("_") for part in _PART.findall(piece)]
        found += [part for part in parts if len(part) > 1 and part not in _STOP]
        if len(parts) > 1:
            found.append(word.lower())
    return found


METHODS: dict[str, Callable[[Path], Method]] = {
    "leadline": Leadline,
    "bm25": lambda _: Bm25(),
    "ripgrep": lambda _: RipgrepCount(),
    "path": lambda _: PathMatch(),
}


def mirror_of(mirrors: Path, repo: str) -> Path | None:
    base = mirrors / repo.replace("/", "+") / "repo"
    return next((place for place in (base, base / ".git") if (place / "HEAD").exists()), None)


def checkout(mirror: Path, folder: Path, commit: str) -> None:
    """A clone that shares the mirror's objects and has no branch: nothing later than `commit` can be seen in it."""
    if not (folder / ".git").exists():
        subprocess.run(["git", "init", "-q", str(folder)], check=True)
        alternates = folder / ".git/objects/info/alternates"
        alternates.parent.mkdir(exist_ok=True)
        alternates.write_text(f"{(mirror / 'objects').resolve()}\n")
        subprocess.run(["git", "-C", str(folder), "config", "advice.detachedHead", "false"], check=True)
    for command in (
        ["update-ref", "--no-deref", "HEAD", commit],
        ["read-tree", commit],
        ["clean", "-q", "-ffdx"],
    ):
        subprocess.run(["git", "-C", str(folder), *command], check=True)
    # a mirror may lack its largest files: what is there is laid out, and the command fails for the rest
    subprocess.run(["git", "-C", str(folder), "checkout-index", "-q", "-a", "-f"], check=False, capture_output=True)


def match_symbols(ranked: Sequence[str], gold: Sequence[str]) -> list[str]:
    """Each hit written as the gold entry it names: same file, one qualified name ending with the other."""
    used: set[str] = set()
    made: list[str] = []
    for hit in ranked:
        path, _, name = hit.rpartition(":")
        for wanted in gold:
            there, _, other = wanted.rpartition(":")
            same = f".{other}".endswith(f".{name}") or f".{name}".endswith(f".{other}")
            if wanted not in used and path == there and same:
                used.add(wanted)
                hit = wanted
                break
        made.append(hit)
    return made


def run(rows: Sequence[dict[str, Any]], arguments: argparse.Namespace) -> dict[str, Outcome]:
    names = arguments.methods.split(",")
    methods = {name: METHODS[name](arguments.scratch / "cache") for name in names}
    outcomes = {name: Outcome() for name in names}
    for number, row in enumerate(rows, 1):
        mirror = mirror_of(arguments.mirrors, row["repo"])
        assert mirror is not None
        folder = arguments.scratch / "checkouts" / row["repo"].replace("/", "+")
        checkout(mirror, folder, row["base_commit"])
        for name, method in methods.items():
            start = time.perf_counter()
            method.prepare(folder)
            ready = time.perf_counter()
            ranked = method.rank(row["query"])
            done = time.perf_counter()
            outcome = outcomes[name]
            outcome.ranks.append(ranked)
            outcome.gold.append(row["gold_files"])
            outcome.definitions.append(match_symbols(method.definitions(row["query"]), row["gold_functions"]))
            outcome.prepare_s.append(ready - start)
            outcome.query_s.append(done - ready)
        if number % 20 == 0:
            print(f"{number}/{len(rows)}", file=sys.stderr)
    for method in methods.values():
        method.close()
    return outcomes


def table(outcomes: dict[str, Outcome]) -> str:
    head = ["method", *(f"Acc@{k}" for k in CUTS), "MRR", "s a query", "s to prepare"]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for name, outcome in outcomes.items():
        cells = [name, *(f"{outcome.accuracy(k):.1f}" for k in CUTS), f"{outcome.reciprocal_rank():.3f}"]
        cells += [f"{statistics.median(times):.3f}" for times in (outcome.query_s, outcome.prepare_s)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("rows", type=Path)
    parser.add_argument("--mirrors", type=Path, required=True)
    parser.add_argument("--scratch", type=Path, required=True)
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--limit", type=int, default=0)
    parser.add_argument("--out", type=Path, help="rankings, one JSON object a row and method")
    arguments = parser.parse_args()
    rows = [json.loads(line) for line in arguments.rows.read_text().splitlines() if line.strip()]
    there = [row for row in rows if mirror_of(arguments.mirrors, row["repo"]) is not None]
    there.sort(key=lambda row: (row["repo"], row.get("date", ""), row["id"]))
    if arguments.limit:
        there = there[:: max(1, len(there) // arguments.limit)]
    outcomes = run(there, arguments)
    print(f"{len(there)} of {len(rows)} rows ({len(rows) - len(there)} without a mirror)\n")
    print(table(outcomes))
    functions = [at for at, row in enumerate(there) if row["gold_functions"]]
    for name, outcome in outcomes.items():
        if functions and any(outcome.definitions):
            ranks, gold = (
                [outcome.definitions[at] for at in functions],
                [there[at]["gold_functions"] for at in functions],
            )
            shown = ", ".join(f"Acc@{k} {accuracy(ranks, gold, k):.1f}" for k in CUTS)
            print(f"\ndefinitions, {name}, {len(functions)} rows: {shown}")
    peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) // 1024
    print(f"\npeak memory of one process: {peak} MiB")
    if arguments.out:
        lines = [
            json.dumps(
                {"id": row["id"], "method": name, "ranked": outcome.ranks[at], "definitions": outcome.definitions[at]}
            )
            for name, outcome in outcomes.items()
            for at, row in enumerate(there)
        ]
        arguments.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
