"""C#: `using A.B` means the files that declare namespace A.B and whose names are used."""

from __future__ import annotations

from subagents.index.resolve.base import FileTree, Names, Resolver, Targets
from subagents.index.resolve.jvm import files_used


def make(tree: FileTree) -> Resolver:
    return NamespaceResolver(tree)


class NamespaceResolver:
    def __init__(self, tree: FileTree) -> None:
        self.tree = tree

    def resolve(self, source: str, module: str, names: Names, used: bytes) -> Targets:
        paths = self.tree.by_package.get(module)
        if paths is None:  # `using static A.B.Class`, `using X = A.B.Class`
            namespace, _, name = module.rpartition(".")
            paths = [
                path
                for path in self.tree.by_package.get(namespace, ())
                if path.rpartition("/")[2].partition(".")[0] == name.partition("<")[0]
            ]
            return [(path, [one for one, _ in names]) for path in paths]
        others = [path for path in paths if path != source]
        return files_used(source, others, used) if others else []
