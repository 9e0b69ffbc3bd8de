"""Lines that name something without calling it: no index of calls holds them, and they forbid to say "unused".

A function handed over (`url_for=self.url_for`), a key written as a string (`config["SECRET_KEY"]`), a field that is
read, a name used by a template: each is a use. They are found in the text, and told apart from comments, log messages,
definitions and namesakes by how the name stands in its line.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from subagents.codebase.types import CodeIndex, Symbol
from subagents.static.callgraph import FUNCTION_KINDS, TYPE_KINDS
from subagents.static.grep import Grep
from subagents.static.roles import is_prose, path_role
from subagents.static.source import Sources, is_write

Form = Literal["string", "value", "attribute", "call", "keyword", "set"]

MAX_LINES = 600
_USEFUL: tuple[Form, ...] = ("attribute", "value", "call", "string", "set", "keyword")
_PLAIN = re.compile(r"[A-Za-z_]\w*")
_IMPORT = re.compile(r"^\s*(from\s+\S+\s+import\b|import\b|use\s|pub use\s|#\s*include\b|export\s.*\bfrom\b|require\b)")
_NAMES_ONLY = re.compile(r"[\w\s,:{}*]+[;)]?\s*(#.*|//.*)?")
MAX_IMPORT_LINES = 80
_SELF = frozenset({"self", "this", "cls", "Self"})
_HASH_COMMENTS = (".py", ".pyi", ".rb", ".sh", ".bash", ".toml", ".yml", ".yaml", ".cfg", ".conf", ".ini", ".tcl")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """One line; `receiver` is what stands before the dot of an attribute."""

    path: str
    line: int
    text: str
    form: Form
    receiver: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mentions:
    """`cut` or `timed_out` forbid to conclude anything from what is not here."""

    found: tuple[Mention, ...]
    complete: bool
    imported: bool = False
    """Whether some line imports the name."""
    defined: tuple[str, int] | None = None
    """A line of code that reads like its definition and is none in the index (inside a macro, say)."""


def mentions_of(name: str, index: CodeIndex, sources: Sources, grep: Grep, paths: Sequence[str]) -> Mentions:
    """Every line of code that names it, in path order; definitions of the name, comments and prose left out."""
    if not _PLAIN.fullmatch(name):
        return Mentions(found=(), complete=False)
    before = len(grep.timed_out)
    lines = grep.lines(rf"\b{name}\b", [p for p in paths if not is_prose(p)], limit=MAX_LINES)
    complete = len(lines) < MAX_LINES and len(grep.timed_out) == before
    found = []
    imported = False
    definitions: list[tuple[str, int]] = []
    definition = re.compile(
        rf"\b(struct|class|enum|trait|interface|union|fn|def|func|function|type|const|static|define|macro_rules!)\s+{name}\b"
    )
    for match in lines:
        row = sources.line(match.path, match.line) or match.text
        imported = imported or _IMPORT.match(row) is not None
        if _IMPORT.match(row) or match.line not in sources.code_numbers(match.path):
            continue
        if _defines(index, match.path, match.line, name):
            continue
        if path_role(match.path) == "code" and definition.search(row):
            definitions.append((match.path, match.line))
        if _in_import(index, match.path, match.line, row, name):
            imported = True
            continue
        mention = _read(match.path, match.line, row, name)
        if mention is not None:
            found.append(mention)
    crowd = Counter(mention.path for mention in found)  # of several the one in the file that is most about it
    defined = min(definitions, key=lambda at: (-crowd[at[0]], at), default=None)
    return Mentions(found=tuple(found), complete=complete, imported=imported, defined=defined)


def uses_of(symbol: Symbol, mentions: Mentions, index: CodeIndex, sources: Sources) -> Iterator[Mention]:
    """Those that mean this definition: by receiver, by file, by import, or because there is no other of the name."""
    rivals = [
        s
        for s in index.definitions(symbol.name, limit=20)
        if s.name == symbol.name and (s.path, s.start) != (symbol.path, symbol.start) and path_role(s.path) == "code"
    ]
    owner = symbol.qualified.rpartition(".")[0]
    telling = re.search(r"_|[a-z][A-Z]|\d", symbol.name) is not None
    for mention in mentions.found:
        if mention.path == symbol.path and symbol.start <= mention.line <= symbol.end and symbol.kind in FUNCTION_KINDS:
            continue
        if index.language(mention.path) in (None, "text", "html", "jinja") and mention.form == "call":
            if not rivals or not owner:
                yield mention
            continue
        if mention.form == "string":
            if telling and not rivals and path_role(mention.path) != "config":
                yield mention
            continue
        if symbol.kind in TYPE_KINDS:
            if (
                mention.form not in ("keyword", "set")
                and telling
                and (not rivals or _near(index, mention.path, symbol))
            ):
                yield mention
            continue
        if mention.form in ("call", "keyword"):
            continue
        if mention.form == "set" and symbol.kind in FUNCTION_KINDS:
            continue
        if mention.form == "attribute":
            around = index.symbol_at(mention.path, mention.line)
            inside = around is not None and owner and around.qualified.startswith(owner + ".")
            if mention.receiver in _SELF:
                if inside and mention.path == symbol.path:
                    yield mention
            elif owner and not rivals and (telling or symbol.kind not in FUNCTION_KINDS):
                yield mention
            continue
        if owner and symbol.kind in FUNCTION_KINDS:
            continue
        if _near(index, mention.path, symbol) and not _shadowed(mention, symbol.name, index, sources):
            yield mention


def _read(path: str, line: int, row: str, name: str) -> Mention | None:
    """How the name stands in its line, where it does so as most of a use."""
    ways: list[Mention] = []
    for at in re.finditer(rf"\b{name}\b", row):
        state = _state(row, at.start(), path)
        if state == "comment":
            break
        before, after = row[: at.start()], row[at.end() :]
        if state:
            if before.endswith(state) and after.startswith(state):
                ways.append(Mention(path=path, line=line, text=row, form="string"))
            continue
        receiver = re.search(r"([\w)\]]+)\s*(\.|->|::)\s*$", before)
        form: Form
        if re.match(r"\s*(::<[^>]*>)?!?\(", after):
            form = "call"
        elif is_write(row, name) and re.match(r"\s*(:[^=]{1,60})?\s*(=(?![=>])|:=|\+=)", after):
            form = "keyword" if _open(before) and not receiver else "set"
        elif receiver:
            form = "attribute"
        elif re.match(r"\s*=(?![=>])", after):
            form = "keyword"
        elif re.match(r"\s*:(?!:)", after) and not re.search(r"[?]", before):
            form = "set"
        else:
            form = "value"
        ways.append(Mention(path=path, line=line, text=row, form=form, receiver=receiver.group(1) if receiver else ""))
    return min(ways, key=lambda way: _USEFUL.index(way.form), default=None)


def _open(before: str) -> bool:
    return before.count("(") > before.count(")") or not before.strip()


def _state(row: str, end: int, path: str) -> str:
    """`comment`, the quote that is open at this place, or nothing."""
    quote = ""
    at = 0
    while at < end:
        here = row[at]
        if quote:
            if here == "\\":
                at += 1
            elif here == quote:
                quote = ""
        elif here in "\"'`":
            lifetime = here == "'" and path.endswith(".rs") and not re.match(r"'(\\.|[^\\])'", row[at:])
            quote = "" if lifetime else here
        elif _comment_starts(row, at, path):
            return "comment"
        at += 1
    return quote


def _comment_starts(row: str, at: int, path: str) -> bool:
    if path.endswith(_HASH_COMMENTS):
        return row[at] == "#" and (at == 0 or row[at - 1].isspace())
    return row.startswith("//", at)


def _defines(index: CodeIndex, path: str, line: int, name: str) -> bool:
    return any(s.name == name and s.start <= line <= s.start + 1 and line <= s.end for s in index.symbols(path))


def _in_import(index: CodeIndex, path: str, line: int, row: str, name: str) -> bool:
    """A line of an import that goes over several lines."""
    return _NAMES_ONLY.fullmatch(row) is not None and any(
        edge.line <= line <= edge.line + MAX_IMPORT_LINES and name in {n.rpartition(".")[2] for n in edge.names}
        for edge in index.imports(path)
    )


def _near(index: CodeIndex, path: str, symbol: Symbol) -> bool:
    return path == symbol.path or _imports(index, path, symbol)


def _imports(index: CodeIndex, path: str, symbol: Symbol) -> bool:
    return any(
        symbol.name in {name.rpartition(".")[2] for name in edge.names}
        for edge in index.imports(path)
        if edge.target == symbol.path
    )


def _shadowed(mention: Mention, name: str, index: CodeIndex, sources: Sources) -> bool:
    """Whether the function around the line has a variable or parameter of this name."""
    around = index.symbol_at(mention.path, mention.line)
    if around is None or around.kind not in FUNCTION_KINDS:
        return False
    return any(
        re.search(rf"(?<![\w.]){name}\s*(:[^=]{{1,40}})?=(?!=)|(?<![\w.]){name}\s*:=|\bfor {name}\b", row)
        or (number <= around.start + 6 and re.search(rf"[(,]\s*[&*]?{name}\s*[,:)=]", row) and number < mention.line)
        for number, row in sources.code(around, limit=250)
        if number != mention.line
    )
