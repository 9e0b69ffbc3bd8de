"""Sections that answers of several kinds share: documentation, settings, tests, history, what lies outside."""

from __future__ import annotations

from collections.abc import Sequence

from subagents.static.drafts import listing
from subagents.static.facts import Fact, Facts
from subagents.static.markdown import code, prose
from subagents.static.source import shorten
from subagents.static.writing import Writer, codes


def documentation(facts: Facts, writer: Writer, limit: int = 3, least: float = 0.0) -> None:
    rows: list[tuple[str, Sequence[str]]] = []
    seen: set[tuple[str, int]] = set()
    for doc in sorted(facts.all("doc"), key=lambda f: (-f.real("score"), f.text("path"), f.number("line"))):
        at = (doc.text("path"), doc.number("line"))
        if at in seen or doc.real("score") < least or len(rows) >= limit:
            continue
        seen.add(at)
        heading = f" (“{prose(doc.text('heading'))}”)" if doc.text("heading") else ""
        quote = shorten(doc.text("quote"), 300)
        place = writer.names.full(doc.text("path"), doc.number("line"), doc.number("end"))
        rows.append((f"{place}{heading}: “{prose(quote)}”", (doc.id,)))
    writer.bullets("What the documentation says", rows)


def tests(facts: Facts, writer: Writer, limit: int = 4) -> None:
    rows: list[tuple[str, Sequence[str]]] = []
    seen: set[tuple[str, int]] = set()
    for test in sorted(facts.all("test"), key=lambda f: (-f.real("score"), f.text("path"), f.number("line"))):
        at = (test.text("path"), test.number("line"))
        if at in seen or len(rows) >= limit:
            continue
        seen.add(at)
        calls = test.texts("exercises")
        why = f" calls {codes(calls, 3)}" if calls else ""
        doc = f": {prose(shorten(test.text('doc'), 110))}" if test.text("doc") else ""
        rows.append((f"{code(test.text('symbol'))} ({writer.names.full(*at)}){why}{doc}", (test.id,)))
    writer.bullets("Tests worth reading", rows)


def settings(facts: Facts, writer: Writer, limit: int = 4) -> None:
    rows: list[tuple[str, Sequence[str]]] = []
    for fact in facts.all("setting")[:limit]:
        place = writer.names.full(fact.text("path"), fact.number("line"))
        rows.append((f"{place}: {code(fact.text('text'))}", (fact.id,)))
    writer.bullets("Configuration that speaks of it", rows)


def lately(facts: Facts, writer: Writer, paths: Sequence[str] = (), limit: int = 4) -> None:
    """Newest first; with `paths`, only commits of these (the places the answer names)."""
    commits = [f for f in facts.all("commit") if not paths or f.text("path") in paths]
    rows: list[tuple[str, Sequence[str]]] = []
    seen: set[str] = set()
    for fact in sorted(commits, key=lambda f: (f.text("date"), f.text("commit")), reverse=True):
        commit = fact.text("commit")
        if commit in seen or len(rows) >= limit:
            continue
        seen.add(commit)
        same = [f for f in commits if f.text("commit") == commit]
        where = listing([code(p) for p in dict.fromkeys(f.text("path") for f in same)][:2])
        subject = prose(shorten(fact.text("subject"), 100))
        rows.append((f"{fact.text('date')} {code(commit[:8])} {subject} ({where})", [f.id for f in same]))
    writer.bullets("Lately", rows)


def outside(facts: Facts, writer: Writer, chains: Sequence[int] = (0, 1)) -> None:
    rows: list[tuple[str, Sequence[str]]] = []
    by_module: dict[str, list[Fact]] = {}
    for fact in facts.all("outside"):
        if fact.number("chain") in chains:
            by_module.setdefault(fact.text("module"), []).append(fact)
    for module, found in by_module.items():
        named = listing(
            [f"{code(f.text('name'))} ({writer.names.at(f.text('path'), f.number('line'))})" for f in found[:3]]
        )
        ids = [f.id for f in found[:3]]
        if module:
            rows.append((f"{named} from {code(module)}, a dependency that is not in this repository", ids))
        else:
            rows.append((f"{named}: no definition of that name in this snapshot", ids))
    writer.bullets("Outside this repository", rows)
