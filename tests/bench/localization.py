"""How well ranked search finds the files a change had to touch, beside simpler ways of searching, in one run.

    python -m tests.bench.localization ROWS.jsonl ... --mirrors FOLDER --scratch FOLDER [--methods leadline,bm25]

ROWS hold one JSON object a line: id, repo (OWNER/NAME), base_commit, query, gold_files, gold_functions (`path:Name`).
FOLDER of --mirrors holds a git directory OWNER+NAME/repo for each. Rows without a mirror are left out, and said so.
Each row's commit is checked out; `leadline` goes the way of the product: snapshot, index (kept and grown from row to
row), finder. ROWS may also be architecture_questions.json. Acc@k: all gold files are among the first k. BM25 needs the
package bm25s, ripgrep comes with leadline.
`--aider PYTHON` adds the repository map of aider-chat, installed beside that interpreter; it takes seconds to minutes a
row, so `--aider-rows` limits it to rows spread evenly, and the table gives all methods on those rows too.

Each result is written to `--out` at once and not computed again: a run that was cut short goes on where it stopped.
Each method has a process of its own, whose highest memory is told.
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
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from subagents.ranking.weights import SET_BY_HAND, WEIGHTS

CUTS = (1, 3, 5, 10)
DEPTH = 20
_SUFFIXES = """.py .pyi .pyx .go .rs .ts .tsx .js .jsx .mjs .cjs .c .h .cc .cpp .cxx .hpp .hh .java .kt .rb .php .cs
.scala .swift"""
SOURCE = frozenset(_SUFFIXES.split())
_COMMON = "the a an and or of to in is it for on with this that as be are not from by when if at but"
_STOP = frozenset(_COMMON.split())
_WORD = re.compile(r"[A-Za-z_]\w+")
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")


@dataclass(frozen=True, kw_only=True)
class Result:
    """What one method did on one row."""

    row: str
    method: str
    ranked: list[str]
    definitions: list[str]
    prepare_s: float
    query_s: float
    first: bool
    """Nothing of this repository was there before."""
    peak_mib: int
    signs: list[list[float]]
    """Signs of the most promising files and of all gold files, in the order of `signs_of`; for fit_ranking."""
    signs_of: list[str]


def accuracy(ranks: Sequence[Sequence[str]], gold: Sequence[Sequence[str]], k: int) -> float:
    hits = [set(wanted) <= set(ranked[:k]) for ranked, wanted in zip(ranks, gold, strict=True)]
    return 100 * sum(hits) / max(1, len(hits))


def reciprocal_rank(ranks: Sequence[Sequence[str]], gold: Sequence[Sequence[str]]) -> float:
    total = 0.0
    for ranked, wanted in zip(ranks, gold, strict=True):
        total += next((1 / at for at, one in enumerate(ranked, 1) if one in wanted), 0.0)
    return total / max(1, len(ranks))


class Method:
    """One way of searching. `prepare` is timed apart from `rank`."""

    def prepare(self, folder: Path) -> None:
        self.folder = folder

    def rank(self, query: str) -> list[str]:
        raise NotImplementedError

    def definitions(self, query: str) -> list[str]:
        return []

    def signs(self, query: str, gold: Sequence[str]) -> dict[str, list[float]]:
        return {}


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

    def signs(self, query: str, gold: Sequence[str]) -> dict[str, list[float]]:
        from subagents.ranking.finder import POOL

        ranking, corpus = self.finder.rank(query), self.finder.corpus
        chosen = dict.fromkeys([*ranking.order[:POOL], *(corpus.place[path] for path in gold if path in corpus.place)])
        return {corpus.paths[file]: [round(float(ranking.table.signs[n][file]), 5) for n in SIGNS] for file in chosen}


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


class AiderMap(Method):
    """aider's repository map, asked as aider asks it for a message of a chat without files."""

    def __init__(self, python: str, scratch: Path) -> None:
        self.python, self.scratch = python, scratch

    def rank(self, query: str) -> list[str]:
        script = Path(__file__).with_name("aider_map.py")
        command = [self.python, str(script), str(self.folder), str(self.scratch / "aider" / self.folder.name)]
        done = subprocess.run(command, input=query, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()[:DEPTH]


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


METHODS: dict[str, Callable[[argparse.Namespace], Method]] = {
    "leadline": lambda arguments: Leadline(arguments.scratch / "cache"),
    "bm25": lambda _: Bm25(),
    "ripgrep": lambda _: RipgrepCount(),
    "path": lambda _: PathMatch(),
    "aider": lambda arguments: AiderMap(arguments.aider, arguments.scratch),
}
SIGNS = tuple(name for name in WEIGHTS if name not in SET_BY_HAND)


def mirror_of(mirrors: Path, repo: str) -> Path | None:
    base = mirrors / repo.replace("/", "+") / "repo"
    return next((place for place in (base, base / ".git") if (place / "HEAD").exists()), None)


def checkout(mirror: Path, folder: Path, commit: str) -> None:
    """A clone that shares the mirror's objects and has no branch: nothing later than `commit` can be seen in it."""
    head = folder / ".git/HEAD"
    if head.exists() and head.read_text().strip() == commit:
        return
    if not (folder / ".git").exists():
        subprocess.run(["git", "init", "-q", str(folder)], check=True)
        alternates = folder / ".git/objects/info/alternates"
        alternates.parent.mkdir(exist_ok=True)
        alternates.write_text(f"{(mirror / 'objects').resolve()}\n")
        subprocess.run(["git", "-C", str(folder), "config", "advice.detachedHead", "false"], check=True)
    for command in (
        ["read-tree", commit],
        ["clean", "-q", "-ffdx"],
    ):
        subprocess.run(["git", "-C", str(folder), *command], check=True)
    # a mirror may lack its largest files: what is there is laid out, and the command fails for the rest
    subprocess.run(["git", "-C", str(folder), "checkout-index", "-q", "-a", "-f"], check=False, capture_output=True)
    subprocess.run(["git", "-C", str(folder), "update-ref", "--no-deref", "HEAD", commit], check=True)


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


_own: dict[str, Method] = {}
"""The method of this process."""


def work(name: str, row: dict[str, Any], folder: Path, first: bool, arguments: argparse.Namespace) -> Result:
    """One row, in the process of its method."""
    method = _own.get(name) or _own.setdefault(name, METHODS[name](arguments))
    start = time.perf_counter()
    method.prepare(folder)
    ready = time.perf_counter()
    ranked = method.rank(row["query"])
    done = time.perf_counter()
    peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) // 1024
    signs = method.signs(row["query"], row["gold_files"]) if arguments.signs else {}
    return Result(
        row=row["id"], method=name, ranked=ranked, prepare_s=round(ready - start, 4), query_s=round(done - ready, 4),
        definitions=match_symbols(method.definitions(row["query"]), row["gold_functions"]), first=first, peak_mib=peak,
        signs=list(signs.values()), signs_of=list(signs),
    )  # fmt: skip


