"""What "X" is in "where is X", "what depends on X": a definition, a file, a folder, or a name that is only written.

The last is a key of a configuration, an environment variable, an event: code names it in strings and defines it nowhere
(what tests or examples define under the name is no definition of it).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from subagents.codebase.types import CodeIndex, Finder, Symbol
from subagents.static.callgraph import TYPE_KINDS, is_declaration
from subagents.static.question import Question
from subagents.static.relevance import name_words, term_match
from subagents.static.roles import path_role

TargetKind = Literal["symbol", "file", "package", "name"]

Written = Callable[[str], tuple[str, ...]]
"""Files of code that write this very name as a string or key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """`files` are the paths it consists of (one for a symbol; those that write it, for a name); `exact` says that the
    question names it."""

    kind: TargetKind
    name: str
    files: tuple[str, ...]
    symbol: Symbol | None = None
    exact: bool = True


def resolve(
    question: Question, index: CodeIndex, finder: Finder, written: Written = lambda name: (), limit: int = 5
) -> list[Target]:
    """Most likely first. Names written as code are taken at their word; words only when names fail."""
    paths = index.paths()
    found: dict[tuple[str, str, int], Target] = {}

    def keep(targets: Iterator[Target]) -> None:
        for target in targets:
            line = target.symbol.start if target.symbol else 0
            found.setdefault((target.kind, target.files[0] if target.files else target.name, line), target)

    for name in question.paths:
        keep(_by_path(name, paths))
    for name in question.identifiers:
        keep(_by_name(name, index, paths, written))
    if not found:
        for name in question.proper:
            keep(_by_name(name, index, paths))
    if not found:
        keep(_by_words(question, index, finder, paths, written))
    return _as_said(question, list(found.values()))[:limit]


def _as_said(question: Question, found: list[Target]) -> list[Target]:
    """A question that says "the render package" is not about the type `Render`, and the other way round."""
    if re.search(r"\b(package|module|folder|directory|crate|subpackage|namespace)\b", question.text, re.IGNORECASE):
        return [t for t in found if t.symbol is None] or found
    if re.search(r"\b(class|type|interface|struct|trait|function|method|macro)\b", question.text, re.IGNORECASE):
        return [t for t in found if t.symbol is not None] or found
    return found


def _by_path(name: str, paths: Sequence[str]) -> Iterator[Target]:
    folder = name.rstrip("/")
    if folder in paths:
        yield Target(kind="file", name=folder, files=(folder,))
        return
    inside = tuple(p for p in paths if p.startswith(folder + "/"))
    if not inside:
        inside_anywhere = tuple(p for p in paths if f"/{folder}/" in "/" + p)
        ends = tuple(p for p in paths if p.endswith("/" + folder))
        if ends:
            for path in sorted(ends, key=_preference)[:3]:
                yield Target(kind="file", name=path, files=(path,))
            return
        inside = inside_anywhere
    if inside:
        yield Target(kind="package", name=_common_folder(inside, folder), files=inside)


def _by_name(name: str, index: CodeIndex, paths: Sequence[str], written: Written = lambda name: ()) -> Iterator[Target]:
    definitions = sorted(index.definitions(name, limit=50), key=lambda s: _symbol_preference(s, name))
    exact = [s for s in definitions if s.name == name or s.qualified == name or s.qualified.endswith("." + name)]
    exact = _without_declarations(exact)
    in_code = [s for s in exact if path_role(s.path) == "code"]
    modules = list(_by_module(name, paths))
    if not in_code and not modules:
        files = written(name)
        if files:
            yield Target(kind="name", name=name, files=files)
    for symbol in (in_code or exact or definitions)[:4]:
        yield Target(kind="symbol", name=symbol.qualified, files=(symbol.path,), symbol=symbol)
    if in_code:  # a name may be a folder's too
        yield from (m for m in modules if m.kind == "package" and m.name.rpartition("/")[2] == name)
        return
    yield from modules
    if not definitions and not modules and "." in name:
        owner, _, last = name.rpartition(".")
        for module in list(_by_module(owner, paths))[:1]:
            for symbol in index.definitions(last, limit=20):
                if symbol.path in module.files:
                    yield Target(kind="symbol", name=symbol.qualified, files=(symbol.path,), symbol=symbol)


def _without_declarations(found: Sequence[Symbol]) -> list[Symbol]:
    """A prototype in a header is the same thing as the definition with a body."""
    bodies = {s.name for s in found if not _declares(s)}
    return [s for s in found if s.name not in bodies or not _declares(s)]


def _declares(symbol: Symbol) -> bool:
    return is_declaration(symbol) or (
        symbol.kind == "function" and symbol.start == symbol.end and symbol.signature.rstrip().endswith(";")
    )


