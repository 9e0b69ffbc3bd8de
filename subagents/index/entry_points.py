"""Where execution begins: declared commands, main functions, and what containers start."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from subagents.codebase.textfile import is_test_path
from subagents.codebase.types import CannotRead, Snapshot
from subagents.index.code_index import StoredIndex

EntryKind = Literal["command", "main", "script", "container", "web"]

_MOST: Final = 40
_MAIN_LANGUAGES: Final = frozenset({"go", "rust", "c", "cpp", "java", "kotlin", "c_sharp", "swift", "scala"})
_ASIDE: Final = re.compile(
    r"(?:^|/)(?:examples?|samples?|demos?|benchmarks?|benches|docs?|fuzz|contrib|tools|scripts|hack)/"
)
_RUST_PROGRAM: Final = re.compile(r"(?:^|/)main\.rs$|(?:^|/)(?:bin|examples)/[^/]+\.rs$")
_SETUP_SCRIPT: Final = re.compile(r"""["']\s*([\w.-]+)\s*=\s*([\w.]+:[\w.]+)""")


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryPoint:
    """`target` is what is run, as declared (`package.module:function`, a program's path), or empty."""

    name: str
    kind: EntryKind
    path: str
    line: int
    target: str = ""


def entry_points(snapshot: Snapshot, index: StoredIndex) -> tuple[EntryPoint, ...]:
    """Declared commands first, then main functions, then scripts; those of tests and examples last."""
    found = [*_declared(snapshot, index), *_mains(index), *_scripts(snapshot, index)]
    order = {"command": 0, "container": 1, "main": 2, "web": 3, "script": 4}
    unique = {(entry.path, entry.line, entry.name): entry for entry in found}
    ranked = sorted(
        unique.values(),
        key=lambda entry: (
            is_test_path(entry.path) or bool(_ASIDE.search(entry.path)),
            order[entry.kind],
            entry.path.count("/"),
            entry.path,
            entry.line,
        ),
    )
    return tuple(ranked[:_MOST])


def _lines(snapshot: Snapshot, path: str) -> Sequence[str]:
    try:
        return snapshot.text(path).lines
    except (CannotRead, KeyError):
        return ()


def _line_of(lines: Sequence[str], *words: str) -> int:
    """The first line that holds all words, from 1; 1 when there is none."""
    return next((number for number, line in enumerate(lines, 1) if all(word in line for word in words)), 1)


def _declared(snapshot: Snapshot, index: StoredIndex) -> Iterator[EntryPoint]:
    readers = {
        "pyproject.toml": _from_pyproject,
        "setup.cfg": _from_setup,
        "setup.py": _from_setup,
        "package.json": _from_package_json,
        "Cargo.toml": _from_cargo,
        "Dockerfile": _from_dockerfile,
        "Containerfile": _from_dockerfile,
        "Procfile": _from_procfile,
    }
    for path in snapshot.files():
        reader = readers.get(path.rpartition("/")[2])
        if reader is not None and path.count("/") <= 4:
            yield from reader(path, _lines(snapshot, path))


def _from_pyproject(path: str, lines: Sequence[str]) -> Iterator[EntryPoint]:
    try:
        document: dict[str, Any] = tomllib.loads("\n".join(lines))
    except tomllib.TOMLDecodeError:
        return
    project, tool = document.get("project"), document.get("tool")
    poetry = tool.get("poetry") if isinstance(tool, dict) else None
    for holder in (project, poetry):
        for key in ("scripts", "gui-scripts"):
            scripts = holder.get(key) if isinstance(holder, dict) else None
            for name, target in scripts.items() if isinstance(scripts, dict) else ():
                if isinstance(target, str):
                    line = _line_of(lines, name, target)
                    yield EntryPoint(name=str(name), kind="command", path=path, line=line, target=target)


def _from_setup(path: str, lines: Sequence[str]) -> Iterator[EntryPoint]:
    text = "\n".join(lines)
    if "console_scripts" not in text:
        return
    if path.endswith(".py"):
        found = _SETUP_SCRIPT.findall(text)
    else:
        section = text.partition("console_scripts")[2]
        found = re.findall(r"^\s+([\w.-]+)\s*=\s*([\w.]+:[\w.]+)", section, re.MULTILINE)
    for name, target in found:
        yield EntryPoint(name=name, kind="command", path=path, line=_line_of(lines, name, target), target=target)


