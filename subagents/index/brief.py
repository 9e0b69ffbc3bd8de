"""The repository brief: a page about a snapshot, each entry with the place it rests on. Its shape and its text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from subagents.index.entry_points import EntryPoint
from subagents.index.purposes import Purpose


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageShare:
    language: str
    files: int
    lines: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependency:
    """`source` imports `target` in so many places; one of them is `path:line`."""

    source: str
    target: str
    imports: int
    path: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """A folder with code (`.` is the root's own files); `line` in `path` is where its purpose stands."""

    folder: str
    files: int
    lines: int
    language: str
    purpose: str
    path: str
    line: int
    layer: int
    """0 imports no other package; higher ones build on lower ones."""
    uses: tuple[Dependency, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycle:
    """Packages that import each other, with one import for each step."""

    packages: tuple[str, ...]
    steps: tuple[Dependency, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hub:
    path: str
    line: int
    importers: int
    purpose: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    path: str
    line: int
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TestFolder:
    __test__ = False

    folder: str
    files: int
    path: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RepositoryBrief:
    files: int
    lines: int
    purpose: Purpose
    languages: tuple[LanguageShare, ...]
    packages: tuple[Package, ...]
    entry_points: tuple[EntryPoint, ...]
    cycles: tuple[Cycle, ...]
    hubs: tuple[Hub, ...]
    documents: tuple[Document, ...]
    tests: tuple[TestFolder, ...]
    skipped: Mapping[str, int]
    """Files that were not read, by reason."""

    def to_dict(self) -> dict[str, Any]:
        """JSON values only."""
        return {**asdict(self), "skipped": dict(self.skipped)}

    def to_markdown(self) -> str:
        """About a page. Every entry ends with `path:line`."""
        return _markdown(self)


def from_dict(document: Mapping[str, Any]) -> RepositoryBrief:
    """The inverse of `RepositoryBrief.to_dict`."""
    return RepositoryBrief(
        files=document["files"],
        lines=document["lines"],
        purpose=Purpose(**document["purpose"]),
        languages=tuple(LanguageShare(**one) for one in document["languages"]),
        packages=tuple(
            Package(**{**one, "uses": tuple(Dependency(**use) for use in one["uses"])}) for one in document["packages"]
        ),
        entry_points=tuple(EntryPoint(**one) for one in document["entry_points"]),
        cycles=tuple(
            Cycle(packages=tuple(one["packages"]), steps=tuple(Dependency(**step) for step in one["steps"]))
            for one in document["cycles"]
        ),
        hubs=tuple(Hub(**one) for one in document["hubs"]),
        documents=tuple(Document(**one) for one in document["documents"]),
        tests=tuple(TestFolder(**one) for one in document["tests"]),
        skipped=dict(document["skipped"]),
    )


def _markdown(brief: RepositoryBrief) -> str:
    out: list[str] = []
    if brief.purpose.text:
        out += [f"{brief.purpose.text} ({brief.purpose.path}:{brief.purpose.line})", ""]
    languages = ", ".join(
        f"{share.language} {share.files:,} files {share.lines:,} lines" for share in brief.languages[:6]
    )
    out += [f"{brief.files:,} files read, {brief.lines:,} lines: {languages}.", ""]
    if brief.skipped:
        out += ["Not read: " + ", ".join(f"{reason} {count:,}" for reason, count in brief.skipped.items()) + ".", ""]
    out.append("## Packages (upper layers first; each builds on those below)")
    for package in brief.packages:
        uses = ", ".join(f"{use.target or '.'} ({use.imports}, {use.path}:{use.line})" for use in package.uses[:2])
        said = f": {package.purpose}" if package.purpose else ""
        out.append(
            f"- [{package.layer}] {package.folder}, {package.files} {package.language} files, {package.lines:,} lines"
            f"{said} ({package.path}:{package.line}){'; uses ' + uses if uses else ''}"
        )
    _section(out, "Entry points", [
        f"{entry.name} [{entry.kind}]{' -> ' + entry.target if entry.target else ''} ({entry.path}:{entry.line})"
        for entry in brief.entry_points[:12]
    ])  # fmt: skip
    _section(out, "Cycles between packages", [
        f"{' <-> '.join(package or '.' for package in cycle.packages[:8])}{' ...' if len(cycle.packages) > 8 else ''}: "
        + ", ".join(f"{step.path}:{step.line}" for step in cycle.steps[:4])
        for cycle in brief.cycles[:4]
    ])  # fmt: skip
    _section(out, "Most imported files", [
        f"{hub.path}:{hub.line}, by {hub.importers} files{': ' + hub.purpose if hub.purpose else ''}"
        for hub in brief.hubs[:8]
    ])  # fmt: skip
    _section(out, "Documents", [
        f"{document.title or document.path.rpartition('/')[2]} ({document.path}:{document.line})"
        for document in brief.documents[:10]
    ])  # fmt: skip
    _section(out, "Tests", [f"{test.folder}, {test.files} files ({test.path}:{test.line})" for test in brief.tests[:6]])
    return "\n".join(out).rstrip() + "\n"


def _section(out: list[str], title: str, lines: Sequence[str]) -> None:
    if lines:
        out += ["", f"## {title}", *(f"- {line}" for line in lines)]
