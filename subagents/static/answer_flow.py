"""The answer to "how does X work": the chain in calling order, first in sentences, then as table and diagram."""

from __future__ import annotations

from collections.abc import Sequence

from subagents.static import answer_common
from subagents.static.drafts import listing
from subagents.static.facts import Fact, Facts
from subagents.static.flow import SURE
from subagents.static.markdown import code, prose
from subagents.static.question import Question
from subagents.static.source import shorten
from subagents.static.writing import Arrow, Writer, codes, diagram

MAX_SENTENCE_CALLS = 5


def write(question: Question, facts: Facts, writer: Writer) -> bool:
    """Whether there was a chain to write about."""
    root = next(iter(facts.of_chain("root", 0)), None)
    calls = facts.of_chain("call", 0)
    if root is None or not calls:
        return False
    _chain_sentences(facts, 0, root, calls, writer)
    _set_up_sentences(facts, 0, writer)
    writer.end_paragraph("Short answer")
    other = next(iter(facts.of_chain("root", 1)), None)
    others = facts.of_chain("call", 1)
    if other is not None and others:
        _chain_sentences(facts, 1, other, others, writer)
        writer.end_paragraph("Beside it")
    _missing(question, facts, writer)
    _table(facts, writer)
    writer.block(_diagram(facts))
    _exits(facts, writer)
    answer_common.documentation(facts, writer)
    answer_common.tests(facts, writer)
    answer_common.lately(facts, writer, sorted({f.text("path") for f in (root, *calls)}))
    answer_common.outside(facts, writer)
    return True


def _chain_sentences(facts: Facts, chain: int, root: Fact, calls: Sequence[Fact], writer: Writer) -> None:
    """One sentence for each calling function, callers before callees; single calls run on with "which calls"."""
    names = writer.names
    children: dict[int, list[Fact]] = {}
    for call in calls:
        children.setdefault(call.number("parent"), []).append(call)
    handovers = {f.number("order"): f for f in facts.of_chain("handover", chain)}
    said: set[int] = set()

    def part(call: Fact) -> str:
        via = f", through {code(call.text('via'))}" if call.text("via") else ""
        if call.flag("returned"):
            via = f", by who waits for the returned {code(call.text('via'))}"
        guard = ""
        if call.text("guard") and call.text("guard_kind") == "condition":
            guard = f", only if {code(shorten(call.text('guard'), 70))}"
        where = names.at(call.text("call_path"), call.number("call_line"))
        likely = ", likely: the name has several definitions" if call.real("certainty") < SURE else ""
        return f"{names.symbol(call.text('to'))} ({where}{via}{guard}{likely})"

    def run_on(call: Fact, ids: list[str]) -> str:
        """A single call, and as long as there is only one below it, that one too."""
        text = part(call)
        ids.append(call.id)
        below = children.get(call.number("order"), [])
        if below and call.number("order") not in said:
            said.add(call.number("order"))
            if len(below) == 1:
                return f"{text}, which calls {run_on(below[0], ids)}"
            ids += [b.id for b in below]
            text += f", which calls {', then '.join(part(b) for b in below)}"
        return text

    def sentence(order: int, name: str, at: str) -> None:
        below = children.get(order, [])
        if not below or order in said:
            return
        said.add(order)
        ids: list[str] = [root.id] if order == 0 else []
        if len(below) == 1:
            text = f"{name}{at} calls {run_on(below[0], ids)}."
        else:
            parts = [part(call) for call in below]
            ids += [call.id for call in below]
            text = f"{name}{at} calls {', then '.join(parts)}."
        writer.say(text, ids)
        if order in handovers:
            _handover(handovers.pop(order), writer)

    opening = ""
    if root.texts("callers"):
        opening = f", called by {codes(root.texts('callers'), 3)},"
    at = f" ({names.at(root.text('path'), root.number('line'))}{opening.rstrip(',')})"
    sentence(0, names.symbol(root.text("symbol")), at)
    for call in calls:
        order = call.number("order")
        sentence(order, names.symbol(call.text("to")), "")
        if order in handovers:
            _handover(handovers.pop(order), writer)
    told = [c for c in calls if len(c.text("doc").split()) > 4 and not children.get(c.number("order"))]
    for call in sorted(told, key=lambda c: (-c.real("value"), c.number("order")))[:2]:
        doc = prose(shorten(call.text("doc"), 140)).rstrip(".")
        writer.say(f"{names.symbol(call.text('to'))} says of itself: “{doc}”.", [call.id])


def _handover(fact: Fact, writer: Writer) -> None:
    names = writer.names
    writer.say(
        f"What {names.symbol(fact.text('from'))} stores in {code(fact.text('name'))} "
        f"({names.at(fact.text('from_path'), fact.number('from_line'))}) is read by {names.symbol(fact.text('to'))} "
        f"({names.at(fact.text('to_path'), fact.number('to_line'))}).",
        [fact.id],
    )


