"""Go: an import path names a folder, below the module whose go.mod declares its prefix.

A package is all files of its folder. The edge goes to one of them, the representative: `doc.go`, the file named like
the package's folder, or the first that is no test; the index knows that its importers are those of the whole package.
"""

from __future__ import annotations

import re

from subagents.index.resolve.base import FileTree, Names, Resolver, Targets, folder_of, join

_MODULE = re.compile(r"^\s*module\s+\"?([^\s\"]+)", re.MULTILINE)
_REPLACE = re.compile(r"^\s*(?:replace\s+)?(\S+)(?:\s+v\S+)?\s+=>\s+(\.\.?/\S*)", re.MULTILINE)


def make(tree: FileTree) -> Resolver:
    return GoResolver(tree)


class GoResolver:
    def __init__(self, tree: FileTree) -> None:
        self.tree = tree
        self.modules: list[tuple[str, str]] = []
        for path in tree.configs("go.mod"):
            text = tree.read_config(path)
            match = _MODULE.search(text)
            if match:
                self.modules.append((match[1], folder_of(path)))
            for name, place in _REPLACE.findall(text):
                folder = join(folder_of(path), place)
                if folder is not None:
                    self.modules.append((name, folder))
        self.modules.sort(key=lambda module: -len(module[0]))
        self.known: dict[str, str | None] = {}

    def resolve(self, source: str, module: str, names: Names, used: bytes) -> Targets:
        if module not in self.known:
            self.known[module] = self.look_up(source, module)
        target = self.known[module]
        return [(target, [])] if target else []

    def look_up(self, source: str, module: str) -> str | None:
        for prefix, folder in self.modules:
            if module == prefix or module.startswith(prefix + "/"):
                rest = module[len(prefix) + 1 :]
                found = representative(self.tree, f"{folder}/{rest}".strip("/"))
                if found:
                    return found
        if not self.modules:  # a GOPATH tree: the path below `src`, or a suffix of it
            parts = module.split("/")
            for start in range(len(parts) - 1):
                found = representative(self.tree, "/".join(parts[start:]))
                if found:
                    return found
        return None


def representative(tree: FileTree, folder: str) -> str | None:
    """The file of a package's folder that import edges point at."""
    files = [path for path in tree.folders.get(folder, ()) if path.endswith(".go")]
    sources = [path for path in files if not path.endswith("_test.go")] or files
    name = folder.rpartition("/")[2]
    for wanted in ("doc.go", f"{name}.go"):
        for path in sources:
            if path.rpartition("/")[2] == wanted:
                return path
    return sources[0] if sources else None