def run(rows: Sequence[dict[str, Any]], wanted: dict[str, set[str]], arguments: argparse.Namespace) -> None:
    """Write the missing results. `wanted`: the rows' ids by method."""
    known = results(arguments.out)
    seen = {(one["repo"], name) for one in rows for name in wanted if (one["id"], name) in known}
    with ExitStack() as stack, arguments.out.open("a") as out:
        pools: dict[str, ProcessPoolExecutor] = {}
        for number, row in enumerate(rows, 1):
            missing = [name for name in wanted if row["id"] in wanted[name] and (row["id"], name) not in known]
            if not missing:
                continue
            mirror = mirror_of(arguments.mirrors, row["repo"])
            assert mirror is not None
            folder = arguments.scratch / "checkouts" / row["repo"].replace("/", "+")
            checkout(mirror, folder, row["base_commit"])
            for name in missing:
                if name not in pools:
                    pools[name] = stack.enter_context(ProcessPoolExecutor(1, mp_context=get_context("spawn")))
                first = (row["repo"], name) not in seen
                result = pools[name].submit(work, name, row, folder, first, arguments).result()
                seen.add((row["repo"], name))
                out.write(json.dumps(vars(result)) + "\n")
                out.flush()
            print(f"{number}/{len(rows)} {row['id']}", file=sys.stderr, flush=True)


def results(file: Path) -> dict[tuple[str, str], Result]:
    """What was written so far, by row and method."""
    if not file.exists():
        return {}
    several = [Result(**json.loads(line)) for line in file.read_text().splitlines() if line.endswith("}")]
    return {(one.row, one.method): one for one in several}


