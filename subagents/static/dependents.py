"""Who depends on X: importers, callers, subclasses, other uses, grouped and counted; then who depends on those."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from subagents.codebase.types import CodeIndex, ImportEdge, Reference, Symbol
from subagents.static.callgraph import TYPE_KINDS, Key, Tick, key_of
from subagents.static.drafts import Draft, Place, a, listing, place, plural, symbol_data, where
from subagents.static.flow import Tools
from subagents.static.mentions import Mention
from subagents.static.roles import package_of, path_role
from subagents.static.source import Sources
from subagents.static.targets import Target

MAX_GROUPS = 14
MAX_EXAMPLES = 3
MAX_CALLERS = 5
MAX_FILES = 400
MAX_REFERENCES = 400
MAX_DISTANCE = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """One line that uses the target. `inside` is the enclosing definition, or empty."""

    path: str
    line: int
    inside: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Uses:
    how: str
    """`import`, `call`, `maybe` (a call of that name), `inherit`, `name`, `text` (no call: a value, a string, a field),
    `alias` (the same under the name of what stands for it)."""
    uses: tuple[Use, ...]
    truncated: bool = False


def target_draft(
    target: Target,
    sources: Sources,
    number: int = 0,
    defines: Sequence[str] = (),
    defined: tuple[str, int] | None = None,
) -> Draft | None:
    """What X was taken to be."""
    if target.symbol is not None:
        symbol = target.symbol
        return Draft(
            claim=f"`{symbol.qualified}` is {a(symbol.kind)} defined at "
            f"{where(symbol.path, symbol.start, symbol.end)}.",
            kind="structure",
            citations=(place(symbol),),
            symbols=(symbol.qualified,),
            relevance=1.0 - 0.05 * number,
            data={"step": "target", "target": "symbol", "number": number, "exact": target.exact, **symbol_data(symbol)},
        )
    if target.kind == "name":
        return _name_draft(target, sources, number, defined)
    head = next((at for at in map(sources.head, sorted(target.files, key=_first)[:20]) if at is not None), None)
    if head is None:
        return None
    cited, line, _ = head
    what = "file" if target.kind == "file" else f"folder of {plural(len(target.files), 'file')}"
    return Draft(
        claim=f"`{target.name}` is a {what} of this snapshot.",
        kind="structure",
        citations=((cited, line, line),),
        symbols=(target.name,),
        relevance=1.0 - 0.05 * number,
        data={
            "step": "target",
            "target": target.kind,
            "number": number,
            "exact": target.exact,
            "symbol": target.name,
            "path": target.name if target.kind == "file" else cited,
            "line": line,
            "files": len(target.files),
            "defines": list(defines),
            "doc": "",
        },
    )


def _name_draft(target: Target, sources: Sources, number: int, defined: tuple[str, int] | None) -> Draft | None:
    """A name without a definition in the index; `defined` is the line that reads like one all the same."""
    at = defined or next((at for path in target.files if (at := _written_at(target.name, path, sources))), None)
    if at is None:
        return None
    path, line = at
    claim = (
        f"`{target.name}` is defined at {where(path, line)}, where no grammar sees it."
        if defined
        else f"`{target.name}` is written as a key or a string; no code of this snapshot defines it."
    )
    return Draft(
        claim=claim,
        kind="structure",
        citations=((path, line, line),),
        symbols=(target.name,),
        relevance=1.0 - 0.05 * number,
        data={
            "step": "target",
            "target": "name",
            "number": number,
            "exact": True,
            "symbol": target.name,
            "path": path,
            "line": line,
            "files": len(target.files),
            "defined": defined is not None,
            "text": " ".join(sources.line(path, line).split())[:140],
            "doc": "",
        },
    )


def _written_at(name: str, path: str, sources: Sources) -> tuple[str, int] | None:
    text = sources.text(path)
    for line, row in enumerate(text.lines if text else (), 1):
        if re.search(rf"\b{re.escape(name)}\b", row) and line in sources.code_numbers(path):
            return path, line
    return None


def importers(target: Target, index: CodeIndex, tick: Tick) -> Uses:
    """Files outside the target that import it; for a symbol, those that import it by name."""
    found: dict[tuple[str, int], Use] = {}
    inside = set(target.files)
    for path in target.files[:MAX_FILES]:
        tick()
        for edge in index.importers(path):
            if edge.source in inside and target.symbol is None:
                continue
            if target.symbol is not None and not _imports_name(edge, target.symbol):
                continue
            found.setdefault((edge.source, edge.line), Use(path=edge.source, line=edge.line, inside=""))
    return Uses(how="import", uses=tuple(found[key] for key in sorted(found)), truncated=len(target.files) > MAX_FILES)


def external_importers(name: str, index: CodeIndex, tick: Tick) -> Uses:
    """Files that import a module from outside the snapshot."""
    found: dict[tuple[str, int], Use] = {}
    pattern = re.compile(rf"(^|/){re.escape(name)}([./:]|$)", re.IGNORECASE)
    for path in index.paths():
        tick()
        for edge in index.imports(path):
            if edge.target is None and pattern.search(edge.module):
                found.setdefault((edge.source, edge.line), Use(path=edge.source, line=edge.line, inside=""))
    return Uses(how="import", uses=tuple(found[key] for key in sorted(found)))


def callers(symbol: Symbol, index: CodeIndex) -> tuple[Uses, Uses]:
    """(surely, perhaps): calls that resolve to this definition, and calls of its name that may mean another."""
    edges = index.callers(symbol, limit=MAX_REFERENCES)
    sure: dict[tuple[str, int], Use] = {}
    perhaps: dict[tuple[str, int], Use] = {}
    for edge in edges:
        use = Use(path=edge.path, line=edge.line, inside=edge.caller.qualified if edge.caller.kind != "module" else "")
        (sure if edge.certainty >= 0.75 else perhaps)[(edge.path, edge.line)] = use
    cut = len(edges) >= MAX_REFERENCES
    return (
        Uses(how="call", uses=tuple(sure[k] for k in sorted(sure)), truncated=cut),
        Uses(how="maybe", uses=tuple(perhaps[k] for k in sorted(perhaps)), truncated=cut),
    )


def text_uses(mentions: Iterable[Mention], known: set[tuple[str, int]], index: CodeIndex, how: str = "text") -> Uses:
    """Mentions as uses, those left out that are known as calls or imports already."""
    found = {}
    for mention in mentions:
        if (mention.path, mention.line) not in known:
            around = index.symbol_at(mention.path, mention.line)
            inside = around.qualified if around is not None and around.start != mention.line else ""
            found[(mention.path, mention.line)] = Use(path=mention.path, line=mention.line, inside=inside)
    return Uses(how=how, uses=tuple(found[key] for key in sorted(found)))


def key_drafts(name: str, mentions: Sequence[Mention], number: int) -> Iterator[Draft]:
    """Lines that give a key its value: `"KEY": None`, `config["KEY"] = 1`, `KEY = 1`."""
    quoted = rf"""["'`]?{re.escape(name)}["'`]?"""
    setting = re.compile(rf"{quoted}\s*(\]\s*=(?!=)|:(?!:)|=(?![=>])|=>)")
    given = 0
    for mention in mentions:
        if path_role(mention.path) in ("test", "example", "docs") or not setting.search(mention.text):
            continue
        row = " ".join(mention.text.split())[:140]
        yield Draft(
            claim=f"`{name}` gets a value at {where(mention.path, mention.line)}: `{row}`.",
            kind="decision",
            citations=((mention.path, mention.line, mention.line),),
            symbols=(name,),
            relevance=0.9,
            data={"step": "key", "number": number, "order": given, "target": name, "path": mention.path,
                  "line": mention.line, "text": row},
        )  # fmt: skip
        given += 1
        if given >= 2:
            return


def stand_ins(name: str, mentions: Sequence[Mention], index: CodeIndex) -> list[Symbol]:
    """Fields and constants made of a key of the same words: `secret_key = ConfigAttribute("SECRET_KEY")`."""
    plain = name.replace("_", "").lower()
    return [
        s
        for m in mentions
        if m.form == "string" and path_role(m.path) == "code"
        for s in index.symbols(m.path)
        if s.start == m.line and s.name != name and s.name.replace("_", "").lower() == plain
    ][:2]


def stand_in_draft(name: str, symbol: Symbol, sources: Sources, number: int) -> Draft:
    row = " ".join(sources.line(symbol.path, symbol.start).split())[:140]
    return Draft(
        claim=f"`{symbol.qualified}` ({where(symbol.path, symbol.start)}) stands for `{name}`: `{row}`.",
        kind="structure",
        citations=(place(symbol),),
        symbols=(symbol.qualified, name),
        relevance=0.9,
        data={"step": "stand-in", "number": number, "target": name, "text": row, **symbol_data(symbol)},
    )


def alone_draft(name: str, cited: Place, mentions: Sequence[Mention], complete: bool, number: int) -> Draft:
    """Nothing that uses it was resolved: how many lines hold the name all the same."""
    shown = mentions[:3]
    if shown:
        lines = listing([where(m.path, m.line) for m in shown])
        claim = (
            f"No call or import of `{name}` was resolved; {plural(len(mentions), 'line')} hold the name, e.g. {lines}."
        )
    elif complete:
        claim = f"Outside its own definition no line of code in this snapshot holds the name `{name}`."
    else:
        claim = f"No call or import of `{name}` was resolved."
    return Draft(
        claim=claim,
        kind="structure",
        citations=tuple((m.path, m.line, m.line) for m in shown) or (cited,),
        symbols=(name,),
        relevance=0.7,
        data={
            "step": "alone",
            "number": number,
            "target": name,
            "lines": len(mentions),
            "complete": complete,
            "examples": [{"path": m.path, "line": m.line, "text": " ".join(m.text.split())[:100]} for m in shown],
        },
    )


def implementers(symbol: Symbol, index: CodeIndex) -> list[Symbol]:
    """Go: types that have every method an interface lists, by name; the language needs no word that says so."""
    inside = [s for s in index.symbols(symbol.path) if s.qualified.rpartition(".")[0] == symbol.qualified]
    wanted = [s.name for s in inside if s.kind == "method"]
    if not wanted:
        return []
    owners: dict[tuple[str, str], set[str]] = defaultdict(set)
    for name in wanted:
        for method in index.definitions(name, limit=400):
            owner = method.qualified.rpartition(".")[0]
            if method.name == name and owner and method.path.endswith(".go") and owner != symbol.qualified:
                owners[(method.path.rpartition("/")[0], owner)].add(name)
    found = []
    for (folder, owner), has in sorted(owners.items()):
        if has.issuperset(wanted):
            found += [
                s
                for s in index.definitions(owner, limit=20)
                if s.qualified == owner and s.path.rpartition("/")[0] == folder and s.kind in TYPE_KINDS
                and s.kind != "interface"
            ][:1]  # fmt: skip
    return found


def subclasses(symbol: Symbol, index: CodeIndex, tick: Tick) -> list[tuple[int, Symbol]]:
    """Direct and further subclasses with their distance, breadth first, each once."""
    found: dict[tuple[str, int], tuple[int, Symbol]] = {}
    frontier = [symbol]
    if symbol.kind == "interface" and symbol.path.endswith(".go"):
        found.update({(s.path, s.start): (1, s) for s in implementers(symbol, index)})
    for distance in range(1, 5):
        following = []
        for base in frontier:
            tick()
            for derived in index.subclasses(base):
                at = (derived.path, derived.start)
                if at not in found and at != (symbol.path, symbol.start):
                    found[at] = (distance, derived)
                    following.append(derived)
        frontier = following[:60]
    return sorted(found.values(), key=lambda item: (item[0], item[1].path, item[1].start))


def other_uses(symbol: Symbol, index: CodeIndex, known: set[tuple[str, int]]) -> Uses:
    """Lines that name a class or value without calling it: annotations, checks, arguments."""
    references = index.references(symbol.name, limit=MAX_REFERENCES)
    found: dict[tuple[str, int], Use] = {}
    for reference in references:
        at = (reference.path, reference.line)
        if (
            at in known
            or reference.kind == "import"
            or (reference.path == symbol.path and reference.line == symbol.start)
        ):
            continue
        if not _may_mean(reference, symbol, index):
            continue
        found.setdefault(at, Use(path=reference.path, line=reference.line, inside=reference.inside))
    return Uses(how="name", uses=tuple(found[k] for k in sorted(found)), truncated=len(references) >= MAX_REFERENCES)


def _may_mean(reference: Reference, symbol: Symbol, index: CodeIndex) -> bool:
    if symbol.kind in TYPE_KINDS or symbol.kind in ("constant", "macro"):
        return True
    if reference.path == symbol.path:
        return True
    return len(index.definitions(symbol.name, limit=3)) == 1


def group_drafts(target: str, found: Uses, number: int, *, relevance: float = 0.7) -> Iterator[Draft]:
    """One finding a folder, biggest first (code before tests), with counts and a few lines each; and one total."""
    by_package: dict[tuple[bool, str], list[Use]] = defaultdict(list)
    for use in found.uses:
        test = path_role(use.path) in ("test", "example")
        by_package[(test, package_of(use.path))].append(use)
    if len({package for test, package in by_package if not test}) <= 2:
        by_package = _by_file(by_package)
    ordered = sorted(
        by_package.items(), key=lambda item: (item[0][0], -len({u.path for u in item[1]}), -len(item[1]), item[0][1])
    )
    if not ordered:
        return
    verbs = {"import": "import", "call": "call", "inherit": "extend", "name": "mention", "maybe": "may call (by name)",
             "text": "name", "alias": "read or name"}  # fmt: skip
    files = sorted({use.path for use in found.uses})
    tests = sum(1 for path in files if path_role(path) in ("test", "example"))
    first = ordered[0][1][0]
    distinct = _distinct_callers(found.uses, target)
    at_least = "at least " if found.truncated else ""
    yield Draft(
        claim=f"{at_least}{plural(len(found.uses), 'line')} in {plural(len(files), 'file')} "
        f"{verbs[found.how]} `{target}`"
        f" ({tests} of the files are tests or examples); {plural(len(ordered), 'folder')}.",
        kind="structure",
        citations=tuple((u.path, u.line, u.line) for u in distinct) or ((first.path, first.line, first.line),),
        symbols=(target,),
        relevance=min(1.0, relevance + 0.2),
        data={
            "step": "total",
            "how": found.how,
            "number": number,
            "target": target,
            "lines": len(found.uses),
            "files": len(files),
            "tests": tests,
            "folders": len(ordered),
            "truncated": found.truncated,
            "test_lines": sum(1 for u in found.uses if path_role(u.path) in ("test", "example")),
            "examples": [
                {"path": u.path, "line": u.line, "inside": u.inside, "test": path_role(u.path) in ("test", "example")}
                for u in distinct
            ],
        },
    )
    for order, ((test, package), uses) in enumerate(ordered[:MAX_GROUPS]):
        yield _group_draft(target, found.how, number, order, package, test, uses, verbs[found.how], relevance)


def _distinct_callers(uses: Sequence[Use], target: str) -> list[Use]:
    """One use for each definition around it, of code before tests, itself left out; the first few."""
    found: dict[tuple[str, str], Use] = {}
    for use in sorted(uses, key=lambda u: (path_role(u.path) != "code", not u.inside)):
        if use.inside != target:
            found.setdefault((use.path, use.inside), use)
    return list(found.values())[:MAX_CALLERS]


def _by_file(by_package: Mapping[tuple[bool, str], list[Use]]) -> dict[tuple[bool, str], list[Use]]:
    """When nearly all is in one folder, its files tell more than its name; tests stay grouped by folder."""
    split: dict[tuple[bool, str], list[Use]] = defaultdict(list)
    for (test, package), uses in by_package.items():
        for use in uses:
            split[(test, package if test else use.path)].append(use)
    return split


def _group_draft(
    target: str,
    how: str,
    number: int,
    order: int,
    package: str,
    test: bool,
    uses: Sequence[Use],
    verb: str,
    relevance: float,
) -> Draft:
    examples = _spread(uses)
    named = [f"`{u.inside}` ({where(u.path, u.line)})" if u.inside else where(u.path, u.line) for u in examples]
    files = len({use.path for use in uses})
    more = f", e.g. {listing(named)}" if len(uses) > len(examples) else f": {listing(named)}"
    return Draft(
        claim=f"In `{package}` {plural(len(uses), 'line')} in {plural(files, 'file')} {verb} `{target}`{more}.",
        kind="structure",
        citations=tuple((u.path, u.line, u.line) for u in examples),
        symbols=(target,),
        relevance=round(max(0.2, relevance - 0.04 * order - (0.2 if test else 0.0)), 2),
        data={
            "step": "group",
            "how": how,
            "number": number,
            "order": order,
            "target": target,
            "package": package,
            "test": test,
            "lines": len(uses),
            "files": files,
            "examples": [{"path": u.path, "line": u.line, "inside": u.inside} for u in examples],
        },
    )


def subclass_draft(symbol: Symbol, derived: Sequence[tuple[int, Symbol]], number: int) -> Draft:
    shown = [item for item in derived if path_role(item[1].path) not in ("test", "example")][:6] or list(derived[:3])
    direct = sum(1 for distance, _ in derived if distance == 1)
    tests = sum(1 for _, s in derived if path_role(s.path) in ("test", "example"))
    citations: list[Place] = [place(s) for _, s in shown]
    names = listing([f"`{s.qualified}` ({where(s.path, s.start)})" for _, s in shown])
    verb = "implement or extend" if symbol.kind in ("interface", "trait") else "extend"
    noun = ("type", "types") if symbol.path.endswith((".go", ".rs")) else ("class", "classes")
    return Draft(
        claim=f"{plural(len(derived), *noun)} {verb} `{symbol.qualified}` "
        f"({direct} directly, {tests} in tests): {names}.",
        kind="structure",
        citations=tuple(citations),
        symbols=(symbol.qualified, *(s.qualified for _, s in shown)),
        relevance=0.85,
        data={
            "step": "subclasses",
            "number": number,
            "target": symbol.qualified,
            "count": len(derived),
            "direct": direct,
            "tests": tests,
            "implements": symbol.kind in ("interface", "trait"),
            "shown": [{"symbol": s.qualified, "path": s.path, "line": s.start, "distance": d} for d, s in shown],
        },
    )


def transitive_draft(target: Target, direct: Uses, index: CodeIndex, number: int, tick: Tick) -> Draft | None:
    """How far a change can travel along imports: files by distance from the target."""
    reverse: dict[str, list[str]] = defaultdict(list)
    for source, imported in index.import_edges():
        reverse[imported].append(source)
    tick()
    seen = set(target.files)
    frontier = sorted({use.path for use in direct.uses} - seen) if target.symbol is not None else sorted(seen)
    layers: list[int] = []
    if target.symbol is not None:
        seen.update(frontier)
        layers.append(len(frontier))
    for _ in range(MAX_DISTANCE):
        frontier = sorted({source for path in frontier for source in reverse.get(path, ()) if source not in seen})
        if not frontier:
            break
        seen.update(frontier)
        layers.append(len(frontier))
    reached = seen - set(target.files)
    if not reached or not direct.uses:
        return None
    code = sum(1 for path in reached if path_role(path) == "code")
    tests = sum(1 for path in reached if path_role(path) == "test")
    total = sum(1 for path in index.paths() if index.language(path) not in (None, "text", "markdown", "rst"))
    example = direct.uses[0]
    return Draft(
        claim=f"Along imports {plural(len(reached), 'file')} can be reached by a change to `{target.name}` "
        f"({code} code, {tests} tests; by distance {', '.join(map(str, layers))}).",
        kind="risk",
        citations=((example.path, example.line, example.line),),
        symbols=(target.name,),
        confidence=0.75,
        relevance=0.85,
        data={
            "step": "transitive",
            "number": number,
            "target": target.name,
            "reached": len(reached),
            "code": code,
            "tests": tests,
            "layers": layers,
            "total": total,
        },
    )


def caller_layers(symbol: Symbol, tools: Tools, number: int, tick: Tick) -> Iterator[Draft]:
    """Who calls its callers, and so on: how far a change of behaviour can be felt. Tests left out."""
    seen = {key_of(symbol)}
    frontier = [symbol]
    for distance in range(1, 5):
        layer: dict[Key, tuple[Symbol, Symbol, str, int]] = {}
        for callee in frontier:
            tick()
            for edge in tools.builder.callers(callee):
                if edge.certainty >= 0.6 and edge.caller not in seen and len(layer) < 25:
                    layer[edge.caller] = (tools.builder.graph.symbols[edge.caller], callee, edge.path, edge.line)
        if not layer:
            return
        seen.update(layer)
        frontier = [layer[key][0] for key in sorted(layer)]
        shown = [layer[key] for key in sorted(layer)][:4]
        names = listing([f"`{caller.qualified}` ({where(path, line)})" for caller, _, path, line in shown])
        more = f" and {len(layer) - len(shown)} more" if len(layer) > len(shown) else ""
        yield Draft(
            claim=f"At distance {distance} from `{symbol.qualified}`: {names}{more}.",
            kind="risk",
            citations=tuple((path, line, line) for _, _, path, line in shown),
            symbols=(symbol.qualified, *(caller.qualified for caller, _, _, _ in shown)),
            relevance=0.8 - 0.1 * distance,
            data={
                "step": "layer",
                "number": number,
                "order": distance,
                "target": symbol.qualified,
                "count": len(layer),
                "cut": len(layer) >= 25,
                "shown": [
                    {"symbol": caller.qualified, "calls": callee.qualified, "path": path, "line": line}
                    for caller, callee, path, line in shown
                ],
            },
        )


def exported_drafts(target: Target, index: CodeIndex, sources: Sources, number: int) -> Iterator[Draft]:
    """Where the target is made public: re-exports from package roots, lists of public names."""
    given = 0
    simple = target.symbol.name if target.symbol else target.name.rpartition("/")[2].rpartition(".")[0] or target.name
    for path in target.files[:40]:
        for edge in index.importers(path):
            if (
                not re.search(r"(^|/)(__init__\.pyi?|index\.[jt]sx?|lib\.rs|mod\.rs|prelude\.rs)$", edge.source)
                or edge.source in target.files
            ):
                continue
            if target.symbol is not None and not _imports_name(edge, target.symbol):
                continue
            row = sources.line(edge.source, edge.line).strip()
            yield Draft(
                claim=f"`{simple}` is offered by the package itself: {where(edge.source, edge.line)} re-exports it.",
                kind="decision",
                citations=((edge.source, edge.line, edge.line),),
                symbols=(target.name,),
                relevance=0.8,
                data={
                    "step": "exported", "number": number, "target": target.name, "path": edge.source, "line": edge.line,
                    "text": row[:120],
                },
            )  # fmt: skip
            given += 1
            if given >= 3:
                return


def _spread(uses: Sequence[Use]) -> list[Use]:
    """A few uses out of different files."""
    chosen: dict[str, Use] = {}
    for use in sorted(uses, key=lambda u: (not u.inside, u.path, u.line)):
        chosen.setdefault(use.path, use)
    return list(chosen.values())[:MAX_EXAMPLES]


def _imports_name(edge: ImportEdge, symbol: Symbol) -> bool:
    top = symbol.qualified.partition(".")[0]
    names = {name.rpartition(".")[2] for name in edge.names}
    return symbol.name in names or top in names or edge.module.endswith((f".{top}", f"::{top}", f"/{top}"))


def _first(path: str) -> tuple[bool, int, str]:
    return (not path.endswith(("__init__.py", "mod.rs", "lib.rs", "README.md", "doc.go")), path.count("/"), path)