def _from_package_json(path: str, lines: Sequence[str]) -> Iterator[EntryPoint]:
    try:
        manifest = json.loads("\n".join(lines))
    except (ValueError, RecursionError):
        return
    if not isinstance(manifest, dict):
        return
    programs = manifest.get("bin")
    if isinstance(programs, str):
        programs = {str(manifest.get("name", "bin")): programs}
    for name, target in programs.items() if isinstance(programs, dict) else ():
        line = _line_of(lines, str(target))
        yield EntryPoint(name=str(name), kind="command", path=path, line=line, target=str(target))
    scripts = manifest.get("scripts")
    start = scripts.get("start") if isinstance(scripts, dict) else None
    if isinstance(start, str):
        yield EntryPoint(name="start", kind="command", path=path, line=_line_of(lines, '"start"'), target=start)


def _from_cargo(path: str, lines: Sequence[str]) -> Iterator[EntryPoint]:
    try:
        programs = tomllib.loads("\n".join(lines)).get("bin")
    except tomllib.TOMLDecodeError:
        return
    for program in programs if isinstance(programs, list) else ():
        if isinstance(program, dict) and isinstance(program.get("name"), str):
            name = program["name"]
            line = _line_of(lines, f'"{name}"')
            yield EntryPoint(name=name, kind="command", path=path, line=line, target=str(program.get("path", "")))


def _from_dockerfile(path: str, lines: Sequence[str]) -> Iterator[EntryPoint]:
    for number, line in enumerate(lines, 1):
        word, _, rest = line.strip().partition(" ")
        if word.upper() in ("ENTRYPOINT", "CMD") and rest:
            yield EntryPoint(name=word.upper(), kind="container", path=path, line=number, target=rest.strip()[:120])


def _from_procfile(path: str, lines: Sequence[str]) -> Iterator[EntryPoint]:
    for number, line in enumerate(lines, 1):
        name, colon, rest = line.partition(":")
        if colon and rest.strip():
            yield EntryPoint(name=name.strip(), kind="container", path=path, line=number, target=rest.strip()[:120])


def _mains(index: StoredIndex) -> Iterator[EntryPoint]:
    for symbol in index.definitions("main", limit=400):
        view = index.view(symbol.path)
        if view is None or view.language not in _MAIN_LANGUAGES or symbol.kind not in ("function", "method"):
            continue
        if view.language == "go" and view.package != "main":
            continue
        if view.language in ("go", "rust", "c", "cpp") and "." in symbol.qualified:
            continue
        if view.language == "rust" and not _RUST_PROGRAM.search(symbol.path):
            continue
        name = _program_name(symbol.path)
        yield EntryPoint(name=name, kind="main", path=symbol.path, line=symbol.start, target=symbol.qualified)


def _program_name(path: str) -> str:
    folder, _, file = path.rpartition("/")
    stem = file.partition(".")[0]
    if stem not in ("main", "Main", "Program", "mod", "app"):
        return stem
    parts = [part for part in folder.split("/") if part not in ("src", "main", "")]
    return parts[-1] if parts else stem


def _scripts(snapshot: Snapshot, index: StoredIndex) -> Iterator[EntryPoint]:
    """Python: `__main__.py`, and files that ask at their top level whether they are `__main__`."""
    for reference in index.references("__name__", limit=400):
        lines = _lines(snapshot, reference.path) if not reference.inside else ()
        if "__main__" not in "".join(lines[reference.line - 1 : reference.line]):
            continue
        name = reference.path.rpartition("/")[2]
        yield EntryPoint(name=name, kind="script", path=reference.path, line=reference.line)
    for path in index.paths():
        if path.endswith("__main__.py"):
            yield EntryPoint(name=f"python -m {_module(path)}", kind="main", path=path, line=1)


def _module(path: str) -> str:
    parts = path.split("/")[:-1]
    for root in ("src", "lib"):
        if root in parts:
            parts = parts[parts.index(root) + 1 :]
    return ".".join(parts) or "."