def table(rows: Sequence[dict[str, Any]], found: dict[str, list[Result]]) -> str:
    head = ["method", *(f"Acc@{k}" for k in CUTS), "MRR", "s a query", "s to prepare", "s at first", "MiB"]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    gold = [row["gold_files"] for row in rows]
    for name, several in found.items():
        ranks = [one.ranked for one in several]
        first = [one.prepare_s for one in several if one.first]
        cells = [name, *(f"{accuracy(ranks, gold, k):.1f}" for k in CUTS), f"{reciprocal_rank(ranks, gold):.3f}"]
        cells += [f"{statistics.median(one.query_s for one in several):.3f}"]
        cells += [f"{statistics.median(one.prepare_s for one in several):.3f}"]
        cells += [f"{statistics.median(first):.2f}" if first else "", str(max(one.peak_mib for one in several))]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def report(title: str, rows: Sequence[dict[str, Any]], found: dict[str, list[Result]]) -> None:
    print(f"\n{title}, {len(rows)} rows\n\n{table(rows, found)}")
    functions = [at for at, row in enumerate(rows) if row["gold_functions"]]
    for name, several in found.items():
        if functions and any(one.definitions for one in several):
            ranks = [several[at].definitions for at in functions]
            gold = [rows[at]["gold_functions"] for at in functions]
            shown = ", ".join(f"Acc@{k} {accuracy(ranks, gold, k):.1f}" for k in CUTS)
            print(f"\ndefinitions, {name}, {len(functions)} rows: {shown}")


def read_rows(files: Sequence[Path]) -> list[dict[str, Any]]:
    """All rows, those of one repository together and in the order of their commits, as an index grows."""
    rows = [
        {**row, "source": file.stem}
        for file in files
        for row in (
            questions(json.loads(file.read_text()))
            if file.suffix == ".json"
            else [json.loads(line) for line in file.read_text().splitlines() if line.strip()]
        )
    ]
    return sorted(rows, key=lambda row: (row["repo"], row.get("date", ""), row["id"]))


def questions(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows of architecture_questions.json, which groups questions by repository."""
    return [
        {
            "id": f"{repo}#{number:02}",
            "repo": repo,
            "base_commit": about["commit"],
            "query": one["ask"],
            "gold_files": list(one["files"]),
            "gold_functions": [],
        }
        for repo, about in document["repositories"].items()
        for number, one in enumerate(about["questions"], 1)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("rows", type=Path, nargs="+")
    parser.add_argument("--mirrors", type=Path, required=True)
    parser.add_argument("--scratch", type=Path, required=True)
    parser.add_argument("--methods", default="leadline,bm25,ripgrep,path")
    parser.add_argument("--limit", type=int, default=0, help="so many rows, spread evenly")
    parser.add_argument("--out", type=Path, help="results, one JSON object a row and method; gone on with if there")
    parser.add_argument("--signs", action="store_true", help="keep leadline's signs too, for fit_ranking")
    parser.add_argument("--aider", help="a Python that has aider-chat")
    parser.add_argument("--aider-rows", type=int, default=30)
    arguments = parser.parse_args()
    arguments.out = arguments.out or arguments.scratch / "results.jsonl"
    arguments.scratch.mkdir(parents=True, exist_ok=True)
    rows = read_rows(arguments.rows)
    there = [row for row in rows if mirror_of(arguments.mirrors, row["repo"]) is not None]
    print(f"{len(there)} of {len(rows)} rows ({len(rows) - len(there)} without a mirror)")
    if arguments.limit:
        there = there[:: max(1, len(there) // arguments.limit)]
    wanted = {name: {row["id"] for row in there} for name in arguments.methods.split(",")}
    if arguments.aider:
        arguments.scratch.joinpath("aider").mkdir(exist_ok=True)
        wanted["aider"] = {row["id"] for row in there[:: max(1, len(there) // arguments.aider_rows)]}
    run(there, wanted, arguments)
    found = results(arguments.out)
    for chosen in {frozenset(ids): None for ids in wanted.values()}:
        for source in dict.fromkeys(row["source"] for row in there):
            some = [row for row in there if row["source"] == source and row["id"] in chosen]
            report(source, some, {n: [found[r["id"], n] for r in some] for n, ids in wanted.items() if chosen <= ids})


if __name__ == "__main__":
    main()