def _by_module(name: str, paths: Sequence[str]) -> Iterator[Target]:
    folder = name.replace(".", "/").strip("/")
    if not folder:
        return
    files = [p for p in paths if _without_suffix(p) == folder or _without_suffix(p).endswith("/" + folder)]
    files = [p for p in files if path_role(p) == "code"] or files
    inside = tuple(p for p in paths if p.startswith(folder + "/") or f"/{folder}/" in p)
    if inside and (len(inside) > 1 or not files):
        yield Target(kind="package", name=_common_folder(inside, folder), files=inside)
    for path in sorted(files, key=_preference)[:2]:
        yield Target(kind="file", name=path, files=(path,))


def _by_words(
    question: Question, index: CodeIndex, finder: Finder, paths: Sequence[str], written: Written = lambda name: ()
) -> Iterator[Target]:
    strong = question.strong_terms
    if not strong:
        return
    joined = "".join(strong)
    pairs = ["".join(part.capitalize() for part in pair) for pair in question.pairs]
    for word in dict.fromkeys((joined, *pairs, *strong)):
        exact = word in (joined, *pairs)
        named: list[Target] = []
        for spelled in dict.fromkeys((word, word[:1].upper() + word[1:], word.upper())):
            for symbol in sorted(index.definitions(spelled, limit=10), key=lambda s: _symbol_preference(s, spelled))[
                :2
            ]:
                if path_role(symbol.path) == "code" and symbol.kind in TYPE_KINDS | {"function", "constant", "macro"}:
                    one = Target(kind="symbol", name=symbol.qualified, files=(symbol.path,), symbol=symbol, exact=exact)
                    named.append(one)
        modules = [replace(target, exact=exact) for target in _by_module(word, paths)]
        as_written = [t for t in named if t.symbol is not None and t.symbol.name == word]
        if not named and word == joined and not any(path_role(t.files[0]) == "code" for t in modules):
            yield from _spelled(word, index, written)
        # The name in the case of the question comes before what differs in case: package `render`, then type `Render`.
        yield from as_written
        yield from modules if not as_written else ()
        yield from (t for t in named if t not in as_written)
        yield from modules if as_written else ()
    for hit in finder.find_symbols(question.search_text, limit=10):
        words = name_words(hit.symbol.qualified)
        if path_role(hit.symbol.path) == "code" and all(
            max((term_match(term, word) for word in words), default=0) >= 0.6 for term in strong
        ):
            yield Target(
                kind="symbol", name=hit.symbol.qualified, files=(hit.symbol.path,), symbol=hit.symbol, exact=False
            )


def _spelled(word: str, index: CodeIndex, written: Written) -> Iterator[Target]:
    """The only word of a question as it stands: a field or variable of code called so, or a key that code writes."""
    for symbol in sorted(index.definitions(word, limit=20), key=lambda s: _symbol_preference(s, word))[:1]:
        if symbol.name == word and path_role(symbol.path) == "code":
            yield Target(kind="symbol", name=symbol.qualified, files=(symbol.path,), symbol=symbol)
            return
    files = written(word)
    if files:
        yield Target(kind="name", name=word, files=files)


def _without_suffix(path: str) -> str:
    folder, _, name = path.rpartition("/")
    stem = name.rpartition(".")[0] or name
    if stem in ("__init__", "mod", "lib", "index"):
        return folder
    return f"{folder}/{stem}" if folder else stem


def _common_folder(files: Sequence[str], asked: str) -> str:
    """The folder as it stands in the snapshot: the shortest prefix that ends in what was asked for."""
    for path in sorted(files, key=_preference):
        at = ("/" + path).find(f"/{asked}/")
        if at >= 0:
            return path[: at + len(asked)]
    return asked


def _preference(path: str) -> tuple[int, int, str]:
    return (("code", "config", "docs", "example", "test", "vendored").index(path_role(path)), path.count("/"), path)


def _symbol_preference(symbol: Symbol, name: str) -> tuple[int, int, int, int, int, str, int]:
    """Code before tests; a body before mentions; types before functions before fields; members last."""
    exact = 0 if symbol.qualified == name or symbol.name == name else 1
    ranks = {"module": 4, "field": 3, "variable": 3, "property": 2}
    kind = 0 if symbol.kind in TYPE_KINDS else ranks.get(symbol.kind, 1)
    header = 1 if symbol.end == symbol.start and symbol.path.endswith((".h", ".hpp", ".pyi", ".d.ts")) else 0
    depth = symbol.qualified.count(".") - name.count(".")
    return (_preference(symbol.path)[0], exact, header, kind, depth, symbol.path, symbol.start)
