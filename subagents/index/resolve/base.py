"""What all resolvers share: the tree of paths, and how to walk it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import Protocol

Targets = list[tuple[str, list[str]]]
"""(path, names taken from it); no names: the module as a whole."""
Names = Sequence[Sequence[str]]
"""(name, alias) pairs."""


class Resolver(Protocol):
    def resolve(self, source: str, module: str, names: Names, used: bytes) -> Targets: ...


class FileTree:
    """Paths of the snapshot. `languages` holds the files that were read, `paths` every path."""

    def __init__(
        self,
        languages: Mapping[str, str | None],
        packages: Mapping[str, str],
        paths: Collection[str],
        read_config: Callable[[str], str],
    ) -> None:
        self.languages = languages
        self.packages = packages
        self.paths = paths
        self.read_config = read_config

    def __contains__(self, path: object) -> bool:
        return path in self.languages

    @cached_property
    def folders(self) -> dict[str, list[str]]:
        """folder -> the files right in it that were read, in path order; the root is ''."""
        made: dict[str, list[str]] = defaultdict(list)
        for path in self.languages:
            made[folder_of(path)].append(path)
        return dict(made)

    @cached_property
    def all_folders(self) -> frozenset[str]:
        """Every folder that holds a file that was read, at any depth."""
        made: set[str] = set()
        for folder in self.folders:
            while folder and folder not in made:
                made.add(folder)
                folder = folder_of(folder)
        return frozenset(made)

    @cached_property
    def by_name(self) -> dict[str, list[str]]:
        """File name -> paths."""
        made: dict[str, list[str]] = defaultdict(list)
        for path in self.languages:
            made[path.rpartition("/")[2]].append(path)
        return dict(made)

    @cached_property
    def by_package(self) -> dict[str, list[str]]:
        """Declared package or namespace -> paths."""
        made: dict[str, list[str]] = defaultdict(list)
        for path, package in self.packages.items():
            made[package].append(path)
        return dict(made)

    def configs(self, name: str) -> list[str]:
        """Paths of all configuration files of this name, outermost first."""
        found = [path for path in self.by_name.get(name, ()) if "/node_modules/" not in f"/{path}"]
        return sorted(found, key=lambda path: (path.count("/"), path))


def folder_of(path: str) -> str:
    return path.rpartition("/")[0]


def join(folder: str, path: str) -> str | None:
    """`path` seen from `folder`, with `.` and `..` taken out; None when it leaves the repository."""
    parts = folder.split("/") if folder else []
    for part in path.split("/"):
        if part in ("", "."):
            continue
        if part == "..":
            if not parts:
                return None
            parts.pop()
        else:
            parts.append(part)
    return "/".join(parts)


def common_prefix(one: str, other: str) -> int:
    """How many leading folders two paths share: of several candidates, the nearest is meant."""
    count = 0
    for a, b in zip(one.split("/"), other.split("/"), strict=False):
        if a != b:
            break
        count += 1
    return count
