"""The weights of ranked search, fitted anew: cross-validation over repositories, and what each sign brings.

    python -m tests.bench.localization ROWS.jsonl ... --methods leadline --signs --out RESULTS.jsonl ...
    python -m tests.bench.fit_ranking RESULTS.jsonl ROWS.jsonl ... [--ablate]

The signs of each row's most promising files are those that the product's ranking computed in that run. The fit
maximises the likelihood of each gold file against the others of its row (a conditional logit), with a small penalty on
squares; signs may not count against a file, priors may. Repositories, not rows, are held out: rows of one repository
resemble each other. Needs scipy, which leadline itself does not.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from subagents.ranking.weights import AT_LEAST, PRIORS, WEIGHTS
from tests.bench.localization import SIGNS as NAMES
from tests.bench.localization import read_rows, results

PENALTY = 0.005
CUTS = (1, 5, 10)

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Row:
    """The candidates of one question: their signs, which are gold, and how many gold files there are in all."""

    repo: str
    source: str
    signs: Numbers
    is_gold: NDArray[np.bool_]
    gold: int


def load(results_file: Path, row_files: Sequence[Path]) -> list[Row]:
    known = results(results_file)
    made = []
    for row in read_rows(row_files):
        result = known.get((row["id"], "leadline"))
        if result is not None and result.signs:
            is_gold = np.array([path in row["gold_files"] for path in result.signs_of])
            made.append(Row(row["repo"], row["source"], np.array(result.signs), is_gold, len(row["gold_files"])))
    return made


def fit(rows: Sequence[Row], columns: Sequence[int]) -> Numbers:
    """Weights of all NAMES; those that are not among `columns` are 0."""
    from scipy.optimize import minimize  # type: ignore[import-untyped]

    rows = [row for row in rows if row.is_gold.any()]
    signs = np.concatenate([row.signs[:, columns] for row in rows])
    sizes = np.array([len(row.is_gold) for row in rows])
    owner = np.repeat(np.arange(len(rows)), sizes)
    begins = np.cumsum(sizes) - sizes
    is_gold = np.concatenate([row.is_gold for row in rows])
    gold = np.flatnonzero(is_gold)
    share = 1 / np.bincount(owner[gold], minlength=len(rows))[owner[gold]]

    def loss(weights: Numbers) -> tuple[float, Numbers]:
        scores = signs @ weights
        scores -= np.maximum.reduceat(scores, begins)[owner]
        mass = np.exp(scores)
        others = mass * ~is_gold
        total = np.add.reduceat(others, begins)[owner[gold]] + mass[gold]
        value = -(share * (scores[gold] - np.log(total))).sum() / len(rows)
        pull = others * np.bincount(owner[gold], share / total, minlength=len(rows))[owner]
        pull[gold] += share * (mass[gold] / total - 1)
        return value + PENALTY * (weights**2).sum(), signs.T @ pull / len(rows) + 2 * PENALTY * weights

    names = [NAMES[column] for column in columns]
    bounds = [(None, None) if name in PRIORS else (AT_LEAST.get(name, 0.0), None) for name in names]
    found = minimize(loss, np.zeros(len(names)), jac=True, method="L-BFGS-B", bounds=bounds)
    weights = np.zeros(len(NAMES))
    weights[list(columns)] = found.x
    return weights


def held_out(rows: Sequence[Row], columns: Sequence[int]) -> list[tuple[Row, Numbers]]:
    """Each repository's rows with weights fitted on all others."""
    scored: list[tuple[Row, Numbers]] = []
    for repo in sorted({row.repo for row in rows}):
        weights = fit([row for row in rows if row.repo != repo], columns)
        scored += [(row, row.signs @ weights) for row in rows if row.repo == repo]
    return scored


def report(name: str, scored: Sequence[tuple[Row, Numbers]]) -> None:
    told = []
    for source in sorted({row.source for row, _ in scored}):
        ranked = [
            (row, row.is_gold[np.argsort(-scores, kind="stable")]) for row, scores in scored if row.source == source
        ]
        cells = [100 * np.mean([hits[:k].sum() == row.gold for row, hits in ranked]) for k in CUTS]
        first = [1 / (1 + int(hits.argmax())) if hits.any() else 0.0 for _, hits in ranked]
        told.append(f"{source} {' / '.join(f'{cell:.1f}' for cell in cells)}, MRR {np.mean(first):.3f}")
    print(f"{name:<28} " + " | ".join(told), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("rows", type=Path, nargs="+")
    parser.add_argument("--ablate", action="store_true", help="also without each sign, and without groups of them")
    arguments = parser.parse_args()
    rows = load(arguments.results, arguments.rows)
    everything = range(len(NAMES))
    report("weights in use", [(row, row.signs @ np.array([WEIGHTS[name] for name in NAMES])) for row in rows])
    weights = fit(rows, everything)
    report("fitted on all rows", [(row, row.signs @ weights) for row in rows])
    report("held-out repositories", held_out(rows, everything))
    print({name: round(float(weight), 2) for name, weight in zip(NAMES, weights, strict=True)})
    if arguments.ablate:
        groups = [("commits", "recent"), ("passage", "symbol", "symbol_name"), ("named", "frame", "module")]
        for group in [*((name,) for name in NAMES), *groups, ("defines", "member", "mentions"), ("comment", "string")]:
            kept = [column for column in everything if NAMES[column] not in group]
            report("without " + ", ".join(group), held_out(rows, kept))


if __name__ == "__main__":
    main()
