"""The answer to "what depends on X" and "what would break if X changed": who, grouped and counted, then how far."""

from __future__ import annotations

from collections.abc import Sequence

from subagents.static import answer_common
from subagents.static.drafts import a, listing, plural
from subagents.static.facts import Fact, Facts
from subagents.static.markdown import code, prose
from subagents.static.question import Question
from subagents.static.source import shorten
from subagents.static.writing import Arrow, Writer, codes, diagram

_VERBS = {
    "import": ("imports it", "import it"),
    "call": ("calls it", "call it"),
    "name": ("mentions it", "mention it"),
    "maybe": ("calls something of that name", "call something of that name"),
    "inherit": ("extends it", "extend it"),
    "text": ("names it without a call", "name it without a call"),
    "alias": ("reads or names what stands for it", "read or name what stands for it"),
}


_HOW = {"import": "imports", "call": "calls", "name": "mentions", "maybe": "may call", "text": "names"}


def write(question: Question, facts: Facts, writer: Writer) -> bool:
    """Whether X was found (an external dependency counts when something imports it)."""
    targets = facts.all("target")
    totals = facts.all("total")
    if not targets and not totals:
        return False
    for number in range(max(1, len(targets))):
        target = targets[number] if number < len(targets) else None
        _short(question, facts, target, number, writer)
        writer.end_paragraph("Short answer" if number == 0 else "The other of that name")
    if question.kind == "impact":
        _breaks(facts, writer)
    for number in range(max(1, len(targets))):
        about = f" {code(targets[number].text('symbol'))}" if len(targets) > 1 else ""
        _table(facts, number, writer, about)
    writer.block(_diagram(facts))
    for fact in facts.all("subclasses"):
        shown = [
            f"{code(str(r.get('symbol')))} ({writer.names.full(str(r.get('path')), _line(r))})"
            for r in fact.rows("shown")
        ]
        more = fact.number("count") - len(shown)
        writer.bullets(
            f"What {'implements' if fact.flag('implements') else 'extends'} {code(fact.text('target'))}",
            [(", ".join(shown) + (f" and {more} more" if more > 0 else ""), [fact.id])],
        )
    if question.kind == "impact":
        answer_common.documentation(facts, writer, least=0.6)
        answer_common.settings(facts, writer, 3)
    answer_common.tests(facts, writer)
    answer_common.lately(facts, writer)
    return True


def _short(question: Question, facts: Facts, target: Fact | None, number: int, writer: Writer) -> None:
    names = writer.names
    totals = {f.text("how"): f for f in facts.of_number("total", number)}
    ids = [f.id for f in totals.values()]
    if target is None:
        name = code(next(iter(totals.values())).text("target"))
        writer.say(f"{name} is not part of this repository: it is a dependency.", ids)
    else:
        name = names.symbol(target.text("symbol"))
        ids.insert(0, target.id)
        if target.text("target") == "symbol":
            where = names.at(target.text("path"), target.number("line"), target.number("end"))
            doc = f": “{prose(shorten(target.text('doc'), 120)).rstrip('.')}”" if target.text("doc") else ""
            writer.say(f"{name} is {a(target.text('kind'))} at {where}{doc}.", [target.id])
        elif target.text("target") == "name":
            _key(facts, target, number, writer)
        elif target.text("target") == "file":
            where = names.full(target.text("path"), target.number("line"))
            defines = f", which defines {codes(target.texts('defines'), 5)}" if target.texts("defines") else ""
            writer.say(f"{code(target.text('symbol'))} is a file of this snapshot ({where}){defines}.", [target.id])
        elif target.text("target") == "package":
            writer.say(f"{name} is a folder of {plural(target.number('files'), 'file')}.", [target.id])
    parts = []
    written = target is not None and target.text("target") == "name"
    for how in ("call", "import", "name", "text"):
        total = totals.get(how)
        if total is None:
            continue
        parts.append(_counted(total, _VERBS[how] if not written else ("names it", "name it")))
    for fact in facts.of_number("subclasses", number):
        count = fact.number("count")
        verb = "implement" if fact.flag("implements") else "extend"
        shown = [code(str(r.get("symbol"))) for r in fact.rows("shown")[:4]]
        shown += [f"{count - len(shown)} more"] if count > len(shown) else []
        parts.append(f"{plural(count, 'type')} {verb}{'s' if count == 1 else ''} it ({listing(shown)})")
        ids.append(fact.id)
    if parts:
        writer.say(f"{_capital(listing(parts))}.", ids)
    elif target is not None:
        _alone(facts, target, number, writer)
    biggest = [
        f for f in facts.of_number("group", number) if not f.flag("test") and f.text("how") not in ("maybe", "alias")
    ][:3]
    if biggest:
        said = [
            f"{code(f.text('package'))} ({plural(f.number('lines'), 'line')} in "
            f"{plural(f.number('files'), 'file')}, e.g. {_example(f, writer)})"
            for f in _by_package(biggest)
        ]
        writer.say(f"Most of it lies in {listing(said)}.", [f.id for f in biggest])
    for stand_in in facts.of_number("stand-in", number):
        _stand_in(facts, stand_in, number, writer)
    maybe = totals.get("maybe")
    if maybe is not None and target is not None:
        writer.say(
            f"Another {plural(maybe.number('lines'), 'line')} call something named "
            f"{code(target.text('symbol').rpartition('.')[2])} "
            "that may be this or another definition of the name.",
            [maybe.id],
        )


