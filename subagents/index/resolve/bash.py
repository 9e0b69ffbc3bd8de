"""Shell: `source FILE`, relative to the script or the repository; a variable at its front stands for the folder."""

from __future__ import annotations

from subagents.index.resolve.base import FileTree, Names, Resolver, Targets, folder_of, join


def make(tree: FileTree) -> Resolver:
    return SourceResolver(tree)


class SourceResolver:
    def __init__(self, tree: FileTree) -> None:
        self.tree = tree

    def resolve(self, source: str, module: str, names: Names, used: bytes) -> Targets:
        for folder in (folder_of(source), "", folder_of(folder_of(source))):
            path = join(folder, module)
            if path is not None and path in self.tree and path != source:
                return [(path, ["*"])]
        return []
