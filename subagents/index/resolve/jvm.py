"""Java, Kotlin and Scala: a type is found by the package that files declare and by its name."""

from __future__ import annotations

from subagents.index.records import name_key, numbers
from subagents.index.resolve.base import FileTree, Names, Resolver, Targets, common_prefix, folder_of

_MOST = 40


def make(tree: FileTree) -> Resolver:
    return JvmResolver(tree)


class JvmResolver:
    """`import a.b.C` means the file C of package a.b; where no file is called so (Kotlin), every file of the package
    that could hold it. `import a.b.*` means the files of a.b whose names are used."""

    def __init__(self, tree: FileTree) -> None:
        self.tree = tree
        self.stems: dict[tuple[str, str], list[str]] = {}
        for package, paths in tree.by_package.items():
            for path in paths:
                self.stems.setdefault((package, stem(path)), []).append(path)

    def resolve(self, source: str, module: str, names: Names, used: bytes) -> Targets:
        if len(names) == 1 and names[0][0] == "*":
            if module in self.tree.by_package:
                return files_used(source, self.tree.by_package[module], used)
            return self.by_class(source, module, "*")
        _, _, last = module.rpartition(".")
        if len(names) == 1 and names[0][0] == last:
            return self.by_class(source, module, last)
        targets: Targets = []
        for name, _ in names:  # static members, or the selectors of a Scala import
            found = self.by_class(source, f"{module}.{name}", name) or self.by_class(source, module, name)
            targets.extend(found)
        return targets

    def by_class(self, source: str, path: str, name: str) -> Targets:
        """`a.b.C`, or a member or nested type of it: the longest package that is declared decides."""
        parts = path.split(".")
        for cut in range(len(parts) - 1, 0, -1):
            package = ".".join(parts[:cut])
            found = self.stems.get((package, parts[cut]))
            if found:
                return [(nearest(source, found), [name])]
            paths = self.tree.by_package.get(package)
            if paths:
                loose = [one for one in paths if not one.endswith(".java")]
                return [(one, [name]) for one in loose[:_MOST]] if len(loose) <= 8 else []
        return []


def files_used(source: str, paths: list[str], used: bytes) -> Targets:
    """Of a whole package, the files whose name the importing file mentions; else the nearest one stands for all."""
    keys = set(numbers(used))
    found = [path for path in paths if name_key(stem(path)) in keys and path != source]
    if not found:
        return [(nearest(source, paths), ["*"])]
    return [(path, ["*"]) for path in found[:_MOST]]


def nearest(source: str, paths: list[str]) -> str:
    return min(paths, key=lambda path: (-common_prefix(folder_of(source), folder_of(path)), path))


def stem(path: str) -> str:
    return path.rpartition("/")[2].partition(".")[0]
