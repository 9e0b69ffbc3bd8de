"""PHP: PSR-4 and PSR-0 roots of composer.json, declared namespaces, and required files."""

from __future__ import annotations

from subagents.index.resolve.base import FileTree, Names, Resolver, Targets, folder_of, join
from subagents.index.resolve.javascript import loads
from subagents.index.resolve.jvm import nearest, stem


def make(tree: FileTree) -> Resolver:
    return PhpResolver(tree)


class PhpResolver:
    def __init__(self, tree: FileTree) -> None:
        self.tree = tree
        self.roots: list[tuple[str, str]] = []
        for path in tree.configs("composer.json"):
            composer = loads(tree.read_config(path))
            for section in ("autoload", "autoload-dev"):
                loading = composer.get(section)
                mapping = loading.get("psr-4") if isinstance(loading, dict) else None
                for prefix, folders in mapping.items() if isinstance(mapping, dict) else ():
                    for folder in folders if isinstance(folders, list) else [folders]:
                        root = join(folder_of(path), folder) if isinstance(folder, str) else None
                        if root is not None:
                            self.roots.append((prefix.rstrip("\\"), root))
        self.roots.sort(key=lambda root: -len(root[0]))
        self.stems: dict[tuple[str, str], list[str]] = {}
        for package, paths in tree.by_package.items():
            for path in paths:
                self.stems.setdefault((package, stem(path)), []).append(path)

    def resolve(self, source: str, module: str, names: Names, used: bytes) -> Targets:
        if names and names[0][0] == "*":
            for folder in (folder_of(source), ""):
                path = join(folder, module)
                if path is not None and path in self.tree:
                    return [(path, ["*"])]
            return []
        target = self.class_file(source, module)
        return [(target, [name for name, _ in names])] if target else []

    def class_file(self, source: str, name: str) -> str | None:
        for prefix, root in self.roots:
            if name == prefix or name.startswith(prefix + "\\") or not prefix:
                rest = name[len(prefix) :].strip("\\").replace("\\", "/")
                path = f"{root}/{rest}.php".lstrip("/")
                if path in self.tree:
                    return path
        namespace, _, last = name.rpartition("\\")
        found = self.stems.get((namespace.replace("\\", "."), last))
        return nearest(source, found) if found else None
