"""Tests worth reading: those that call the places of an answer, or whose names speak of the question."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from subagents.codebase.types import CodeIndex, Finder, Symbol
from subagents.static.callgraph import FUNCTION_KINDS, Key, key_of
from subagents.static.drafts import Draft, listing, place, symbol_data, where
from subagents.static.question import Question
from subagents.static.relevance import Relevance
from subagents.static.roles import path_role

MAX_TESTS = 4


def test_drafts(
    question: Question,
    index: CodeIndex,
    finder: Finder,
    relevance: Relevance,
    places: Sequence[Symbol] = (),
    limit: int = MAX_TESTS,
) -> Iterator[Draft]:
    """Best first; at most two of one file."""
    exercised: dict[Key, list[str]] = {}
    tests: dict[Key, Symbol] = {}
    lines: dict[Key, tuple[str, int]] = {}
    for symbol in places[:12]:
        for call in index.callers(symbol, limit=80):
            if path_role(call.path) == "test" and call.caller.kind in FUNCTION_KINDS and call.certainty >= 0.65:
                key = key_of(call.caller)
                tests.setdefault(key, call.caller)
                lines.setdefault(key, (call.path, call.line))
                if symbol.qualified not in exercised.setdefault(key, []):
                    exercised[key].append(symbol.qualified)
    for hit in finder.find_symbols(question.search_text + " test", limit=30):
        if path_role(hit.symbol.path) == "test" and hit.symbol.kind in FUNCTION_KINDS:
            tests.setdefault(key_of(hit.symbol), hit.symbol)
    for file in finder.find(question.search_text, limit=40):
        if path_role(file.path) == "test":
            for hit in file.symbols[:3]:
                if hit.symbol.kind in FUNCTION_KINDS:
                    tests.setdefault(key_of(hit.symbol), hit.symbol)
    scored = []
    for key, test in tests.items():
        about = relevance.in_text(f"{test.name} {test.doc}")
        looks = 0.3 if test.name.lower().startswith(("test", "it_", "should", "spec")) else 0.0
        score = about + 0.25 * min(3, len(exercised.get(key, []))) + looks
        scored.append((-score, key, test))
    per_file: dict[str, int] = {}
    kept = 0
    for negative, key, test in sorted(scored, key=lambda item: item[:2]):
        if kept >= limit or -negative < 0.55:
            break
        if per_file.get(test.path, 0) >= 2:
            continue
        per_file[test.path] = per_file.get(test.path, 0) + 1
        kept += 1
        yield _draft(test, exercised.get(key, []), lines.get(key), -negative)


test_drafts.__test__ = False  # type: ignore[attr-defined]  # no test itself, whatever a collector makes of its name


def _draft(test: Symbol, exercised: list[str], line: tuple[str, int] | None, score: float) -> Draft:
    calls = (
        f" exercises {listing([f'`{name}`' for name in exercised[:3]])}"
        if exercised
        else " is about the question by name"
    )
    citations = [place(test)]
    if line is not None and line != (test.path, test.start):
        citations.append((line[0], line[1], line[1]))
    return Draft(
        claim=f"The test `{test.qualified}` ({where(test.path, test.start)}){calls}.",
        kind="behaviour",
        citations=tuple(citations),
        symbols=(test.qualified,),
        relevance=round(min(0.6, 0.25 + 0.15 * score), 2),
        data={"step": "test", "exercises": exercised[:3], "score": round(score, 3), **symbol_data(test)},
    )