def _key(facts: Facts, target: Fact, number: int, writer: Writer) -> None:
    name = writer.names.symbol(target.text("symbol"))
    files = plural(target.number("files"), "file")
    if target.flag("defined"):
        at = writer.names.at(target.text("path"), target.number("line"))
        text = code(shorten(target.text("text"), 90))
        writer.say(f"{name} is defined at {at} ({text}), where no grammar sees it; {files} name it.", [target.id])
    else:
        said = f"{name} is a key: the code of this snapshot names it in {files} and defines it nowhere."
        writer.say(said, [target.id])
    for fact in facts.of_number("key", number):
        at = writer.names.at(fact.text("path"), fact.number("line"))
        writer.say(f"It is given a value at {at}: {code(shorten(fact.text('text'), 100))}.", [fact.id])


def _stand_in(facts: Facts, stand_in: Fact, number: int, writer: Writer) -> None:
    at = writer.names.at(stand_in.text("path"), stand_in.number("line"))
    name = writer.names.symbol(stand_in.text("symbol"))
    groups = [
        f
        for f in facts.of_number("group", number)
        if f.text("how") == "alias" and f.text("target") == stand_in.text("symbol") and not f.flag("test")
    ]
    read = f"; it is read in {listing([_example(f, writer) for f in groups[:3]])}" if groups else ""
    sentence = f"{name} ({at}) stands for it, {code(shorten(stand_in.text('text'), 90))}{read}."
    writer.say(sentence, [stand_in.id, *(f.id for f in groups[:3])])


def _alone(facts: Facts, target: Fact, number: int, writer: Writer) -> None:
    """No use was resolved. That there is none is said only when no line of the snapshot holds the name."""
    alone = next(iter(facts.of_number("alone", number)), None)
    if alone is None:
        writer.say("No call, import or subclass of it was resolved in this snapshot.", [target.id])
    elif alone.number("lines"):
        rows = alone.rows("examples")
        at = [writer.names.at(str(r.get("path")), _line(r)) for r in rows]
        many = plural(alone.number("lines"), "line")
        verb = "holds" if alone.number("lines") == 1 else "hold"
        writer.say(
            f"No call, import or subclass of it was resolved; {many} elsewhere {verb} a name spelled so, e.g. "
            f"{listing(at)}.",
            [alone.id],
        )
    elif alone.flag("complete"):
        writer.say("No other line of code in this snapshot holds its name.", [alone.id])
    else:
        writer.say("No call, import or subclass of it was resolved in this snapshot.", [alone.id])


def _counted(total: Fact, verbs: tuple[str, str]) -> str:
    """2 files of code (and 1 file of tests or examples) call it."""
    in_code, tests = total.number("files") - total.number("tests"), total.number("tests")
    at_least = "at least " if total.flag("truncated") else ""
    if not in_code:
        return f"{at_least}{plural(tests, 'file')} of tests or examples {verbs[tests != 1]}"
    aside = f" (and {plural(tests, 'file')} of tests or examples)" if tests else ""
    return f"{at_least}{plural(in_code, 'file')} of code{aside} {verbs[in_code != 1]}"


def _by_package(groups: list[Fact]) -> list[Fact]:
    seen: dict[str, Fact] = {}
    for group in groups:
        seen.setdefault(group.text("package"), group)
    return list(seen.values())


def _example(group: Fact, writer: Writer) -> str:
    row = next(iter(group.rows("examples")), {})
    inside = f"{code(str(row.get('inside')))} " if row.get("inside") else ""
    return f"{inside}{writer.names.at(str(row.get('path')), _line(row))}"


