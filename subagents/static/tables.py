"""Set-up against run time: tables that a chain reads or calls through, and who fills them elsewhere."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from subagents.codebase.types import Symbol, TextMatch
from subagents.static.callgraph import FUNCTION_KINDS, TYPE_KINDS, Key, key_of
from subagents.static.chain import Chain
from subagents.static.drafts import Draft, listing, place, where
from subagents.static.flow import SURE, Tools
from subagents.static.source import attributes, is_write

MAX_TABLES = 3
MAX_FILLS = 2
MAX_REFERENCES = 70

_DYNAMIC = re.compile(r"(?:\.|->|::|\b(?=[A-Z_]{3}))([A-Za-z_]\w{2,})\s*\[[^\]\n]{1,60}\]\s*\)?\s*\(")
_EMPTY = re.compile(
    r"[=:]\s*(\{\}|\[\]|None|null|nil|NULL|0|false|False|dict\(\)|set\(\)|list\(\)|defaultdict\([^)]*\)|new \w+\(\)|"
    r"make\([^)]*\)),?;?\s*(#.*|//.*)?$"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    name: str
    order: int
    symbol: Symbol
    line: int
    called: bool


def table_drafts(chain: Chain, number: int, tools: Tools) -> Iterator[Draft]:
    """At most MAX_TABLES tables, called ones first; each with its read and up to MAX_FILLS fills."""
    reads: dict[str, _Read] = {}
    for order, step in enumerate(chain.steps):
        if step.symbol.kind not in FUNCTION_KINDS:
            continue
        for line, row in tools.sources.code(step.symbol)[1:]:
            for name in _DYNAMIC.findall(row):
                if name not in reads or not reads[name].called:
                    reads[name] = _Read(name=name, order=order, symbol=step.symbol, line=line, called=True)
            for name in attributes(row).read:
                if name not in reads:
                    reads[name] = _Read(name=name, order=order, symbol=step.symbol, line=line, called=False)
    inside = chain.keys()
    worths: dict[str, float] = {}
    for read in reads.values():
        about = tools.relevance.in_text(read.name)
        pair = "_" in read.name.strip("_") or re.search(r"[a-z][A-Z]", read.name) is not None
        worth = (
            about + (1.0 if read.called else 0.0) + (0.15 if read.name.endswith("s") else 0.0) - (0.0 if pair else 0.4)
        )
        if worth >= 0.3:
            worths[read.name] = worth
    likely = sorted(worths, key=lambda name: (-worths[name], name))[:12]
    writes = _writes(likely, tools)
    found: list[tuple[float, int, _Read, list[tuple[TextMatch, Symbol]]]] = []
    for name in likely:
        fills = _fills(reads[name], writes.get(name, ()), inside, tools)
        if fills or reads[name].called:
            found.append((-worths[name], reads[name].order, reads[name], fills))
    for _, _, read, fills in sorted(found, key=lambda item: (item[0], item[1], item[2].name))[:MAX_TABLES]:
        yield _read_draft(read, number)
        for reference, symbol in fills[:MAX_FILLS]:
            yield _fill_draft(read, number, reference, symbol, tools)


def registration_drafts(chain: Chain, number: int, tools: Tools) -> Iterator[Draft]:
    """When nobody calls the root by name: who hands it on (a callback, an entry of a table, a decorator)."""
    root = chain.root
    if tools.builder.callers(root):
        return
    given = 0
    for reference, around in tools.builder.registrations(root):
        row = tools.sources.line(reference.path, reference.line)
        if around is not None and (key_of(around) == key_of(root) or around.name == root.name):
            continue
        by = f"`{around.qualified}`" if around is not None and around.kind in FUNCTION_KINDS else f"{reference.path}"
        yield Draft(
            claim=f"{by} names `{root.qualified}` without calling it at {where(reference.path, reference.line)}.",
            kind="flow",
            citations=((reference.path, reference.line, reference.line), place(root)),
            symbols=(root.qualified, *([around.qualified] if around else [])),
            relevance=0.7,
            data={
                "step": "registered",
                "chain": number,
                "order": 0,
                "symbol": root.qualified,
                "by": around.qualified if around is not None and around.kind in FUNCTION_KINDS else "",
                "path": reference.path,
                "line": reference.line,
                "text": " ".join(row.split())[:120],
            },
        )
        given += 1
        if given >= 2:
            return


def _writes(names: Sequence[str], tools: Tools) -> dict[str, list[tuple[TextMatch, Symbol]]]:
    """Lines of functions elsewhere that put something into one of these names; a name used all over says nothing."""
    found: dict[str, list[tuple[TextMatch, Symbol]]] = {name: [] for name in names}
    if not names:
        return found
    seen: Counter[str] = Counter()
    for match, name in tools.grep.names(names, tools.code_paths):
        row = match.text
        seen[name] += 1
        if not is_write(row, name) or _EMPTY.search(row) or row.lstrip().startswith(("#", "//", "*")):
            continue
        symbol = tools.index.symbol_at(match.path, match.line)
        if symbol is not None and symbol.kind in FUNCTION_KINDS:
            found[name].append((match, symbol))
    return {name: rows for name, rows in found.items() if seen[name] <= MAX_REFERENCES}


def _fills(
    read: _Read, writes: Sequence[tuple[TextMatch, Symbol]], inside: set[Key], tools: Tools
) -> list[tuple[TextMatch, Symbol]]:
    found: dict[Key, tuple[float, TextMatch, Symbol]] = {}
    name = read.name
    reading = (read.symbol, tools.sources.line(read.symbol.path, read.line))
    for match, symbol in writes:
        if key_of(symbol) in inside or not tools.builder.meaning.same_table(name, reading, (symbol, match.text)):
            continue
        item = rf"{re.escape(name)}\b\s*\[|\.(append|add|setdefault|insert|push|register)"
        worth = 0.5 if re.search(item, match.text) else 0.0
        worth += tools.relevance.in_text(f"{symbol.qualified} {symbol.doc}") - (
            0.3 if symbol.name.startswith("__") else 0.0
        )
        found.setdefault(key_of(symbol), (-worth, match, symbol))
    ordered = sorted(found.values(), key=lambda item: (item[0], item[1].path, item[1].line))
    return [(match, symbol) for _, match, symbol in ordered]


def _read_draft(read: _Read, number: int) -> Draft:
    verb = "calls what is stored in" if read.called else "reads"
    return Draft(
        claim=f"`{read.symbol.qualified}` {verb} `{read.name}` ({where(read.symbol.path, read.line)}).",
        kind="behaviour",
        citations=((read.symbol.path, read.line, read.line),),
        symbols=(read.symbol.qualified, read.name),
        relevance=(0.8 if read.called else 0.5) - (0.15 if number else 0.0),
        data={
            "step": "table",
            "chain": number,
            "order": read.order,
            "name": read.name,
            "called": read.called,
            "symbol": read.symbol.qualified,
            "path": read.symbol.path,
            "line": read.line,
        },
    )


def _fill_draft(read: _Read, number: int, reference: TextMatch, symbol: Symbol, tools: Tools) -> Draft:
    callers = []
    for edge in tools.builder.callers(symbol)[:8]:
        if edge.certainty < SURE:
            continue
        caller = outermost_function(tools.builder.graph.symbols[edge.caller], tools)
        if caller.qualified not in callers and caller.qualified != symbol.qualified:
            callers.append(caller.qualified)
    by = f", called by {listing([f'`{name}`' for name in callers[:3]])}" if callers else ""
    return Draft(
        claim=f"`{symbol.qualified}` fills `{read.name}` ({where(reference.path, reference.line)}){by}.",
        kind="flow",
        citations=((reference.path, reference.line, reference.line), place(symbol)),
        symbols=(symbol.qualified, read.name),
        relevance=(0.75 if read.called else 0.5) - (0.15 if number else 0.0),
        data={
            "step": "fill",
            "chain": number,
            "order": read.order,
            "name": read.name,
            "symbol": symbol.qualified,
            "def_line": symbol.start,
            "path": reference.path,
            "line": reference.line,
            "callers": callers[:3],
        },
    )


def outermost_function(symbol: Symbol, tools: Tools) -> Symbol:
    """For a function inside a function (a decorator's inner one) the outer one: the name people know."""
    owner = symbol.qualified.rpartition(".")[0]
    if not owner:
        return symbol
    around = next(
        (s for s in tools.index.symbols(symbol.path) if s.qualified == owner and s.start <= symbol.start <= s.end), None
    )
    if around is None or around.kind in TYPE_KINDS or around.kind not in FUNCTION_KINDS:
        return symbol
    return outermost_function(around, tools)
