"""The answer to "where is X" and "what is X": definitions, the line that says it, configuration, who uses it."""

from __future__ import annotations

from collections.abc import Sequence

from subagents.static import answer_common
from subagents.static.answer_dependents import use_bullets
from subagents.static.callgraph import TYPE_KINDS
from subagents.static.drafts import a, listing, plural
from subagents.static.facts import Fact, Facts
from subagents.static.markdown import code, prose
from subagents.static.question import Question
from subagents.static.relevance import name_words, term_match
from subagents.static.source import shorten
from subagents.static.writing import Writer


def write(question: Question, facts: Facts, writer: Writer) -> bool:
    """Whether a place was found."""
    places = facts.all("definition")
    settings = facts.all("setting")
    if not places and not (settings and question.kind == "where"):
        return False
    sure = [f for f in settings if f.flag("sure")][:4] if question.aspect == "configured" else []
    _defaults(sure, writer)
    said = {f.text("symbol") for f in sure} | {f.text("name") for f in sure}
    if places and (not sure or (_adds(places[0], question) and places[0].text("symbol") not in said)):
        _first(places[0], writer)
        _uses_sentence(facts, places[0], writer)
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
    names = writer.names
    totals = [f for f in facts.of_number("total", 0) if f.text("target") == place.text("symbol")]
    for total in totals:
        if total.text("how") != "call":
            continue
        at_least = "at least " if total.flag("truncated") else ""
        in_code = [r for r in total.rows("examples") if not r.get("test")]
        rows = in_code or total.rows("examples")
        shown = [
            f"{code(str(r.get('inside')))} ({names.at(str(r.get('path')), _line(r))})"
            if r.get("inside")
            else names.at(str(r.get("path")), _line(r))
            for r in rows[:4]
        ]
        tests = total.number("test_lines") if in_code else 0
        more = total.number("lines") - len(shown) - tests
        if not shown:
            continue
        lines = f" and on {at_least}{more} more {'line' if more == 1 else 'lines'}" if more > 0 else ""
        aside = f", besides {plural(tests, 'line')} of tests and examples" if tests else ""
        writer.say(f"It is called in {listing(shown)}{lines}{aside}.", [total.id])


def _defaults(sure: Sequence[Fact], writer: Writer) -> None:
    """What the subject is by default; parameters of one value in one sentence."""
    names = writer.names
    groups: dict[tuple[str, str, str], list[Fact]] = {}
    for fact in sure:
        key = (fact.text("manner"), fact.text("name"), fact.text("value"))
        groups.setdefault(key if fact.text("manner") == "parameter" else (*key[:2], fact.id), []).append(fact)
    for (manner, name, _), facts in groups.items():
        first, ids = facts[0], [f.id for f in facts]
        value = code(first.text("value"))
        owner = first.text("symbol") if manner != "parameter" else ""
        inside = f" in {names.symbol(owner)}" if owner else ""
        at = names.at(first.text("path"), first.number("line")) if manner != "parameter" else ""
        match manner:
            case "parameter":
                where = listing(
                    [f"{names.symbol(f.text('symbol'))} ({names.at(f.text('path'), f.number('line'))})" for f in facts]
                )
                writer.say(f"{code(name)} is {value} by default, as a parameter of {where}.", ids)
            case "file":
                read = next(iter(first.rows("read")), None)
                reader = ""
                if read is not None:
                    line = names.at(str(read.get("path")), _line(read))
                    by = code(str(read.get("inside"))) if read.get("inside") else ""
                    reader = f"; {by} reads it ({line})" if by else f"; {line} names it"
                writer.say(f"{code(name)} stands at {at}: {code(shorten(first.text('text'), 110))}{reader}.", ids)
            case "entry" if not first.text("value"):
                writer.say(f"{code(name)} is declared{inside} at {at}: {code(shorten(first.text('text'), 110))}.", ids)
            case "constant":
                writer.say(f"{code(name)} is {value} ({at}).", ids)
            case _:
                writer.say(f"{code(name)} is {value} by default{inside} ({at}).", ids)


def _adds(place: Fact, question: Question) -> bool:
    """Whether a definition says more than the defaults before it: no mere type, and about all that is asked for."""
    own = name_words(place.text("symbol"))
    return place.text("kind") not in TYPE_KINDS and all(
        any(term_match(term, word) >= 0.75 for word in own) for term in question.strong_terms
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