def _breaks(facts: Facts, writer: Writer) -> None:
    rows: list[tuple[str, Sequence[str]]] = []
    several = len({t.text("target") for t in facts.all("total") if t.text("how") not in ("maybe", "alias")}) > 1
    for total in facts.all("total"):
        if total.text("how") == "maybe":
            continue
        files = plural(total.number("files"), "file")
        verb = _VERBS[total.text("how")][total.number("lines") != 1]
        of = f", {code(total.text('target'))}" if several else ""
        groups = [
            g
            for g in facts.of_number("group", total.number("number"))
            if g.text("how") == total.text("how") and g.text("target") == total.text("target") and not g.flag("test")
        ]
        first = f", e.g. {_example(groups[0], writer)}" if groups and total.text("how") != "import" else ""
        aside = f"; {total.number('tests')} of the files are tests or examples" if total.number("tests") else ""
        rows.append(
            (
                f"At once{of}: {plural(total.number('lines'), 'line')} in {files} {verb}{first}{aside}.",
                [total.id, *(g.id for g in groups[:1])],
            )
        )
    for fact in facts.all("transitive"):
        layers = ", then ".join(f"{n:,}" for n in fact.numbers("layers"))
        share = f", of {fact.number('total'):,} source files" if fact.number("total") else ""
        rows.append(
            (
                f"Further: {plural(fact.number('reached'), 'file')} import it directly or through others "
                f"({fact.number('code'):,} code, {fact.number('tests'):,} tests{share}); by distance {layers}.",
                [fact.id],
            )
        )
    for fact in facts.all("layer"):
        if fact.number("order") == 1:
            continue
        shown = [
            f"{code(str(r.get('symbol')))} ({writer.names.full(str(r.get('path')), _line(r))})"
            for r in fact.rows("shown")
        ]
        more = fact.number("count") - len(shown)
        shown += [f"{more} more"] if more > 0 else []
        rows.append((f"Through {fact.number('order')} calls: {listing(shown)}.", [fact.id]))
    for fact in facts.all("exported"):
        at = writer.names.full(fact.text("path"), fact.number("line"))
        rows.append(
            (
                f"Users of the package: {at} offers it under the package's own name ({code(fact.text('text'))}).",
                [fact.id],
            )
        )
    writer.bullets("What would break", rows)


def _table(facts: Facts, number: int, writer: Writer, about: str) -> None:
    rows: list[tuple[Sequence[str], Sequence[str]]] = []
    for group in facts.of_number("group", number):
        examples = [
            (f"{code(str(r.get('inside')))} " if r.get("inside") else "")
            + writer.names.full(str(r.get("path")), _line(r))
            for r in group.rows("examples")
        ]
        how = _HOW.get(group.text("how"), group.text("how"))
        if how == "alias":
            how = f"names {code(group.text('target'))}"
        role = "tests/examples" if group.flag("test") else "code"
        rows.append(
            (
                (
                    code(group.text("package")),
                    role,
                    how,
                    f"{group.number('lines')} / {group.number('files')}",
                    ", ".join(examples),
                ),
                [group.id],
            )
        )
    rows.sort(key=lambda row: ("tests" in row[0][1], row[0][2] == "may call"))
    if about and rows:
        writer.block(f"Dependents of{about}:")
    writer.table(("folder", "role", "how", "lines / files", "for example"), rows[:20])


def use_bullets(facts: Facts, writer: Writer, number: int, title: str, limit: int) -> None:
    rows: list[tuple[str, Sequence[str]]] = []
    for group in facts.of_number("group", number):
        if group.text("how") in ("maybe", "alias") or len(rows) >= limit:
            continue
        examples = [
            (f"{code(str(r.get('inside')))} " if r.get("inside") else "")
            + writer.names.full(str(r.get("path")), _line(r))
            for r in group.rows("examples")
        ]
        verb = _VERBS.get(group.text("how"), ("uses it", "use it"))[1]
        many = plural(group.number("lines"), "line")
        rows.append((f"{code(group.text('package'))}: {many} {verb}, {listing(examples)}", [group.id]))
    writer.bullets(title, rows)


def _diagram(facts: Facts) -> str:
    arrows: list[Arrow] = []
    for group in facts.all("group"):
        if group.flag("test") or group.text("how") in ("maybe",):
            continue
        arrow = Arrow(
            source=group.text("package"),
            target=group.text("target"),
            text=f"{group.text('how')} {group.number('lines')}",
        )
        if not any(a.source == arrow.source and a.target == arrow.target for a in arrows):
            arrows.append(arrow)
    for fact in facts.all("subclasses"):
        for row in fact.rows("shown")[:4]:
            verb = "implements" if fact.flag("implements") else "extends"
            arrows.append(Arrow(source=str(row.get("symbol")), target=fact.text("target"), text=verb, dashed=True))
    return diagram(arrows, limit=14) if len(arrows) > 1 else ""


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _line(row: dict[str, object]) -> int:
    value = row.get("line", 1)
    return value if isinstance(value, int) else 1