def _set_up_sentences(facts: Facts, chain: int, writer: Writer) -> None:
    """Tables that are called through, and callbacks: what was arranged before the chain runs."""
    names = writer.names
    for table in facts.of_chain("table", chain):
        fills = [f for f in facts.of_chain("fill", chain) if f.text("name") == table.text("name")]
        if not table.flag("called") and not fills:
            continue
        verb = "calls what is stored in" if table.flag("called") else "reads"
        text = (
            f"{names.symbol(table.text('symbol'))} {verb} {code(table.text('name'))} "
            f"({names.at(table.text('path'), table.number('line'))})"
        )
        ids = [table.id]
        if fills:
            parts = []
            for fill in fills:
                by = f", called by {codes(fill.texts('callers'), 3)}" if fill.texts("callers") else ""
                parts.append(
                    f"{names.symbol(fill.text('symbol'))} ({names.at(fill.text('path'), fill.number('line'))}{by})"
                )
                ids.append(fill.id)
            text += f"; it is filled, before that, by {listing(parts)}"
        writer.say(text + ".", ids)
    for fact in facts.of_chain("registered", chain):
        by = names.symbol(fact.text("by")) if fact.text("by") else "code at top level"
        writer.say(
            f"{by[:1].upper() + by[1:]} names {names.symbol(fact.text('symbol'))} without calling it "
            f"({names.at(fact.text('path'), fact.number('line'))}).",
            [fact.id],
        )


def _missing(question: Question, facts: Facts, writer: Writer) -> None:
    """Words of the question that the chain says nothing about are named, not glossed over."""
    starts = facts.all("start")
    if not starts:
        return
    covered = set(starts[0].texts("covered"))
    open_terms = [t for t in question.strong_terms if t not in covered]
    if open_terms and len(open_terms) < len(question.strong_terms):
        writer.say(f"No step of this chain is named after {codes(open_terms)}.", [starts[0].id])
        writer.end_paragraph()


def _table(facts: Facts, writer: Writer) -> None:
    names = writer.names
    rows: list[tuple[Sequence[str], Sequence[str]]] = []
    for chain in (0, 1):
        root = next(iter(facts.of_chain("root", chain)), None)
        if root is None or not facts.of_chain("call", chain):
            continue
        prefix = "" if chain == 0 else "b"
        callers = codes(root.texts("callers"), 2) if root.texts("callers") else "(no caller resolved)"
        rows.append((_row(f"{prefix}0", root, callers, writer), [root.id]))
        for call in facts.of_chain("call", chain):
            via = f" through {code(call.text('via'))}" if call.text("via") else ""
            at = names.at(call.text("call_path"), call.number("call_line"))
            by = f"{code(call.text('from').rpartition('.')[2])} {at}{via}"
            if call.texts("also"):
                by += f"; also {codes(call.texts('also'), 2)}"
            rows.append((_row(f"{prefix}{call.number('order')}", call, by, writer), [call.id]))
        for fill in facts.of_chain("fill", chain):
            at = names.full(fill.text("path"), fill.number("line"))
            by = codes(fill.texts("callers"), 2) if fill.texts("callers") else ""
            cells = ("set-up", code(fill.text("symbol")), at, by, f"fills {code(fill.text('name'))}")
            rows.append((cells, [fill.id]))
    writer.table(("step", "symbol", "where", "called from", "what it says of itself"), rows)


def _row(step: str, fact: Fact, by: str, writer: Writer) -> tuple[str, ...]:
    symbol = fact.text("to") or fact.text("symbol")
    at = writer.names.full(fact.text("path"), fact.number("line"), fact.number("end"))
    return (step, code(symbol), at, by, prose(shorten(fact.text("doc"), 100)))


def _diagram(facts: Facts) -> str:
    arrows: list[Arrow] = []
    rounded: set[str] = set()
    for chain in (0, 1):
        for call in facts.of_chain("call", chain):
            arrows.append(
                Arrow(
                    source=call.text("from"),
                    target=call.text("to"),
                    text=call.text("via"),
                    dashed=bool(call.text("via")),
                )
            )
        for table in facts.of_chain("table", chain):
            fills = [f for f in facts.of_chain("fill", chain) if f.text("name") == table.text("name")]
            if not table.flag("called") and not fills:
                continue
            rounded.add(table.text("name"))
            arrows.append(
                Arrow(
                    source=table.text("symbol"),
                    target=table.text("name"),
                    text="calls" if table.flag("called") else "reads",
                )
            )
            for fill in fills:
                arrows.append(Arrow(source=fill.text("symbol"), target=table.text("name"), text="fills", dashed=True))
    return diagram(arrows, frozenset(rounded)) if arrows else ""


def _exits(facts: Facts, writer: Writer) -> None:
    names = writer.names
    rows: list[tuple[str, Sequence[str]]] = []
    for fact in sorted(facts.all("exit"), key=lambda f: (f.number("chain"), f.number("order"), f.number("line"))):
        at = names.at(fact.text("path"), fact.number("line"))
        symbol = code(fact.text("symbol"))
        guard = code(shorten(fact.text("guard"), 80)) if fact.text("guard") else ""
        word = "when not" if fact.text("guard_kind") == "otherwise" else "if"
        match fact.text("kind"):
            case "handler":
                what = f" ({code(fact.text('text'))})" if fact.text("text") else ""
                text = f"An error inside {symbol}{what} goes to {codes(fact.texts('handlers'), 3)} ({at})."
            case "raise":
                text = (
                    f"{symbol} stops with {code(shorten(fact.text('text'), 80))}"
                    + (f" {word} {guard}" if guard else "")
                    + f" ({at})."
                )
            case _:
                skips = fact.texts("skips")
                before = (
                    f", so that {codes(skips, 3)} {'is' if len(skips) == 1 else 'are'} not reached" if skips else ""
                )
                text = f"{symbol} returns early {word} {guard}{before} ({at})."
        rows.append((text, [fact.id]))
    writer.bullets("Ways out of the straight line", rows)
