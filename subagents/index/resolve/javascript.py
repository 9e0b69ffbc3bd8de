"""JavaScript and TypeScript: relative paths, tsconfig paths and baseUrl, workspaces by package.json name."""

from __future__ import annotations

import json
import re
from typing import Any

from subagents.index.resolve.base import FileTree, Names, Resolver, Targets, folder_of, join

_EXTENSIONS = (".ts", ".tsx", ".d.ts", ".js", ".jsx", ".mjs", ".cjs", ".mts", ".cts", ".json", ".vue", ".svelte")
_WRITTEN = {".js": (".ts", ".tsx", ".d.ts"), ".jsx": (".tsx",), ".mjs": (".mts",), ".cjs": (".cts",)}
"""TypeScript imports name the file that will be emitted."""
_COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING = re.compile(r",(\s*[}\]])")


def make(tree: FileTree) -> Resolver:
    return JavaScriptResolver(tree)


def loads(text: str) -> dict[str, Any]:
    """JSON with comments and trailing commas; an empty object for anything unreadable."""
    try:
        made = json.loads(_TRAILING.sub(r"\1", _COMMENT.sub(lambda match: match[1] or "", text)))
    except (ValueError, RecursionError):
        return {}
    return made if isinstance(made, dict) else {}


class JavaScriptResolver:
    def __init__(self, tree: FileTree) -> None:
        self.tree = tree
        self.known: dict[tuple[str, str], str | None] = {}
        self.packages: dict[str, str] = {}
        self.manifests: dict[str, dict[str, Any]] = {}
        for path in tree.configs("package.json")[:2000]:
            manifest = loads(tree.read_config(path))
            name = manifest.get("name")
            if isinstance(name, str):
                self.packages.setdefault(name, folder_of(path))
                self.manifests[folder_of(path)] = manifest
        self.mappings: dict[str, tuple[str, list[tuple[str, list[str]]]]] = {}
        for name in ("jsconfig.json", "tsconfig.json", "tsconfig.base.json"):
            for path in tree.configs(name)[:2000]:
                base, mapping = self.read_tsconfig(path, 0)
                if base is not None or mapping:
                    self.mappings[folder_of(path)] = (base if base is not None else "", mapping)
                    if base is None:
                        self.mappings[folder_of(path)] = ("\0", mapping)

    def read_tsconfig(self, path: str, depth: int) -> tuple[str | None, list[tuple[str, list[str]]]]:
        """(baseUrl as a folder or None, [(pattern, targets as paths)]), `extends` followed."""
        if depth > 5 or path not in self.tree:
            return None, []
        config = loads(self.tree.read_config(path))
        folder = folder_of(path)
        options = config.get("compilerOptions")
        options = options if isinstance(options, dict) else {}
        base_url, paths = options.get("baseUrl"), options.get("paths")
        base = join(folder, base_url) if isinstance(base_url, str) else None
        mapping: list[tuple[str, list[str]]] = []
        if isinstance(paths, dict):
            start = base if base is not None else folder
            for pattern, targets in paths.items():
                if isinstance(targets, list):
                    joined = [join(start, target) for target in targets if isinstance(target, str)]
                    mapping.append((pattern, [target for target in joined if target is not None]))
        inherited = config.get("extends")
        for parent in inherited if isinstance(inherited, list) else [inherited]:
            if isinstance(parent, str) and parent.startswith("."):
                above = join(folder, parent if parent.endswith(".json") else parent + ".json")
                above_base, above_mapping = self.read_tsconfig(above or "", depth + 1)
                base = base if base is not None else above_base
                mapping = mapping or above_mapping
        return base, mapping

    def resolve(self, source: str, module: str, names: Names, used: bytes) -> Targets:
        folder = folder_of(source)
        key = (folder, module)
        if key not in self.known:
            self.known[key] = self.look_up(folder, module)
        target = self.known[key]
        return [(target, [name for name, _ in names])] if target else []

    def look_up(self, folder: str, module: str) -> str | None:
        module = module.partition("?")[0]
        if module.startswith((".", "/")):
            path = join(folder, module) if module.startswith(".") else join("", module)
            return self.as_file(path) if path is not None else None
        return self.mapped(folder, module) or self.in_workspace(folder, module)

    def as_file(self, path: str) -> str | None:
        tree = self.tree
        if path in tree and "." in path.rpartition("/")[2]:
            return path
        for extension in _EXTENSIONS:
            if path + extension in tree:
                return path + extension
        stem, dot, extension = path.rpartition(".")
        for other in _WRITTEN.get(dot + extension, ()):
            if stem + other in tree:
                return stem + other
        manifest = self.manifests.get(path)
        if manifest is not None:
            found = self.main_of(path, manifest)
            if found:
                return found
        for extension in _EXTENSIONS:
            index = f"{path}/index{extension}" if path else f"index{extension}"
            if index in tree:
                return index
        return path if path in tree else None

    def main_of(self, folder: str, manifest: dict[str, Any]) -> str | None:
        candidates = [manifest.get(key) for key in ("source", "types", "typings", "module", "main")]
        exports = manifest.get("exports")
        if isinstance(exports, dict):
            exports = exports.get(".", exports)
        while isinstance(exports, dict):
            exports = next(
                (exports[key] for key in ("source", "import", "default", "require", "types") if key in exports), None
            )
        for candidate in [*candidates, exports]:
            if isinstance(candidate, str):
                found = self.as_source(join(folder, candidate))
                if found:
                    return found
        for entry in ("src/index", "index", "lib/index", "src/main"):
            found = self.as_file(f"{folder}/{entry}".lstrip("/"))
            if found:
                return found
        return None

    def as_source(self, path: str | None) -> str | None:
        """A built file stands for the source it is built from."""
        if path is None:
            return None
        found = self.as_file(path) if path in self.tree or self.manifests.get(path) is None else None
        if found:
            return found
        for built in ("/dist/", "/lib/", "/build/", "/out/", "/esm/", "/cjs/"):
            if built in f"/{path}":
                source = f"/{path}".replace(built, "/src/", 1).lstrip("/")
                stem = source.rpartition(".")[0] if "." in source.rpartition("/")[2] else source
                stem = stem.removesuffix(".d")
                found = self.as_file(stem)
                if found:
                    return found
        return None

    def mapped(self, folder: str, module: str) -> str | None:
        while True:
            if folder in self.mappings:
                base, mapping = self.mappings[folder]
                for pattern, targets in mapping:
                    head, star, tail = pattern.partition("*")
                    if not star and pattern == module:
                        middle = ""
                    elif star and module.startswith(head) and module.endswith(tail) and len(module) >= len(head + tail):
                        middle = module[len(head) : len(module) - len(tail)]
                    else:
                        continue
                    for target in targets:
                        found = self.as_file(target.replace("*", middle))
                        if found:
                            return found
                if base != "\0":
                    found = self.as_file(f"{base}/{module}".lstrip("/"))
                    if found:
                        return found
            if not folder:
                return None
            folder = folder_of(folder)

    def in_workspace(self, folder: str, module: str) -> str | None:
        if module.startswith("@/") or module.startswith("~/"):  # the usual alias of a bundler for the source root
            rest = module[2:]
            while True:
                for root in (f"{folder}/src", folder):
                    found = self.as_file(f"{root}/{rest}".lstrip("/"))
                    if found:
                        return found
                if not folder:
                    return None
                folder = folder_of(folder)
        parts = module.split("/")
        count = 2 if module.startswith("@") else 1
        name, rest = "/".join(parts[:count]), "/".join(parts[count:])
        home = self.packages.get(name)
        if home is None:
            return None
        if not rest:
            return self.main_of(home, self.manifests[home])
        return (
            self.as_source(f"{home}/{rest}".lstrip("/"))
            or self.as_file(f"{home}/src/{rest}".lstrip("/"))
            or self.exported(home, "./" + rest)
        )

    def exported(self, home: str, key: str) -> str | None:
        exports = self.manifests[home].get("exports")
        target = exports.get(key) if isinstance(exports, dict) else None
        while isinstance(target, dict):
            target = next(iter(target.values()), None)
        return self.as_source(join(home, target)) if isinstance(target, str) else None
