"""The map of the repository as findings: languages, packages and their purpose, entry points, layers, cycles, hubs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from subagents.codebase.types import CodeIndex
from subagents.index.brief import Package, RepositoryBrief
from subagents.index.briefing import package_of
from subagents.static.callgraph import TYPE_KINDS
from subagents.static.drafts import Draft, Place, listing, plural, where
from subagents.static.roles import path_role
from subagents.static.source import Sources, shorten
from subagents.static.work import Job

MAX_PACKAGES = 16
MAX_DEPENDENCIES = 14
MAX_ENTRIES = 8
MAX_HUBS = 6


def survey_drafts(job: Job) -> Iterator[Draft]:
    """Languages first, so that something is shown at once; packages, tests and entry points after."""
    index, sources = job.workspace.index, job.analysis.sources
    job.deliverable = f"{plural(len(index.paths()), 'file')} indexed, none of them code"
    brief = job.analysis.brief
    if brief is None:
        return
    job.tick()
    yield from _languages(brief, index, sources)
    for order, package in enumerate(sorted(brief.packages, key=lambda p: (-p.lines, p.folder))[:MAX_PACKAGES]):
        yield from _package(order, package, brief, index, sources)
    for order, folder in enumerate(brief.tests[:4]):
        if sources.line(folder.path, folder.line).strip():
            yield Draft(
                claim=f"`{folder.folder}` holds {plural(folder.files, 'file')} of tests.",
                kind="structure",
                citations=((folder.path, folder.line, folder.line),),
                relevance=0.3,
                data={
                    "step": "tests",
                    "order": order,
                    "name": folder.folder,
                    "files": folder.files,
                    "path": folder.path,
                },
            )
    for order, entry in enumerate(brief.entry_points[:MAX_ENTRIES]):
        if path_role(entry.path) in ("test", "example") or not sources.line(entry.path, entry.line).strip():
            continue
        text = f"{entry.name} = {entry.target}" if entry.target else entry.name
        yield Draft(
            claim=f"Entry point ({entry.kind}): `{shorten(text, 80)}` at {where(entry.path, entry.line)}.",
            kind="structure",
            citations=((entry.path, entry.line, entry.line),),
            relevance=0.5,
            data={
                "step": "entry", "order": order, "what": entry.kind, "text": shorten(text, 120), "path": entry.path,
                "line": entry.line,
            },
        )  # fmt: skip


def _languages(brief: RepositoryBrief, index: CodeIndex, sources: Sources) -> Iterator[Draft]:
    purpose = brief.purpose
    cited: list[Place] = []
    if purpose.text and sources.line(purpose.path, purpose.line).strip():
        cited.append((purpose.path, purpose.line, purpose.line))
    else:
        heads = (sources.head(path) for path in index.paths() if path_role(path) == "code")
        cited += [head for head in heads if head is not None][:1]
    if not cited:
        return
    shares = [s for s in brief.languages if s.language not in ("text", "other")] or list(brief.languages)
    yield Draft(
        claim=f"The snapshot has {plural(brief.files, 'indexed file')} with {brief.lines:,} lines; code is in "
        + listing([f"{s.language} ({plural(s.files, 'file')})" for s in shares[:4]])
        + ".",
        kind="structure",
        citations=tuple(cited),
        relevance=0.6,
        data={
            "step": "languages",
            "indexed": brief.files,
            "lines": brief.lines,
            "purpose": purpose.text[:240],
            "path": cited[0][0],
            "line": cited[0][1],
            "rows": [{"language": s.language, "files": s.files, "lines": s.lines} for s in shares[:6]],
        },
    )


def _package(
    order: int, package: Package, brief: RepositoryBrief, index: CodeIndex, sources: Sources
) -> Iterator[Draft]:
    citation: Place | None = (package.path, package.line, package.line)
    if not sources.line(package.path, package.line).strip():
        citation = sources.head(package.path)
    members = _members(package, brief, index)
    if citation is None:
        citation = next((head for head in map(sources.head, members[:8]) if head is not None), None)
    if citation is None:
        return
    about = f": {package.purpose}" if package.purpose else ""
    yield Draft(
        claim=f"`{package.folder}` holds {plural(package.files, 'file')} of {package.language} "
        f"({package.lines:,} lines){about}",
        kind="structure",
        citations=(citation,),
        symbols=(package.folder,),
        relevance=round(max(0.2, 0.6 - 0.02 * order), 2),
        data={
            "step": "package",
            "order": order,
            "name": package.folder,
            "files": package.files,
            "lines": package.lines,
            "layer": package.layer,
            "purpose": package.purpose[:240],
            "path": citation[0],
            "line": citation[1],
            "biggest": _telling_files(members, index),
        },
    )


def _members(package: Package, brief: RepositoryBrief, index: CodeIndex) -> list[str]:
    """Files of code of a package, largest first."""
    folders = [p.folder for p in brief.packages]
    prefix = "" if package.folder == "." else package.folder + "/"
    inside = [p for p in index.paths() if p.startswith(prefix) and path_role(p) == "code"]
    own = [p for p in inside if package_of(p, folders) == package.folder and index.language(p) == package.language]
    return sorted(own, key=lambda p: (-index.line_count(p), p))


def _telling_files(members: Sequence[str], index: CodeIndex) -> list[str]:
    """The largest files, each with its largest type: what a package that says nothing of itself is about."""
    told = []
    for path in members[:4]:
        types = [s for s in index.symbols(path) if s.kind in TYPE_KINDS and "." not in s.qualified]
        largest = max(types, key=lambda s: (s.end - s.start, -s.start), default=None)
        name = path.rpartition("/")[2]
        told.append(f"{name} ({largest.name})" if largest is not None else name)
    return told


def dependency_drafts(job: Job) -> Iterator[Draft]:
    """Which package imports which, and the layers that follow from it."""
    brief = job.analysis.brief
    if brief is None:
        return
    edges = sorted((use for p in brief.packages for use in p.uses), key=lambda e: (-e.imports, e.source, e.target))
    cited: list[Place] = []
    for order, edge in enumerate(edges[:MAX_DEPENDENCIES]):
        if not job.analysis.sources.line(edge.path, edge.line).strip():
            continue
        cited.append((edge.path, edge.line, edge.line))
        yield Draft(
            claim=f"`{edge.source}` imports `{edge.target}` in {plural(edge.imports, 'place')}, "
            f"e.g. {where(edge.path, edge.line)}.",
            kind="structure",
            citations=(cited[-1],),
            symbols=(edge.source, edge.target),
            relevance=round(max(0.2, 0.6 - 0.02 * order), 2),
            data={
                "step": "depends", "order": order, "from": edge.source, "to": edge.target, "count": edge.imports,
                "path": edge.path, "line": edge.line,
            },
        )  # fmt: skip
    levels = sorted({p.layer for p in brief.packages}, reverse=True)
    rows = [[p.folder for p in brief.packages if p.layer == level][:8] for level in levels[:8]]
    if len(rows) > 1 and cited:
        yield Draft(
            claim="Layers by imports, from the top: "
            + "; ".join(", ".join(f"`{n}`" for n in row) for row in rows)
            + ".",
            kind="structure",
            citations=tuple(cited[:3]),
            relevance=0.6,
            data={"step": "layers", "rows": [{"names": row} for row in rows]},
        )


def cycle_drafts(job: Job) -> Iterator[Draft]:
    brief = job.analysis.brief
    for order, cycle in enumerate(brief.cycles[:3] if brief else ()):
        thinnest = min(cycle.steps, key=lambda e: (e.imports, e.source, e.target), default=None)
        if thinnest is None or not job.analysis.sources.line(thinnest.path, thinnest.line).strip():
            continue
        yield Draft(
            claim=f"{listing([f'`{n}`' for n in cycle.packages[:8]])} import each other in a circle; its thinnest link "
            f"is `{thinnest.source}` importing `{thinnest.target}` in {plural(thinnest.imports, 'place')} "
            f"({where(thinnest.path, thinnest.line)}).",
            kind="risk",
            citations=((thinnest.path, thinnest.line, thinnest.line),),
            symbols=tuple(cycle.packages[:8]),
            relevance=0.55,
            data={
                "step": "cycle", "order": order, "members": list(cycle.packages[:10]), "size": len(cycle.packages),
                "from": thinnest.source, "to": thinnest.target, "count": thinnest.imports, "path": thinnest.path,
                "line": thinnest.line,
            },
        )  # fmt: skip


def hub_drafts(job: Job) -> Iterator[Draft]:
    brief = job.analysis.brief
    for order, hub in enumerate(brief.hubs[:MAX_HUBS] if brief else ()):
        at = (hub.path, hub.line, hub.line) if job.analysis.sources.line(hub.path, hub.line).strip() else None
        at = at or job.analysis.sources.head(hub.path)
        if at is None:
            continue
        yield Draft(
            claim=f"`{hub.path}` is imported by {plural(hub.importers, 'other file')} of code.",
            kind="structure",
            citations=(at,),
            symbols=(hub.path,),
            relevance=round(0.5 - 0.02 * order, 2),
            data={
                "step": "hub", "order": order, "path": hub.path, "line": at[1], "importers": hub.importers,
                "doc": hub.purpose[:200],
            },
        )  # fmt: skip
