"""Tests worth reading: those that call the places of an answer, or whose names speak of the question."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from subagents.codebase.types import CodeIndex, Finder, Symbol
from subagents.static.callgraph import FUNCTION_KINDS, Key, key_of
from subagents.static.drafts import Draft, listing, place, symbol_data, where
from subagents.static.question import Question
from subagents.static.relevance import Relevance, name_words, term_match
from subagents.static.roles import path_role
from subagents.static.source import Sources

MAX_TESTS = 4
_SCRIPTED = re.compile(
    r"""^\s*(?:test|it|describe|scenario|should|specify|context)\s*[({]?\s*["'`{](?P<title>[^"'`{}]{4,160})""", re.I
)


def test_drafts(
    question: Question,
    index: CodeIndex,
    finder: Finder,
    sources: Sources,
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
    for symbol in places[:2]:
        for hit in finder.find_symbols(" ".join(("test", *name_words(symbol.name))), limit=40):
            if path_role(hit.symbol.path) == "test" and hit.symbol.kind in FUNCTION_KINDS:
                tests.setdefault(key_of(hit.symbol), hit.symbol)
    for file in finder.find(question.search_text, limit=40):
        if path_role(file.path) == "test":
            for hit in file.symbols[:3]:
                if hit.symbol.kind in FUNCTION_KINDS:
                    tests.setdefault(key_of(hit.symbol), hit.symbol)
    scored = []
    wanted = [set(name_words(symbol.name)) for symbol in places[:3]]
    for key, test in tests.items():
        if not exercised.get(key) and not _is_test(test):
            continue  # a fixture or a helper, perhaps of the very name that is asked about
        about = relevance.in_text(f"{test.name} {test.doc}")
        own = name_words(test.qualified)
        named = any(
            len(words) > 1 and all(any(term_match(w, o) >= 0.85 for o in own) for w in words) for words in wanted
        )
        score = about + 0.25 * min(3, len(exercised.get(key, []))) + (0.3 if _is_test(test) else 0.0)
        score += 0.5 if named else 0.0
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
    if kept < limit:
        yield from _scripted(question, index, finder, sources, limit - kept)


def _is_test(test: Symbol) -> bool:
    return test.name.lower().startswith(("test", "it_", "should", "spec", "benchmark", "example")) or any(
        "test" in decorator.lower() and "fixture" not in decorator.lower() for decorator in test.decorators
    )


def _scripted(question: Question, index: CodeIndex, finder: Finder, sources: Sources, limit: int) -> Iterator[Draft]:
    """Tests that are no functions: `test {Keys expire} {`, `it("expires keys")`; of files named like the subject."""
    scored: list[tuple[float, str, int, str]] = []
    files = [hit.path for hit in finder.find(question.search_text, limit=60)]
    files += [p for p in index.paths() if any(t[:5] in p.lower() for t in question.strong_terms if len(t) > 3)]
    for path in [p for p in dict.fromkeys(files) if path_role(p) == "test"][:60]:
        stem_words = name_words(path.rpartition("/")[2].partition(".")[0])
        named = [t for t in question.strong_terms if any(term_match(t, word) >= 0.85 for word in stem_words)]
        if not named:
            continue
        for number, row in sources.lines(path, 1, 4000):
            told = _SCRIPTED.match(row)
            if told is None:
                continue
            held = name_words(told.group("title"))
            hits = sum(1 for t in question.strong_terms if any(term_match(t, word) >= 0.6 for word in held))
            if hits >= min(2, len(question.strong_terms)):
                scored.append((-hits - 0.5 * len(named), path, number, told.group("title").strip()))
    per_file: dict[str, int] = {}
    for negative, path, number, title in sorted(scored):
        if per_file.get(path, 0) >= 2 or limit <= 0:
            continue
        per_file[path] = per_file.get(path, 0) + 1
        limit -= 1
        yield Draft(
            claim=f"The test “{title[:100]}” ({where(path, number)}) is about the question by its title.",
            kind="behaviour",
            citations=((path, number, number),),
            symbols=(),
            relevance=0.4,
            data={"step": "test", "exercises": [], "score": round(0.5 - 0.1 * negative, 3), "symbol": title[:100],
                  "path": path, "line": number, "doc": ""},
        )  # fmt: skip


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
