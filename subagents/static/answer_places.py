"""The answer to "where is X" and "what is X": definitions, the line that says it, configuration, who uses it."""

from __future__ import annotations

from collections.abc import Sequence

from subagents.static import answer_common
from subagents.static.answer_dependents import use_bullets
from subagents.static.drafts import a, plural
from subagents.static.facts import Fact, Facts
from subagents.static.markdown import code, prose
from subagents.static.question import Question
from subagents.static.source import shorten
from subagents.static.writing import Writer


def write(question: Question, facts: Facts, writer: Writer) -> bool:
    """Whether a place was found."""
    places = facts.all("definition")
    settings = facts.all("setting")
    if not places and not (settings and question.kind == "where"):
        return False
    names = writer.names
    if places:
        _first(places[0], writer)
        _uses_sentence(facts, places[0], writer)
    if question.aspect == "configured":
        for setting in settings[:2]:
            at = names.at(setting.text("path"), setting.number("line"))
            writer.say(f"It is set at {at}: {code(shorten(setting.text('text'), 110))}.", [setting.id])
    writer.end_paragraph("Short answer")
    _members(facts, writer)
    _table(places, writer)
    if places:
        use_bullets(facts, writer, 0, "Who uses it", limit=5)
        _subclasses(facts, writer)
    if question.aspect != "configured":
        answer_common.settings(facts, writer, 3)
    else:
        answer_common.settings(facts, writer)
    answer_common.documentation(facts, writer)
    answer_common.tests(facts, writer)
    answer_common.lately(facts, writer)
    return True


def _first(place: Fact, writer: Writer) -> None:
    names = writer.names
    doc = f": “{prose(shorten(place.text('doc'), 160)).rstrip('.')}”" if place.text("doc") else ""
    where = names.at(place.text("path"), place.number("line"), place.number("end"))
    writer.say(f"{names.symbol(place.text('symbol'))}, {a(place.text('kind'))} at {where}{doc}.", [place.id])
    if place.text("telling"):
        line = names.at(place.text("path"), place.number("telling_line"))
        writer.say(f"Its telling line is {code(place.text('telling'))} ({line}).", [place.id])


def _uses_sentence(facts: Facts, place: Fact, writer: Writer) -> None:
    totals = [f for f in facts.of_number("total", 0) if f.text("target") == place.text("symbol")]
    for total in totals:
        if total.text("how") != "call":
            continue
        at_least = "at least " if total.flag("truncated") else ""
        groups = [f for f in facts.of_number("group", 0) if f.text("how") == "call" and not f.flag("test")]
        first = groups[0] if groups else None
        example = ""
        ids = [total.id]
        if first is not None and first.rows("examples"):
            row = first.rows("examples")[0]
            inside = f" in {code(str(row.get('inside')))}" if row.get("inside") else ""
            example = f", first of all{inside} ({writer.names.at(str(row.get('path')), _line(row))})"
            ids.append(first.id)
        writer.say(
            f"It is called on {at_least}{plural(total.number('lines'), 'line')} in "
            f"{plural(total.number('files'), 'file')}{example}.",
            ids,
        )


def _members(facts: Facts, writer: Writer) -> None:
    rows: list[tuple[str, Sequence[str]]] = []
    for fact in facts.all("members"):
        for row in fact.rows("shown"):
            doc = f": {prose(shorten(str(row.get('doc', '')), 110))}" if row.get("doc") else ""
            at = writer.names.full(str(row.get("path")), _line(row))
            rows.append((f"{code(str(row.get('symbol')))} ({at}){doc}", [fact.id]))
        writer.bullets(f"What it offers ({plural(fact.number('count'), 'public method')})", rows)


def _table(places: Sequence[Fact], writer: Writer) -> None:
    rows = []
    for place in places:
        at = writer.names.full(place.text("path"), place.number("line"), place.number("end"))
        telling = ""
        if place.text("telling"):
            telling = f"line {place.number('telling_line')}: {code(shorten(place.text('telling'), 80))}"
        said = prose(shorten(place.text("doc"), 100)) or code(shorten(place.text("signature"), 80))
        rows.append(((code(place.text("symbol")), place.text("kind"), at, telling or said), [place.id]))
    if len(rows) > 1:
        writer.table(("symbol", "kind", "where", "what it says"), rows)


def _subclasses(facts: Facts, writer: Writer) -> None:
    for fact in facts.all("subclasses"):
        shown = [
            f"{code(str(r.get('symbol')))} ({writer.names.full(str(r.get('path')), _line(r))})"
            for r in fact.rows("shown")[:5]
        ]
        more = fact.number("count") - len(shown)
        text = ", ".join(shown) + (f" and {more} more" if more > 0 else "")
        writer.bullets("What extends it", [(text, [fact.id])])


def _line(row: dict[str, object]) -> int:
    value = row.get("line", 1)
    return value if isinstance(value, int) else 1
