"""A chain put into findings: calls in order, ways out of the straight line, hand-overs, what lies outside."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from subagents.codebase.types import CodeIndex, Reference, Symbol
from subagents.static.callgraph import FUNCTION_KINDS, TYPE_KINDS, GraphBuilder, key_of
from subagents.static.chain import Chain, Step
from subagents.static.drafts import Draft, Place, listing, place, symbol_data, where
from subagents.static.grep import Grep
from subagents.static.relevance import Relevance
from subagents.static.roles import path_role
from subagents.static.source import Exit, Sources, attributes
from subagents.static.wordlists import words

ALSO_STEPS = 4
MAX_EXITS = 6
MAX_HANDOVERS = 3
MAX_OUTSIDE = 4
SURE = 0.65
"""A call less certain than this is said to be likely, or not said at all."""

SHORT_BODY = 8
"""Lines of a function that only sets something for others to heed."""
_HEEDING = ("for", "while", "loop", "if", "elif", "unless", "switch", "match")
"""What heeds a field, the most telling first."""
_HEEDS = re.compile(rf"^\s*(?:\}}\s*)?(?:else\s+)?({'|'.join(_HEEDING)})\b(.+)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """What the makers of findings share inside one task."""

    index: CodeIndex
    sources: Sources
    relevance: Relevance
    builder: GraphBuilder
    grep: Grep
    code_paths: Sequence[str]


def call_drafts(chain: Chain, number: int, tools: Tools) -> Iterator[Draft]:
    """The root, then each call in calling order."""
    root = chain.root
    callers = [
        tools.builder.graph.symbols[edge.caller].qualified
        for edge in tools.builder.callers(root)[:6]
        if edge.certainty >= SURE
    ]
    inside = [name for name in callers if name not in {s.symbol.qualified for s in chain.steps}]
    reached = (
        f"is called by {listing([f'`{name}`' for name in inside[:4]])}"
        if inside
        else "has no caller that could be resolved"
    )
    yield Draft(
        claim=f"`{root.qualified}` ({where(root.path, root.start, root.end)}) starts the chain; it {reached}.",
        kind="flow",
        citations=(place(root),),
        symbols=(root.qualified,),
        relevance=1.0 if number == 0 else 0.85,
        data={
            "step": "root",
            "chain": number,
            "order": 0,
            "callers": inside,
            "score": round(chain.score, 3),
            **symbol_data(root),
        },
    )
    for order, step in enumerate(chain.steps):
        if step.edge is not None:
            also = _other_callers(chain, step, tools) if order <= ALSO_STEPS else []
            yield _call_draft(chain, number, order, step, also)


def _other_callers(chain: Chain, step: Step, tools: Tools) -> list[str]:
    """Further callers of a step, outside the chain: other ways in."""
    inside = chain.keys()
    callers = [edge.caller for edge in tools.builder.callers(step.symbol) if edge.certainty >= SURE]
    names = [tools.builder.graph.symbols[key].qualified for key in callers if key not in inside]
    return list(dict.fromkeys(names))[:6]


def _call_draft(chain: Chain, number: int, order: int, step: Step, also: Sequence[str]) -> Draft:
    edge = step.edge
    assert edge is not None
    caller = chain.steps[step.parent].symbol
    guard = step.guard
    citations: list[Place] = [(edge.path, edge.line, edge.line), place(step.symbol)]
    condition = ""
    if (
        guard is not None
        and guard.kind in ("condition", "otherwise")
        and guard.text
        and 0 <= edge.line - guard.line <= 25
    ):
        condition = guard.text
        citations.append((caller.path, guard.line, guard.line))
    verb = "makes" if step.symbol.kind in TYPE_KINDS else "calls"
    how = f" through `{edge.via}`" if edge.via else ""
    if edge.returned:
        verb, how = f"returns `{edge.via}`, on which is called", ""
    sure = "" if edge.certainty >= SURE else " (the name has several definitions; this is the likeliest)"
    when = f", only if `{condition}`" if condition and guard and guard.kind == "condition" else ""
    return Draft(
        claim=f"`{caller.qualified}` {verb} `{step.symbol.qualified}`{how} at "
        f"{where(edge.path, edge.line)}{when}{sure}.",
        kind="flow",
        citations=tuple(dict.fromkeys(citations)),
        symbols=(caller.qualified, step.symbol.qualified),
        confidence=round(0.5 + 0.45 * edge.certainty, 2),
        relevance=round(min(0.95, 0.6 + 0.3 * min(1.0, step.value)) - (0.15 if number else 0.0), 2),
        data={
            "step": "call",
            "chain": number,
            "order": order,
            "parent": step.parent,
            "depth": step.depth,
            "from": caller.qualified,
            "to": step.symbol.qualified,
            "via": edge.via,
            "returned": edge.returned,
            "call_path": edge.path,
            "call_line": edge.line,
            "certainty": round(edge.certainty, 2),
            "guard": condition,
            "guard_kind": guard.kind if guard and condition else "",
            "guard_line": guard.line if guard and condition else 0,
            "value": round(step.value, 3),
            "also": list(also),
            **symbol_data(step.symbol),
        },
    )


def exit_drafts(chain: Chain, number: int, tools: Tools) -> Iterator[Draft]:
    """Early returns before a later step, raised errors, handlers: the ones that concern the chain or the question."""
    scored: list[tuple[float, int, int, Draft]] = []
    for order, step in enumerate(chain.steps):
        if step.symbol.kind not in FUNCTION_KINDS or path_role(step.symbol.path) == "test":
            continue
        following = [
            s.edge.line
            for s in chain.steps
            if s.edge is not None and s.parent == order and s.edge.path == step.symbol.path
        ]
        targets = {
            s.edge.line: s.symbol.qualified
            for s in chain.steps
            if s.edge is not None and s.parent == order and not s.edge.via
        }
        for found in tools.sources.exits(step.symbol):
            scored_draft = _exit_draft(number, order, step, found, following, targets, tools)
            if scored_draft is not None:
                scored.append((-scored_draft[0], order, found.line, scored_draft[1]))
    per_function: dict[int, int] = {}
    kept = 0
    for _, order, _, draft in sorted(scored, key=lambda item: item[:3]):
        if per_function.get(order, 0) >= 2 or kept >= MAX_EXITS:
            continue
        per_function[order] = per_function.get(order, 0) + 1
        kept += 1
        yield draft


def _exit_draft(
    number: int, order: int, step: Step, found: Exit, following: Sequence[int], targets: dict[int, str], tools: Tools
) -> tuple[float, Draft] | None:
    symbol = step.symbol
    inner = tools.index.symbol_at(symbol.path, found.line)
    if inner is not None and inner.kind in FUNCTION_KINDS and key_of(inner) != key_of(symbol):
        return None  # leaves a function inside this one, not this one
    skipped = [targets[line] for line in sorted(following) if line > found.end and line in targets]
    if found.text.startswith("goto"):
        skipped = []  # the label may stand before what follows
    around = found.guard
    text = f"{found.text} {around.text if around else ''}"
    score = tools.relevance.in_text(text) + 0.5 * step.value - 0.08 * step.depth
    handlers: list[str] = []
    citations: list[Place] = [(symbol.path, found.line, found.line)]
    if found.kind == "handler":
        for edge in tools.builder.callees(symbol):
            callee = tools.builder.graph.symbols[edge.callee]
            if found.line < edge.line <= found.end and edge.certainty >= SURE and callee.kind in FUNCTION_KINDS:
                handlers.append(callee.name)
                citations.append((symbol.path, edge.line, edge.line))
        handlers = [name for name in dict.fromkeys(handlers) if len(name) > 3][:3]
        if not handlers:
            return None
        score += 0.7
        to = listing([f"`{handler}`" for handler in handlers])
        claim = f"An error inside `{symbol.qualified}` ({found.text or 'any'}) goes to {to}"
    elif found.kind == "raise":
        claim = f"`{symbol.qualified}` raises: `{found.text}`" + (
            f", if `{around.text}`" if around and around.text else ""
        )
        score += 0.15
    else:
        if around is None or not around.text or around.kind in ("handler", "cleanup", "choice"):
            return None
        ordinary = re.search(r"\berr\s*!=\s*nil\b", around.text)
        if ordinary and not skipped:
            return None
        score += (0.45 if skipped else 0.0) - (0.4 if ordinary else 0.0)
        otherwise = "unless" if around.kind == "otherwise" else "if"
        claim = f"`{symbol.qualified}` ends early (`{found.text}`) {otherwise} `{around.text}`"
        if skipped:
            claim += f", before {listing([f'`{name}`' for name in skipped[:3]])}"
    if around is not None and around.text and 0 <= found.line - around.line <= 20:
        citations.append((symbol.path, around.line, around.line))
    if score < 0.3:
        return None
    return score, Draft(
        claim=f"{claim} ({where(symbol.path, found.line)}).",
        kind="behaviour",
        citations=tuple(dict.fromkeys(citations))[:4],
        symbols=(symbol.qualified,),
        relevance=round(min(0.8, 0.35 + 0.25 * score) - (0.15 if number else 0.0), 2),
        data={
            "step": "exit",
            "chain": number,
            "order": order,
            "kind": found.kind,
            "symbol": symbol.qualified,
            "path": symbol.path,
            "line": found.line,
            "text": found.text,
            "guard": around.text if around else "",
            "guard_kind": around.kind if around else "",
            "skips": skipped[:3],
            "handlers": handlers,
            "score": round(score, 3),
        },
    )


def handover_drafts(chain: Chain, number: int, tools: Tools) -> Iterator[Draft]:
    """What one step stores on an object and a later one reads: the path that no call shows."""
    writes: dict[str, tuple[int, int]] = {}
    found: list[tuple[float, Draft]] = []
    for order, step in enumerate(chain.steps):
        if step.symbol.kind not in FUNCTION_KINDS:
            continue
        rows = tools.sources.code(step.symbol)[1:]
        for line, row in rows:
            for name in attributes(row).read:
                writer = writes.get(name)
                if writer is None or writer[0] == order:
                    continue
                source = chain.steps[writer[0]].symbol
                stored = (source, tools.sources.line(source.path, writer[1]))
                if not tools.builder.meaning.same_field(name, stored, (step.symbol, row)):
                    continue
                del writes[name]
                telling = "_" in name.strip("_") or re.search(r"[a-z][A-Z]", name) is not None
                score = tools.relevance.in_text(name) + (0.3 if telling else -0.1)
                if score >= 0.3:
                    found.append((score, _handover(number, order, name, source, writer, step.symbol, line)))
        for line, row in rows:
            for name in attributes(row).written:
                writes.setdefault(name, (order, line))
    for _, draft in sorted(found, key=lambda item: (-item[0], item[1].claim))[:MAX_HANDOVERS]:
        yield draft
    yield from _effects(chain, number, tools)


def _effects(chain: Chain, number: int, tools: Tools) -> Iterator[Draft]:
    """What the asked deed comes to if its function calls nothing: the loop or condition that heeds its field."""
    parents = {step.parent for step in chain.steps}
    for order, step in enumerate(chain.steps):
        symbol = step.symbol
        if order in parents or key_of(symbol) not in tools.builder.graph.subjects:
            continue
        written = [
            (name, line)
            for line, row in tools.sources.code(symbol)[1:]
            for name in attributes(row).written
            if symbol.end - symbol.start < SHORT_BODY
        ]
        owner = symbol.qualified.rpartition(".")[0]
        beside = [
            other
            for other in tools.index.symbols(symbol.path)
            if owner and other.qualified.rpartition(".")[0] == owner and other.kind in FUNCTION_KINDS
        ]
        heeding = [
            (_HEEDING.index(found.group(1)), other.start, name, line, other, at)
            for name, line in written
            for other in beside
            if other.qualified != symbol.qualified
            for at, row in tools.sources.code(other)[1:]
            if (found := _HEEDS.match(row)) is not None
            and name in attributes(found.group(2)).read
            and tools.builder.meaning.same_field(name, (symbol, tools.sources.line(symbol.path, line)), (other, row))
        ]
        if heeding:
            _, _, name, line, other, at = min(heeding, key=lambda item: item[:2])
            yield _handover(number, order, name, symbol, (order, line), other, at)


def _handover(
    number: int, order: int, name: str, source: Symbol, written: tuple[int, int], reader: Symbol, line: int
) -> Draft:
    return Draft(
        claim=f"`{source.qualified}` stores `{name}` ({where(source.path, written[1])}), which "
        f"`{reader.qualified}` reads "
        f"({where(reader.path, line)}).",
        kind="behaviour",
        citations=((source.path, written[1], written[1]), (reader.path, line, line)),
        symbols=(source.qualified, reader.qualified),
        relevance=0.6 - (0.15 if number else 0.0),
        data={
            "step": "handover",
            "chain": number,
            "order": order,
            "name": name,
            "from": source.qualified,
            "from_path": source.path,
            "from_line": written[1],
            "to": reader.qualified,
            "to_path": reader.path,
            "to_line": line,
        },
    )


def outside_drafts(chain: Chain, number: int, tools: Tools) -> Iterator[Draft]:
    """Calls of the chain that leave the repository: names imported from elsewhere, methods nobody here defines."""
    parents = {step.parent for step in chain.steps}
    found: dict[str, tuple[float, Draft]] = {}
    for order, step in enumerate(chain.steps):
        symbol = step.symbol
        if symbol.kind not in FUNCTION_KINDS:
            continue
        external = {
            name.rpartition(".")[2]: edge.module
            for edge in tools.index.imports(symbol.path)
            if edge.target is None
            if not _own(edge.module, tools)
            for name in (edge.names or (edge.module.rpartition("/")[2],))
        }
        for reference in tools.index.references_in(symbol.path, symbol.start, min(symbol.end, symbol.start + 300)):
            if reference.kind != "call":
                continue
            scored = _outside(number, order, symbol, reference, external, order not in parents, tools)
            if scored is not None:
                found.setdefault(str(scored[1].data["name"]), scored)
    for _, draft in sorted(found.values(), key=lambda item: (-item[0], item[1].claim))[:MAX_OUTSIDE]:
        yield draft


def _own(module: str, tools: Tools) -> bool:
    """Whether a module is, by its name, one of this repository that merely was not resolved."""
    if module.startswith((".", "crate", "super", "self", "/", '"', "<", "@/", "~")):
        return True
    first = module.replace("::", "/").replace(".", "/").split("/")[0]
    return first in _parts(tuple(tools.code_paths))


@lru_cache(maxsize=4)
def _parts(paths: tuple[str, ...]) -> frozenset[str]:
    """Names of all folders and modules."""
    return frozenset(part for path in paths for part in path.rpartition(".")[0].split("/"))


def _outside(
    number: int, order: int, symbol: Symbol, ref: Reference, external: dict[str, str], leaf: bool, tools: Tools
) -> tuple[float, Draft] | None:
    first = re.split(r"[.\[(:]|->", ref.receiver)[0] if ref.receiver else ""
    module = external.get(ref.name, "") if not ref.receiver else external.get(first, "")
    shown = f"{ref.receiver}.{ref.name}" if ref.receiver else ref.name
    if not re.fullmatch(r"[\w.:>\[\]()&*-]{2,60}", shown) or not tools.builder.usable_name(ref.name):
        return None
    if not module:
        if not ref.receiver or first in external or tools.index.definitions(ref.name, limit=1):
            return None
        if first in ("self", "this") and "." not in ref.receiver.removeprefix(first):
            return None
    elif module.split(".")[0] in _STANDARD or module in _STANDARD:
        return None
    score = tools.relevance.in_text(f"{shown} {module}") + (0.5 if leaf else 0.2) + (0.2 if module else 0.0)
    origin = f" comes from `{module}`, outside this snapshot" if module else " has no definition in this snapshot"
    return score, Draft(
        claim=f"`{shown}`, called in `{symbol.qualified}` ({where(ref.path, ref.line)}),{origin}.",
        kind="structure",
        citations=((ref.path, ref.line, ref.line),),
        symbols=(symbol.qualified,),
        confidence=0.85 if module else 0.7,
        relevance=0.45 - (0.15 if number else 0.0),
        data={
            "step": "outside",
            "chain": number,
            "order": order,
            "name": shown,
            "module": module,
            "symbol": symbol.qualified,
            "path": ref.path,
            "line": ref.line,
        },
    )


def chain_places(chain: Chain) -> list[Symbol]:
    """The functions of a chain, each once, in order."""
    return list({key_of(step.symbol): step.symbol for step in chain.steps}.values())


_STANDARD = words(
    """
    abc argparse asyncio base64 collections contextlib contextvars copy dataclasses datetime enum errno fmt
    functools hashlib importlib inspect io itertools json logging math operator os pathlib pickle random re
    shutil signal socket string strings struct subprocess sys tempfile textwrap threading time traceback types
    typing urllib uuid warnings weakref errors context sync bytes bufio strconv sort unicode reflect runtime std
    core alloc stdio.h stdlib.h string.h unistd.h __future__ t cabc heapq bisect log net path net/http http url net/url
    filepath html/template
    template crypto/tls tls
    """
)
