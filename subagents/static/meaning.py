"""Whether a name in the text means a definition, and whether two uses of a field mean the same field.

A name that several unrelated definitions share proves nothing by itself. What is said of hand-overs, tables and
callbacks is said only when an import, the type of the receiver, the enclosing class, or the name being alone of its
kind in the snapshot decides it; where nothing decides, the answer is no.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from subagents.codebase.types import CodeIndex, Reference, Symbol, TextMatch
from subagents.static.roles import path_role
from subagents.static.source import Sources, is_write

_TYPES = frozenset({"class", "struct", "interface", "trait", "enum", "type"})
_FUNCTIONS = frozenset({"function", "method", "constructor", "macro", "property"})
_SELF = ("self", "this", "cls")
_NO_TYPES = frozenset({"return", "else", "const", "mut", "let", "var", "new", "in", "and", "or", "not", "if", "case"})
_FIELD_USE = r"((?:[A-Za-z_]\w*(?:\.|->))*[A-Za-z_]\w*)(?:\[[^\]]*\])?(?:\.|->){name}\b"


class Meaning:
    """Decides by the index and the text; remembers what it found."""

    def __init__(
        self, index: CodeIndex, sources: Sources, lines: Callable[[str], Sequence[TextMatch]] = lambda pattern: ()
    ) -> None:
        """`lines` finds the lines of code that match a pattern."""
        self._lines = lines
        self._written: dict[str, list[tuple[Symbol, str]]] = {}
        self._index = index
        self._sources = sources
        self._families: dict[Symbol, frozenset[str]] = {}
        self._owners: dict[str, frozenset[str]] = {}
        self._alone: dict[str, bool] = {}

    def alone(self, name: str) -> bool:
        """Whether at most one definition in code has this simple name."""
        if name not in self._alone:
            found = [
                s
                for s in self._index.definitions(name, limit=20)
                if s.name == name and path_role(s.path) == "code" and not (s.start == s.end and s.path.endswith(".h"))
            ]
            self._alone[name] = len({(s.path, s.qualified) for s in found}) <= 1
        return self._alone[name]

    def hands_on(self, reference: Reference, row: str, symbol: Symbol) -> bool:
        """Whether this use names `symbol` itself as a value, without calling it."""
        if reference.kind in ("call", "import", "inherit", "decorator"):
            return False
        around = self._index.symbol_at(reference.path, reference.line)
        owner = symbol.qualified.rpartition(".")[0]
        receiver = reference.receiver
        if owner and not self._inside(symbol):
            if receiver in _SELF:
                return around is not None and reference.path == symbol.path and around.qualified.startswith(owner + ".")
            return bool(receiver) and (receiver == owner or self.alone(symbol.name))
        if around != symbol and self._is_local(symbol.name, around):
            return False
        if reference.path == symbol.path:
            return not receiver
        if re.search(rf"\b{re.escape(symbol.name)}\s*[:=](?!=)", row) and not self.alone(symbol.name):
            return False
        return self.alone(symbol.name) or self.reaches(reference.path, symbol, receiver)

    def reaches(self, path: str, symbol: Symbol, receiver: str = "") -> bool:
        """Whether a bare name in this file, or one behind a module, means this top-level definition."""
        if path == symbol.path and not receiver:
            return "." not in symbol.qualified
        return any(
            edge.target == symbol.path
            and (symbol.name in edge.names or (bool(receiver) and receiver.rpartition(".")[2] in edge.module))
            for edge in self._index.imports(path)
        )

    def _inside(self, symbol: Symbol) -> bool:
        """Whether a definition stands inside a function: known there only."""
        owner = symbol.qualified.rpartition(".")[0]
        return any(s.qualified == owner and s.kind in _FUNCTIONS for s in self._index.symbols(symbol.path))

    def _is_local(self, name: str, around: Symbol | None) -> bool:
        """Whether the function around a use has a parameter or variable of this name."""
        if around is None or around.kind not in _FUNCTIONS:
            return False
        quoted = re.escape(name)
        if re.search(rf"[(,]\s*(?:[\w<>]+\s+)*[&*]*{quoted}\s*[,:=)]", around.signature):
            return True
        local = re.compile(
            rf"^\s*(?:(?:let|var|const|mut|for|auto)\s+)*{quoted}\s*(?:,|:?=(?!=)|in\b|:\s)|\bas {quoted}\b"
        )
        return any(local.search(row) for _, row in self._sources.code(around, limit=200)[1:])

    def same_field(self, name: str, one: tuple[Symbol, str], other: tuple[Symbol, str]) -> bool:
        """Whether `name` in a line of one function and in a line of another is a field of the same type.

        By the types of both receivers, else because only one family of types in the snapshot has such a field, or only
        one function puts something into it.
        """
        first, second = self._receiver_type(name, *one), self._receiver_type(name, *other)
        if first and second:
            return first == second or self._related(first, second)
        owners = self.owners(name)
        if not owners:
            return len({around for around, _ in self._writers(name)}) == 1
        if not self._one_family(owners):
            return False
        return all(
            not known or known in owners or any(self._related(known, o) for o in owners) for known in (first, second)
        )

    def same_table(self, name: str, read: tuple[Symbol, str], written: tuple[Symbol, str]) -> bool:
        """The same for a table that may also be a bare name: of one file, or the only one of its name."""
        if not re.search(rf"(?:\.|->|::){re.escape(name)}\b", written[1]):
            known = [s for s in self._index.definitions(name, limit=20) if s.qualified == name]
            around = written[0]
            if not known or self._is_local(name, around) or not self.alone(name):
                return False
            return all(s.path in (around.path, read[0].path) for s in known)
        return self.same_field(name, read, written)

    def owners(self, name: str) -> frozenset[str]:
        """Simple names of the types that have a field of this name: declared, or put something into."""
        if name not in self._owners:
            found = set()
            for field in self._index.definitions(name, limit=60):
                owner = field.qualified.rpartition(".")[0]
                if field.name == name and owner and path_role(field.path) == "code":
                    found.add(owner.rpartition(".")[2])
            for around, row in self._writers(name):
                owner = self._receiver_type(name, around, row)
                if owner:
                    found.add(owner)
            self._owners[name] = frozenset(found)
        return self._owners[name]

    def _writers(self, name: str) -> list[tuple[Symbol, str]]:
        """Functions of code that put something into a field of this name, with the line."""
        if name not in self._written:
            found = []
            for match in self._lines(rf"(\.|->){re.escape(name)}\b"):
                around = self._index.symbol_at(match.path, match.line)
                if around is not None and around.kind in _FUNCTIONS and is_write(match.text, name):
                    found.append((around, match.text))
            self._written[name] = found
        return self._written[name]

    def _one_family(self, owners: Iterable[str]) -> bool:
        first, *others = sorted(owners)
        return all(self._related(first, other) for other in others)

    def _related(self, first: str, second: str) -> bool:
        """Whether two types are the same or have an ancestor, within the snapshot, in common."""
        return first == second or bool(self._family(first) & self._family(second))

    def _family(self, name: str) -> frozenset[str]:
        """A type and what it is derived from, as simple names."""
        found: set[str] = {name}
        for symbol in self._index.definitions(name, limit=6):
            if symbol.kind not in _TYPES or symbol.name != name or path_role(symbol.path) != "code":
                continue
            if symbol not in self._families:
                seen = {symbol}
                waiting = [symbol]
                while waiting and len(seen) < 40:
                    for base in self._index.bases(waiting.pop()):
                        if base not in seen:
                            seen.add(base)
                            waiting.append(base)
                self._families[symbol] = frozenset(s.name for s in seen)
            found |= self._families[symbol]
        return frozenset(found)

    def _receiver_type(self, name: str, function: Symbol, row: str) -> str:
        """The simple name of the type whose field is meant, or nothing where the text does not say."""
        used = re.search(_FIELD_USE.replace("{name}", re.escape(name)), row)
        if used is None:
            return ""
        receiver = used.group(1)
        if receiver in _SELF:
            return function.qualified.rpartition(".")[0].rpartition(".")[2]
        if not receiver.isidentifier():
            return ""
        quoted = re.escape(receiver)
        text = self._sources.text(function.path)
        head = text.lines[function.start - 1 : min(function.end, function.start + 8)] if text else ()
        declared = " ".join((function.signature, *head))
        if function.path.endswith((".c", ".h", ".cc", ".cpp", ".hpp", ".java", ".cs")):
            found = re.search(rf"\b([A-Za-z_]\w*)\s*[*&]*\s*\b{quoted}\s*[,;=)]", declared)
        elif function.path.endswith(".go"):
            found = re.search(rf"[(,]\s*{quoted}\s+[*]?(?:\w+\.)?([A-Za-z_]\w*)", declared)
        else:
            found = re.search(
                rf"\b{quoted}\s*:\s*&?(?:mut )?[\"']?(?:[\w]+(?:\.|::))*([A-Za-z_]\w*)[\"']?\s*[,)=]", declared
            )
        return found.group(1) if found and found.group(1) not in _NO_TYPES else ""
