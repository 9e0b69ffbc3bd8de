"""The map of the repository as findings: languages, packages and their purpose, entry points, layers, cycles, hubs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from subagents.codebase.types import CodeIndex
from subagents.static.callgraph import FUNCTION_KINDS
from subagents.static.drafts import Draft, Place, listing, place, plural, where
from subagents.static.layout import (
    Package,
    cycles,
    dependencies,
    first_sentence,
    hubs,
    is_code,
    layers,
    packages,
    purpose,
)
from subagents.static.roles import path_role
from subagents.static.source import shorten
from subagents.static.work import Job

MAX_DEPENDENCIES = 14
MAX_ENTRIES = 8


def survey_drafts(job: Job) -> Iterator[Draft]:
    """Languages first, so that something is shown at once; packages and entry points after."""
    index = job.workspace.index
    job.deliverable = f"{plural(len(index.paths()), 'file')} indexed, none of them code"
    yield from _languages(index, job)
    found = packages(index)
    job.tick()
    for order, package in enumerate(found):
        draft = _package(order, package, job)
        if draft is not None:
            yield draft
    yield from _entries(job)


def _languages(index: CodeIndex, job: Job) -> Iterator[Draft]:
    files: Counter[str] = Counter()
    first: dict[str, str] = {}
    for path in index.paths():
        if is_code(index, path):
            language = index.language(path) or ""
            files[language] += 1
            if language not in first or (path_role(first[language]) != "code" and path_role(path) == "code"):
                first[language] = path
    ordered = sorted(files.items(), key=lambda item: (-item[1], item[0]))
    heads = [job.analysis.sources.head(first[name]) for name, _ in ordered[:3]]
    cited = [head for head in heads if head is not None]
    if not cited:
        return
    yield Draft(
        claim=f"The snapshot has {plural(len(index.paths()), 'indexed file')}; code is in "
        + listing([f"{name} ({count:,})" for name, count in ordered[:5]])
        + ".",
        kind="structure",
        citations=tuple(cited),
        relevance=0.6,
        data={
            "step": "languages",
            "indexed": len(index.paths()),
            "rows": [{"language": name, "files": count} for name, count in ordered[:8]],
        },
    )


def _package(order: int, package: Package, job: Job) -> Draft | None:
    sources = job.analysis.sources
    said = purpose(package, sources)
    citation: Place | None = (said.path, said.line, said.end) if said else None
    if citation is None:
        citation = next((at for at in map(sources.head, package.files[:20]) if at is not None), None)
    if citation is None:
        return None
    about = f": {said.text}" if said else ""
    return Draft(
        claim=f"`{package.path}` holds {plural(len(package.files), 'file')} of {package.role} ({package.lines:,} lines){about}",
        kind="structure",
        citations=(citation,),
        symbols=(package.path,),
        relevance=round(max(0.2, 0.6 - 0.03 * order), 2),
        data={
            "step": "package",
            "order": order,
            "name": package.path,
            "files": len(package.files),
            "lines": package.lines,
            "role": package.role,
            "purpose": said.text if said else "",
            "path": citation[0],
            "line": citation[1],
            "biggest": _telling_files(package, job),
        },
    )


def _telling_files(package: Package, job: Job) -> list[str]:
    """The largest files of a package, by name: for a package that says nothing of itself."""
    index = job.workspace.index
    own = [p for p in package.files if path_role(p) == package.role and not p.endswith("__init__.py")]
    ordered = sorted(own, key=lambda p: (-index.line_count(p), p))[:4]
    return [p.rpartition("/")[2] for p in ordered]


def _entries(job: Job) -> Iterator[Draft]:
    """Where programs start: console scripts, main functions, what the package root offers."""
    index, sources = job.workspace.index, job.analysis.sources
    found: list[tuple[int, str, int, str, str]] = []
    for path in index.paths():
        name = path.rpartition("/")[2]
        if path.count("/") > 1 or path_role(path) in ("test", "vendored", "example"):
            continue
        if name in ("pyproject.toml", "setup.cfg", "Cargo.toml", "package.json", "setup.py"):
            for number, text in _declared(path, sources.lines(path, 1, 600)):
                found.append((0, path, number, text, "declared program"))
    for symbol in index.definitions("main", limit=50):
        if path_role(symbol.path) == "code" and symbol.kind in FUNCTION_KINDS and symbol.qualified == "main":
            found.append((1, symbol.path, symbol.start, "main", "main function"))
    for path in index.paths():
        head = sources.head(path) if path.endswith("__main__.py") and path_role(path) == "code" else None
        if head is not None:
            found.append((1, path, head[1], path, "run as a module"))
    for order, (_, path, number, text, what) in enumerate(sorted(set(found))[:MAX_ENTRIES]):
        yield Draft(
            claim=f"Entry point ({what}): `{shorten(text, 80)}` at {where(path, number)}.",
            kind="structure",
            citations=((path, number, number),),
            relevance=0.5,
            data={
                "step": "entry",
                "order": order,
                "what": what,
                "text": shorten(text, 120),
                "path": path,
                "line": number,
            },
        )


def _declared(path: str, rows: list[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    section = ""
    for number, row in rows:
        header = re.match(r"^\s*\[+([^\]]+)\]+\s*$", row)
        if header:
            section = header.group(1)
            if section == "bin":
                yield number, "[[bin]]"
            continue
        if path.endswith("package.json"):
            if re.match(r'^\s*"(main|module|bin)"\s*:', row):
                yield number, row.strip().rstrip(",")
        elif section in ("project.scripts", "project.gui-scripts", "tool.poetry.scripts") and "=" in row:
            yield number, row.strip()
        elif ("console_scripts" in row and "=" in row and "[" in row) or re.match(
            r"^\s*[\"']?[\w-]+\s*=\s*[\w.]+:\w+", row
        ):
            yield number, row.strip().strip("\"',")


def dependency_drafts(job: Job) -> Iterator[Draft]:
    """Which package imports which, and the layers that follow from it."""
    index = job.workspace.index
    found = packages(index)
    edges = dependencies(index, found)
    job.tick()
    cited: list[Place] = []
    for order, edge in enumerate(edges[:MAX_DEPENDENCIES]):
        line = next((e.line for e in index.imports(edge.path) if e.target == edge.imported), 1)
        cited.append((edge.path, line, line))
        yield Draft(
            claim=f"`{edge.source}` imports `{edge.target}` {plural(edge.count, 'time')}, e.g. {where(edge.path, line)}.",
            kind="structure",
            citations=((edge.path, line, line),),
            symbols=(edge.source, edge.target),
            relevance=round(max(0.2, 0.6 - 0.02 * order), 2),
            data={
                "step": "depends",
                "order": order,
                "from": edge.source,
                "to": edge.target,
                "count": edge.count,
                "path": edge.path,
                "line": line,
            },
        )
    names = [p.path for p in found if p.role == "code"]
    rows = layers(names, edges)
    if len(rows) > 1 and cited:
        shown = [row[:8] for row in rows[:8]]
        yield Draft(
            claim="Layers by imports, from the top: "
            + "; ".join(", ".join(f"`{n}`" for n in row) for row in shown)
            + ".",
            kind="structure",
            citations=tuple(cited[:3]),
            relevance=0.6,
            data={"step": "layers", "rows": [{"names": row} for row in shown]},
        )


def cycle_drafts(job: Job) -> Iterator[Draft]:
    index = job.workspace.index
    edges = dependencies(index, packages(index))
    by_pair = {(e.source, e.target): e for e in edges}
    for order, group in enumerate(cycles(edges)[:3]):
        members = set(group)
        inside = [e for e in edges if e.source in members and e.target in members]
        weakest = min(inside, key=lambda e: (e.count, e.source, e.target))
        line = next((e.line for e in index.imports(weakest.path) if e.target == weakest.imported), 1)
        back = by_pair.get((weakest.target, weakest.source))
        other = f", against {back.count} the other way" if back else ""
        yield Draft(
            claim=f"{listing([f'`{n}`' for n in group[:8]])} import each other in a circle; its thinnest link is "
            f"`{weakest.source}` importing `{weakest.target}` {plural(weakest.count, 'time')} "
            f"({where(weakest.path, line)}){other}.",
            kind="risk",
            citations=((weakest.path, line, line),),
            symbols=tuple(group[:8]),
            relevance=0.55,
            data={
                "step": "cycle",
                "order": order,
                "members": group[:10],
                "size": len(group),
                "from": weakest.source,
                "to": weakest.target,
                "count": weakest.count,
                "back": back.count if back else 0,
                "path": weakest.path,
                "line": line,
            },
        )


def hub_drafts(job: Job) -> Iterator[Draft]:
    index, sources = job.workspace.index, job.analysis.sources
    for order, (path, count) in enumerate(hubs(index)):
        head = sources.head(path)
        if count < 3 or head is None:
            continue
        said = first_sentence(path, sources)
        top = next((s for s in index.symbols(path) if s.kind in FUNCTION_KINDS or s.kind in ("class", "struct")), None)
        citation: Place = (said.path, said.line, said.end) if said else place(top) if top else head
        yield Draft(
            claim=f"`{path}` is imported by {plural(count, 'other file')} of code.",
            kind="structure",
            citations=(citation,),
            symbols=(path,),
            relevance=round(0.5 - 0.02 * order, 2),
            data={
                "step": "hub",
                "order": order,
                "path": path,
                "line": citation[1],
                "importers": count,
                "doc": said.text if said else "",
            },
        )
