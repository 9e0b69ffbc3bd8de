"""The code's own structure: where a name is defined and used, who calls whom, who imports whom."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Literal

from subagents.codebase.types import CallEdge, CannotRead, Reference, Symbol
from subagents.tools.desk import Desk
from subagents.tools.output import ToolError, ToolOutput, cut_line, plural
from subagents.tools.schema import tool

BODY_LINES = 60
SHOWN_USES = 40
SHOWN_DEFINITIONS = 6


@tool
def symbol(
    desk: Desk, name: str, want: Literal["definition", "references", "callers", "callees"] = "definition"
) -> ToolOutput:
    """Look up a class, function, method or constant by name: its definition with code, the lines that use it, what
    calls it, or what it calls. Calls are resolved by name and may be uncertain where names compete; that is marked.

    Args:
        name: Simple name (`push`) or dotted end of a qualified one (`AppContext.push`).
        want: What to show about it.
    """
    definitions = [s for s in desk.workspace.index.definitions(name, limit=50) if _inside(desk, s.path)]
    if want == "references":
        return _references(desk, name, definitions)
    if not definitions:
        near = [h.symbol for h in desk.workspace.finder.find_symbols(name, limit=5)]
        way_out = "Nearest: " + ", ".join(f"{s.qualified} ({s.path}:{s.start})" for s in near) if near else ""
        raise ToolError("no_such_symbol", f"no definition of {name!r} is known", way_out or "Try search_text.")
    if want == "definition":
        return _definitions(desk, name, definitions)
    return _calls(desk, name, definitions, want)


def _inside(desk: Desk, path: str) -> bool:
    return not desk.scope or any(path == s or path.startswith(f"{s}/") for s in desk.scope)


def _definitions(desk: Desk, name: str, definitions: Sequence[Symbol]) -> ToolOutput:
    lines: list[str] = []
    shown: list[tuple[str, int, int]] = []
    room = BODY_LINES
    for definition in definitions[:SHOWN_DEFINITIONS]:
        lines.append(f"{definition.path} {definition.start}-{definition.end} {definition.kind} {definition.qualified}")
        last = min(definition.end, definition.start + max(3, room) - 1)
        part = _code(desk, definition.path, definition.start, last)
        lines += part
        if part:
            shown.append((definition.path, definition.start, definition.start + len(part) - 1))
        room -= len(part)
        if last < definition.end:
            lines.append(f" [{definition.end - last} more lines: read_file {definition.path} from {last + 1}]")
    if len(definitions) > SHOWN_DEFINITIONS:
        lines.append(f"[{len(definitions) - SHOWN_DEFINITIONS} more definitions of that name]")
    places = ", ".join(f"{d.qualified} {d.path}:{d.start}-{d.end}" for d in definitions[:8])
    return ToolOutput(
        text="\n".join(lines),
        digest=f"symbol {name} definition: {places}",
        log=f"symbol {name} definition: {plural(len(definitions), 'definition')}",
        raw="\n".join(f"{d.path}:{d.start}-{d.end} {d.signature}" for d in definitions)
        if len(definitions) > SHOWN_DEFINITIONS
        else "",
        shown=tuple(shown),
    )


def _references(desk: Desk, name: str, definitions: Sequence[Symbol]) -> ToolOutput:
    simple = name.rsplit(".", 1)[-1]
    uses = [r for r in desk.workspace.index.references(simple, limit=400) if _inside(desk, r.path)]
    if not uses and not definitions:
        raise ToolError("no_such_symbol", f"{name!r} is neither defined nor used by that name", "Try search_text.")
    lines: list[str] = []
    shown: list[tuple[str, int, int]] = []
    path = ""
    for use in uses[:SHOWN_USES]:
        if use.path != path:
            path = use.path
            lines.append(path)
        lines.append(_use_line(desk, use))
        shown.append((use.path, use.line, use.line))
    rest = len(uses) - min(len(uses), SHOWN_USES)
    if rest:
        lines.append(f"[{rest} more uses: narrow with search_text, or read_evidence]")
    files = list(dict.fromkeys(use.path for use in uses))
    head = f"{plural(len(uses), 'use')} of {simple} in {plural(len(files), 'file')}"
    return ToolOutput(
        text="\n".join([head, *lines]),
        digest=f"symbol {name} references: {head}: {', '.join(files[:10])}{' ...' if len(files) > 10 else ''}",
        log=f"symbol {name} references: {head}",
        raw="\n".join(f"{u.path}:{u.line} {u.kind} {u.receiver}.{u.name} in {u.inside}" for u in uses) if rest else "",
        shown=tuple(shown),
        truncated=f"uses of {name}: {SHOWN_USES} of {len(uses)}" if rest else "",
    )


def _use_line(desk: Desk, use: Reference) -> str:
    inside = f" in {use.inside}" if use.inside else ""
    return f" {use.line}|{_line(desk, use.path, use.line)}  [{use.kind}{inside}]"


def _calls(desk: Desk, name: str, definitions: Sequence[Symbol], want: str) -> ToolOutput:
    index = desk.workspace.index
    lines: list[str] = []
    shown: list[tuple[str, int, int]] = []
    total = 0
    names: list[str] = []
    for definition in definitions[:3]:
        edges: Sequence[CallEdge]
        edges = index.callers(definition, limit=60) if want == "callers" else index.callees(definition, limit=60)
        edges = [e for e in edges if _inside(desk, e.path)]
        lines.append(f"{definition.qualified} ({definition.path}:{definition.start}): {plural(len(edges), want[:-1])}")
        total += len(edges)
        for edge in edges[: SHOWN_USES // min(3, len(definitions))]:
            other = edge.caller if want == "callers" else edge.callee
            sure = "" if edge.certainty >= 1 else f" (certainty {edge.certainty:.1f})"
            lines.append(f" {other.qualified} {other.path}:{other.start}{sure}, call at {edge.path}:{edge.line}")
            lines.append(f"  {edge.line}|{_line(desk, edge.path, edge.line)}")
            shown.append((edge.path, edge.line, edge.line))
            names.append(f"{other.qualified} {edge.path}:{edge.line}")
    if len(definitions) > 3:
        lines.append(f"[{len(definitions) - 3} more definitions of that name: give a dotted name]")
    return ToolOutput(
        text="\n".join(lines),
        digest=f"symbol {name} {want}: {total}: {', '.join(names[:8])}{' ...' if len(names) > 8 else ''}",
        log=f"symbol {name} {want}: {total}",
        shown=tuple(shown),
    )


def _code(desk: Desk, path: str, first: int, last: int) -> list[str]:
    try:
        lines = desk.workspace.snapshot.text(path).lines
    except (CannotRead, KeyError):
        return []
    return [f"{n}|{cut_line(lines[n - 1])}" for n in range(first, min(last, len(lines)) + 1)]


def _line(desk: Desk, path: str, line: int) -> str:
    code = _code(desk, path, line, line)
    return code[0].partition("|")[2].strip() if code else ""


@tool
def imports(desk: Desk, path: str, to: str = "") -> ToolOutput:
    """What a file imports and which files import it; or, with `to`, the shortest chain of imports from one file to
    another.

    Args:
        path: File to start from.
        to: File to reach; empty to list both directions.
    """
    start = desk.path(path)
    known = desk.workspace.snapshot.files()
    if start not in known:
        raise desk.no_such_path(start)
    if to:
        goal = desk.path(to)
        if goal not in known:
            raise desk.no_such_path(goal)
        return _chain(desk, start, goal)
    index = desk.workspace.index
    out, into = list(index.imports(start)), list(index.importers(start))
    lines = [f"{start} imports {plural(len(out), 'module')}"]
    lines += [f" {e.line}|{e.module}{f' -> {e.target}' if e.target else ' (external)'}" for e in out[:40]]
    if len(out) > 40:
        lines.append(f" [{len(out) - 40} more]")
    lines.append(f"imported by {plural(len(into), 'file')}")
    lines += [f" {e.source}:{e.line}" for e in into[:40]]
    if len(into) > 40:
        lines.append(f" [{len(into) - 40} more]")
    internal, users = [e.target for e in out if e.target], [e.source for e in into]
    return ToolOutput(
        text="\n".join(lines),
        digest=f"imports {start}: imports {', '.join(internal[:6])}; imported by {', '.join(users[:6])}",
        log=f"imports {start}: {len(out)} out, {len(into)} in",
        raw="\n".join([f"{e.line} {e.module}" for e in out] + [f"{e.source}:{e.line}" for e in into])
        if max(len(out), len(into)) > 40
        else "",
        shown=tuple((start, e.line, e.line) for e in out[:40]),
    )


def _chain(desk: Desk, start: str, goal: str) -> ToolOutput:
    targets: dict[str, list[str]] = {}
    for source, target in desk.workspace.index.import_edges():
        targets.setdefault(source, []).append(target)
    before: dict[str, str] = {start: ""}
    queue = deque([start])
    while queue and goal not in before:
        here = queue.popleft()
        for target in sorted(targets.get(here, ())):
            if target not in before:
                before[target] = here
                queue.append(target)
    if goal not in before:
        text = f"no chain of resolved imports leads from {start} to {goal} ({len(before)} files reached)"
        return ToolOutput(text=text, digest=f"imports: {text}", log=f"imports {start} to {goal}: none")
    chain = [goal]
    while chain[-1] != start:
        chain.append(before[chain[-1]])
    chain.reverse()
    text = " -> ".join(chain)
    return ToolOutput(text=text, digest=f"imports {text}", log=f"imports {start} to {goal}: {len(chain) - 1} steps")
