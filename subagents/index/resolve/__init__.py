"""Imports resolved to files of the snapshot: one module a family of languages, each knowing that family's rules.

What a resolver may look at: the paths and languages of the snapshot, declared packages, and a few configuration files.
It never guesses across the whole tree by name alone, unless its language resolves that way itself (C includes).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module

from subagents.index.resolve.base import FileTree, Resolver, Targets
from subagents.index.rows import ImportRow

_RESOLVERS = {
    "python": "python",
    "javascript": "javascript",
    "typescript": "javascript",
    "tsx": "javascript",
    "go": "go",
    "rust": "rust",
    "java": "jvm",
    "kotlin": "jvm",
    "scala": "jvm",
    "c": "c",
    "cpp": "c",
    "c_sharp": "c_sharp",
    "ruby": "ruby",
    "php": "php",
    "swift": "swift",
    "bash": "bash",
}
LOOK_AT_NAMES = frozenset({"java", "kotlin", "scala", "c_sharp", "swift"})
"""Languages in which the names a file refers to tell what an import means."""
_STEERING = frozenset({"go.mod", "package.json", "tsconfig.json", "jsconfig.json", "composer.json", "Cargo.toml"})


@dataclass(frozen=True, slots=True)
class ImportedFile:
    """One file and the imports it states. `used` holds the keys of the names it refers to (see records)."""

    number: int
    path: str
    language: str | None
    imports: Sequence[ImportRow]
    used: bytes = field(default=b"", repr=False)


def steers_resolution(path: str) -> bool:
    """Whether a change of this file's contents can move the imports of others."""
    name = path.rpartition("/")[2]
    return name in _STEERING or name.startswith(("tsconfig.", "jsconfig."))


def resolve_all(files: Sequence[ImportedFile], tree: FileTree) -> list[list[Targets]]:
    """For each file, for each of its imports, the files of the snapshot it means (none: external)."""
    resolvers: dict[str, Resolver | None] = {}
    resolved: list[list[Targets]] = []
    for file in files:
        if not file.imports or file.language is None:
            resolved.append([])
            continue
        family = _RESOLVERS.get(file.language, "")
        if family not in resolvers:
            resolvers[family] = import_module(f"subagents.index.resolve.{family}").make(tree) if family else None
        resolver = resolvers[family]
        if resolver is None:
            resolved.append([])
            continue
        resolved.append([
            resolver.resolve(file.path, module, names, file.used) for _, module, names, _ in file.imports
        ])  # fmt: skip
    return resolved
