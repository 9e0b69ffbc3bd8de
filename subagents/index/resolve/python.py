"""Python imports: relative ones, packages under any source root, namespace packages, submodules taken by name."""

from __future__ import annotations

from subagents.index.resolve.base import FileTree, Names, Resolver, Targets, folder_of


def make(tree: FileTree) -> Resolver:
    return PythonResolver(tree)


class PythonResolver:
    """A dotted module is looked up next to the importing file's own source root first, then under every other root.

    A source root is a folder from which absolute imports start: the parent of a top-level package (a folder with
    `__init__.py` whose parent has none), the folder of a lone module, `src`, and the repository's root.
    """

    def __init__(self, tree: FileTree) -> None:
        self.modules: dict[str, str] = {}
        for path, language in tree.languages.items():
            if language != "python":
                continue
            stem, _, extension = path.rpartition(".")
            if stem.endswith("/__init__") or stem == "__init__":
                stem = stem[:-9]
            if extension == "py" or stem not in self.modules:
                self.modules[stem] = path
        self.packages = {folder_of(path) for path in self.modules.values() if path.endswith(("__init__.py", ".pyi"))}
        self.packages = {folder for folder in self.packages if self.modules.get(folder, "").startswith(folder + "/")}
        self.folders = tree.all_folders
        self.roots: dict[str, list[str]] = {}
        for stem in self.modules:
            folder = folder_of(stem)
            if folder not in self.packages:
                top = stem.rpartition("/")[2]
                self.roots.setdefault(top, []).append(folder)
        for tops in self.roots.values():
            tops.sort(key=lambda root: (root.count("/"), root))
        self.known: dict[tuple[str, str], str | None] = {}
        self.source_roots: dict[str, str] = {}

    def resolve(self, source: str, module: str, names: Names, used: bytes) -> Targets:
        if module.startswith("."):
            base = self.relative(source, module)
        else:
            base = self.absolute(source, module)
        if base is None:
            return []
        if not names:
            target = self.modules.get(base)  # a namespace package has no file of its own
            return [(target, [])] if target else []
        own = self.modules.get(base)
        targets: dict[str, list[str]] = {}
        for name, _ in names:
            submodule = self.modules.get(f"{base}/{name}" if base else name) if name != "*" else None
            target = submodule or own
            if target:
                targets.setdefault(target, []).append(name)
        return list(targets.items())

    def relative(self, source: str, module: str) -> str | None:
        dots = len(module) - len(module.lstrip("."))
        folder = folder_of(source)
        for _ in range(dots - 1):
            if not folder:
                return None
            folder = folder_of(folder)
        rest = module[dots:].replace(".", "/")
        return f"{folder}/{rest}".strip("/") if rest else folder

    def absolute(self, source: str, module: str) -> str | None:
        root = self.source_root(source)
        key = (root, module)
        if key not in self.known:
            self.known[key] = self.look_up(root, module)
        return self.known[key]

    def source_root(self, source: str) -> str:
        start = folder = folder_of(source)
        root = self.source_roots.get(start)
        if root is None:
            while folder in self.packages:
                folder = folder_of(folder)
            root = self.source_roots[start] = folder
        return root

    def look_up(self, root: str, module: str) -> str | None:
        path = module.replace(".", "/")
        top = path.partition("/")[0]
        while True:
            candidate = f"{root}/{path}" if root else path
            if candidate in self.modules or (candidate in self.folders and candidate not in self.packages):
                return candidate
            if not root:
                break
            root = folder_of(root)
        for other in self.roots.get(top, ()):
            candidate = f"{other}/{path}" if other else path
            if candidate in self.modules:
                return candidate
        # `import package.name`, where the name is no file (built, or an attribute): the package counts
        parent = path.rpartition("/")[0]
        for other in ["", *self.roots.get(top, ())] if parent else ():
            candidate = f"{other}/{parent}" if other else parent
            if candidate in self.modules:
                return candidate
        return None
