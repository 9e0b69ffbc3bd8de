"""The answer to "what is the structure": packages and their purpose, layers, entry points, cycles, hubs."""

from __future__ import annotations

from collections.abc import Sequence

from subagents.static import answer_common
from subagents.static.drafts import listing, plural
from subagents.static.facts import Fact, Facts
from subagents.static.markdown import code, prose
from subagents.static.question import Question
from subagents.static.source import shorten
from subagents.static.writing import Arrow, Writer, codes, diagram


def write(question: Question, facts: Facts, writer: Writer) -> bool:
    """Whether there was code to describe."""
    packages = facts.all("package")
    if not packages:
        return False
    _short(facts, packages, writer)
    writer.end_paragraph("Short answer")
    _table(facts, packages, writer)
    writer.block(_diagram(facts))
    _layers(facts, writer)
    _entries(facts, writer)
    _hubs(facts, writer)
    answer_common.documentation(facts, writer)
    answer_common.lately(facts, writer)
    return True


def _short(facts: Facts, packages: Sequence[Fact], writer: Writer) -> None:
    for fact in facts.all("languages")[:1]:
        if fact.text("purpose"):
            at = writer.names.at(fact.text("path"), fact.number("line"))
            writer.say(
                f"In its own words: “{prose(shorten(fact.text('purpose'), 200)).rstrip('.')}” ({at}).", [fact.id]
            )
        rows = [f"{r.get('language')} ({r.get('files'):,} files)" for r in fact.rows("rows")[:3]]
        writer.say(f"{fact.number('indexed'):,} files were indexed; the code is {listing(rows)}.", [fact.id])
    for package in packages[:5]:
        said = f": {prose(shorten(package.text('purpose'), 130)).rstrip('.')}" if package.text("purpose") else ""
        biggest = f", above all {codes(package.texts('biggest'), 3)}" if not said and package.texts("biggest") else ""
        size = f"{plural(package.number('files'), 'file')}, {package.number('lines'):,} lines"
        writer.say(f"{code(package.text('name'))} ({size}){said}{biggest}.", [package.id])
    hub = next(iter(facts.all("hub")), None)
    if hub is not None:
        writer.say(
            f"Most files lean on {code(hub.text('path'))} (imported by {hub.number('importers'):,} others).", [hub.id]
        )
    depends = facts.all("depends")[:2]
    if depends:
        said = listing(
            [f"{code(d.text('from'))} on {code(d.text('to'))} ({d.number('count')} imports)" for d in depends]
        )
        writer.say(f"The strongest dependencies are {said}.", [d.id for d in depends])


def _table(facts: Facts, packages: Sequence[Fact], writer: Writer) -> None:
    rows: list[tuple[Sequence[str], Sequence[str]]] = []
    for package in packages:
        about = prose(shorten(package.text("purpose"), 120)) or f"largest: {codes(package.texts('biggest'), 4)}"
        at = writer.names.full(package.text("path"), package.number("line")) if package.text("purpose") else ""
        size = f"{package.number('files'):,} / {package.number('lines'):,}"
        rows.append(((code(package.text("name")), size, str(package.number("layer")), about, at), [package.id]))
    for fact in facts.all("tests"):
        rows.append(((code(fact.text("name")), f"{fact.number('files'):,}", "", "tests", fact.text("path")), [fact.id]))
    writer.table(("folder", "files / lines", "layer", "what it is for", "where it says so"), rows)


def _diagram(facts: Facts) -> str:
    arrows = [
        Arrow(source=d.text("from"), target=d.text("to"), text=str(d.number("count")))
        for d in facts.all("depends")[:12]
    ]
    return diagram(arrows) if arrows else ""


def _layers(facts: Facts, writer: Writer) -> None:
    rows: list[tuple[str, Sequence[str]]] = []
    for fact in facts.all("layers")[:1]:
        for number, row in enumerate(fact.rows("rows")):
            names = row.get("names")
            if isinstance(names, list):
                rows.append((f"layer {number + 1}: {codes([str(n) for n in names], 8)}", [fact.id]))
    writer.bullets("Layers by imports, the top one first (it imports those below)", rows)
    found: list[tuple[str, Sequence[str]]] = []
    for cycle in facts.all("cycle"):
        at = writer.names.full(cycle.text("path"), cycle.number("line"))
        found.append(
            (
                f"{codes(cycle.texts('members'), 8)}; the thinnest link is {code(cycle.text('from'))} importing "
                f"{code(cycle.text('to'))} {plural(cycle.number('count'), 'place')} ({at})",
                [cycle.id],
            )
        )
    writer.bullets("Cycles between folders", found)


def _entries(facts: Facts, writer: Writer) -> None:
    rows: list[tuple[str, Sequence[str]]] = []
    for fact in facts.all("entry")[:8]:
        at = writer.names.full(fact.text("path"), fact.number("line"))
        rows.append((f"{fact.text('what')}: {code(fact.text('text'))} ({at})", [fact.id]))
    writer.bullets("Entry points", rows)


def _hubs(facts: Facts, writer: Writer) -> None:
    rows: list[tuple[str, Sequence[str]]] = []
    for fact in facts.all("hub"):
        doc = f": {prose(shorten(fact.text('doc'), 120))}" if fact.text("doc") else ""
        rows.append((f"{code(fact.text('path'))}, imported by {fact.number('importers'):,} files{doc}", [fact.id]))
    writer.bullets("Read first (what most files lean on)", rows)
