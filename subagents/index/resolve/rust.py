"""Rust: `mod` declarations make the tree; `crate`, `self`, `super` and workspace crates are roots of paths in it."""

from __future__ import annotations

import re

from subagents.index.resolve.base import FileTree, Names, Resolver, Targets, folder_of

_PACKAGE = re.compile(r"^\[package\](.*?)(?=^\[|\Z)", re.MULTILINE | re.DOTALL)
_LIB = re.compile(r"^\[lib\](.*?)(?=^\[|\Z)", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r"^\s*name\s*=\s*\"([^\"]+)\"", re.MULTILINE)
_PATH = re.compile(r"^\s*path\s*=\s*\"([^\"]+)\"", re.MULTILINE)


def make(tree: FileTree) -> Resolver:
    return RustResolver(tree)


class RustResolver:
    def __init__(self, tree: FileTree) -> None:
        self.tree = tree
        self.crates: dict[str, str] = {}
        """Crate name -> its root file."""
        self.homes: dict[str, str] = {}
        """Folder of a Cargo.toml -> root file of its library (or program)."""
        for path in tree.configs("Cargo.toml"):
            text = tree.read_config(path)
            package, library = _PACKAGE.search(text), _LIB.search(text)
            folder = folder_of(path)
            stated = _PATH.search(library[1]) if library else None
            candidates = [f"{folder}/{stated[1]}"] if stated else []
            candidates += [f"{folder}/src/lib.rs", f"{folder}/src/main.rs"]
            root = next((one.lstrip("/") for one in candidates if one.lstrip("/") in tree), None)
            if root is None:
                continue
            self.homes[folder] = root
            for section in (library, package):
                name = _NAME.search(section[1]) if section else None
                if name:
                    self.crates.setdefault(name[1].replace("-", "_"), root)

    def resolve(self, source: str, module: str, names: Names, used: bytes) -> Targets:
        if module.startswith("mod "):
            target = self.child(source, module[4:])
            return [(target, [])] if target else []
        parts = [part for part in module.split("::") if part]
        if not parts:
            return []
        targets: dict[str, list[str]] = {}
        for name, _ in names or [("", "")]:
            target = self.walk(source, [*parts, name] if name not in ("", "*", "self") and name != parts[-1] else parts)
            if target:  # an inline module's `super` is the file itself
                targets.setdefault(target, []).append(name)
        return [(target, [name for name in taken if name]) for target, taken in targets.items()]

    def walk(self, source: str, parts: list[str]) -> str | None:
        """As deep as modules go; the rest are items of the last one."""
        head, rest = parts[0], parts[1:]
        here: str | None
        if head == "crate":
            here = self.root_of(source)
        elif head == "self":
            here = source
        elif head == "super":
            here = self.parent(source)
            while rest and rest[0] == "super" and here is not None:
                here, rest = self.parent(here), rest[1:]
        elif head in self.crates and not self.child(source, head):
            here = self.crates[head]
        else:
            here = self.child(source, head) or self.child(self.root_of(source) or source, head)
        while here is not None and rest:
            below = self.child(here, rest[0])
            if below is None:
                break
            here, rest = below, rest[1:]
        return here

    def root_of(self, source: str) -> str | None:
        folder = folder_of(source)
        while True:
            if folder in self.homes:
                home = self.homes[folder]
                for special in ("tests", "benches", "examples", "src/bin"):
                    inside = f"{folder}/{special}/".lstrip("/")
                    if source.startswith(inside):
                        return source if "/" not in source[len(inside) :] else home
                return home
            if not folder:
                return None
            folder = folder_of(folder)

    def child(self, source: str, name: str) -> str | None:
        folder, file = folder_of(source), source.rpartition("/")[2]
        inner = folder if file in ("mod.rs", "lib.rs", "main.rs") else source.removesuffix(".rs")
        bases = [inner]
        if file not in ("mod.rs", "lib.rs", "main.rs") and folder.endswith(("/bin", "/tests", "/examples", "/benches")):
            bases.append(folder)
        name = name.removeprefix("r#")
        for base in bases:
            for candidate in (f"{base}/{name}.rs", f"{base}/{name}/mod.rs"):
                if candidate.lstrip("/") in self.tree:
                    return candidate.lstrip("/")
        return None

    def parent(self, source: str) -> str | None:
        folder, file = folder_of(source), source.rpartition("/")[2]
        if file in ("lib.rs", "main.rs"):
            return source
        above = folder_of(folder) if file == "mod.rs" else folder
        owner = folder if file != "mod.rs" else folder_of(folder)
        for candidate in (f"{owner}/mod.rs", f"{owner}.rs", f"{above}/lib.rs", f"{above}/main.rs"):
            if candidate.lstrip("/") in self.tree and candidate.lstrip("/") != source:
                return candidate.lstrip("/")
        return None
