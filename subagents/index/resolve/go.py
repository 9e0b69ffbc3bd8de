"""Not yet resolved."""

from __future__ import annotations

from subagents.index.resolve.base import FileTree, Names, Resolver, Targets


def make(tree: FileTree) -> Resolver:
    return _Nothing()


class _Nothing:
    def resolve(self, source: str, module: str, names: Names, used: bytes) -> Targets:
        return []
