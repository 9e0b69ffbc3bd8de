"""Swift: `import Module` means the target folder of that name; which of its files, the used names tell."""

from __future__ import annotations

from subagents.index.resolve.base import FileTree, Names, Resolver, Targets
from subagents.index.resolve.jvm import files_used


def make(tree: FileTree) -> Resolver:
    return TargetResolver(tree)


class TargetResolver:
    def __init__(self, tree: FileTree) -> None:
        self.targets: dict[str, list[str]] = {}
        for path, language in tree.languages.items():
            parts = path.split("/")
            if language == "swift" and "Sources" in parts[:-2]:
                self.targets.setdefault(parts[parts.index("Sources") + 1], []).append(path)

    def resolve(self, source: str, module: str, names: Names, used: bytes) -> Targets:
        paths = [path for path in self.targets.get(module, ()) if path != source]
        return files_used(source, paths, used) if paths else []
