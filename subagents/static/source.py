"""Lines of code read without a grammar: guards around a line, early returns, handlers, writes to a name.

The index knows definitions and references. What decides whether a call happens (an `if` around it, a handler below it)
is read here from indentation and leading keywords, which holds for formatted code in every language the index knows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from subagents.codebase.types import CannotRead, Skipped, Snapshot, Symbol, TextFile

GuardKind = Literal["condition", "otherwise", "loop", "handler", "cleanup", "choice"]
ExitKind = Literal["return", "raise", "handler"]

_GUARD = re.compile(
    r"^[}\s)]*(?P<word>if|elif|elsif|else if|else|unless|for|while|loop|foreach|until|except|catch|rescue|finally|"
    r"ensure|switch|match|case|when|select|defer)\b(?P<rest>.*)$"
)
_GUARD_KINDS: dict[str, GuardKind] = {
    "if": "condition", "elif": "condition", "elsif": "condition", "else if": "condition", "unless": "condition",
    "else": "otherwise", "for": "loop", "while": "loop", "loop": "loop", "foreach": "loop", "until": "loop",
    "except": "handler", "catch": "handler", "rescue": "handler", "finally": "cleanup", "ensure": "cleanup",
    "defer": "cleanup", "switch": "choice", "match": "choice", "case": "choice", "when": "choice", "select": "choice",
}  # fmt: skip
_COMMENT = re.compile(r"^\s*(#(?!\s*(if|else|elif|endif|define|include))|//|/\*|\*(\s|/|$)|--\s|;)")
_RETURN = re.compile(r"^\s*(return|goto|break|continue|yield)\b")
_EARLY_RETURN = re.compile(r"(^|[{;:)]\s*|^\s*)(return|goto)\b[^\n]*")
_RAISE = re.compile(r"(^|[{;:)]\s*|^\s*)(raise|throw|panic!?\s*\(|abort\s*\(|unreachable!|bail!)[^\n]*")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w{2,}")
_STRING_START = re.compile(r'^\s*[rRuUbBfF]{0,2}("""|\'\'\')')


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """What must hold for a line to run: `text` is the condition as written, on one line, shortened."""

    kind: GuardKind
    line: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """A line where a function leaves its straight line."""

    kind: ExitKind
    line: int
    end: int
    text: str
    guard: Guard | None


class Sources:
    """Texts of one task: read once, remembered, counted. `on_read` is told each range that is looked at."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._texts: dict[str, TextFile | None] = {}
        self._code_numbers: dict[str, frozenset[int]] = {}
        self.skipped: list[Skipped] = []

    @property
    def read(self) -> frozenset[str]:
        return frozenset(path for path, text in self._texts.items() if text is not None)

    def text(self, path: str) -> TextFile | None:
        """None when it cannot be read; the reason is in `skipped`."""
        if path not in self._texts:
            try:
                self._texts[path] = self._snapshot.text(path)
            except CannotRead as error:
                self.skipped.append(error.skipped)
                self._texts[path] = None
            except KeyError:
                self._texts[path] = None
        return self._texts[path]

    def line(self, path: str, number: int) -> str:
        text = self.text(path)
        return text.lines[number - 1] if text and 1 <= number <= len(text.lines) else ""

    def lines(self, path: str, start: int, end: int) -> list[tuple[int, str]]:
        text = self.text(path)
        if text is None:
            return []
        return [(n, text.lines[n - 1]) for n in range(max(1, start), min(end, len(text.lines)) + 1)]

    def head(self, path: str) -> tuple[str, int, int] | None:
        """The first line with something on it, as a citation; None when there is none."""
        return next(((path, n, n) for n, row in self.lines(path, 1, 400) if row.strip()), None)

    def code(self, symbol: Symbol, limit: int = 600) -> list[tuple[int, str]]:
        """Lines of a definition's body that are no comment and no doc string, signature included."""
        return list(_code_lines(self.lines(symbol.path, symbol.start, min(symbol.end, symbol.start + limit))))

    def code_numbers(self, path: str) -> frozenset[int]:
        """Lines of a file that are no comment and no doc string."""
        if path not in self._code_numbers:
            text = self.text(path)
            rows = list(enumerate(text.lines, 1)) if text else []
            self._code_numbers[path] = frozenset(number for number, _ in _code_lines(rows))
        return self._code_numbers[path]

    def identifiers(self, path: str, start: int, end: int) -> tuple[str, ...]:
        """Distinct names in the code of these lines, comments and doc strings left out."""
        found: dict[str, None] = {}
        for _, row in _code_lines(self.lines(path, start, end)):
            found.update(dict.fromkeys(_IDENTIFIER.findall(row)))
        return tuple(found)

    def guards(self, symbol: Symbol, line: int) -> list[Guard]:
        """Guards around `line` inside `symbol`, innermost first."""
        text = self.text(symbol.path)
        if text is None or not symbol.start <= line <= min(symbol.end, len(text.lines)):
            return []
        found: list[Guard] = []
        depth = indent(text.lines[line - 1])
        base = indent(text.lines[symbol.start - 1])
        inline = _guard_at(text, line, symbol.end)
        if inline and inline.kind == "condition" and re.search(r"[:{]\s*\S", text.lines[line - 1].split("(")[0]):
            found.append(inline)
        for number in range(line - 1, symbol.start, -1):
            row = text.lines[number - 1]
            if not row.strip() or (row.lstrip().startswith("#") and symbol.path.endswith((".c", ".h", ".cc", ".cpp"))):
                continue
            here = indent(row)
            if here >= depth or here < base:
                continue
            if re.match(r"^\s*[)\]}]+[\s:{,]*(->[^:{]*[:{])?\s*$", row):
                continue
            guard = _guard_at(text, number, symbol.end)
            depth = here
            if guard is not None:
                found.append(guard)
            if here <= base:
                break
        return found

    def exits(self, symbol: Symbol) -> list[Exit]:
        """Early returns, raised errors and handlers of one function, in line order."""
        text = self.text(symbol.path)
        if text is None:
            return []
        rows = self.code(symbol)[1:]
        if not rows:
            return []
        base = indent(text.lines[symbol.start - 1])
        last = rows[-1][0]
        found: list[Exit] = []
        for number, row in rows:
            guard = _guard_at(text, number, symbol.end)
            if guard is not None and guard.kind == "handler":
                end = _block_end(text, number, symbol.end)
                found.append(Exit(kind="handler", line=number, end=end, text=guard.text, guard=None))
                continue
            raised = _RAISE.search(row)
            early = _EARLY_RETURN.search(row)
            if not (raised or early):
                continue
            around = self.guards(symbol, number)
            if early and not raised and (not around or (number >= last - 1 and indent(row) <= base + 4 and not around)):
                continue
            shown = (raised or early).group() if (raised or early) else row  # type: ignore[union-attr]
            at = number
            while shown.count("(") > shown.count(")") and at < min(symbol.end, number + 6, len(text.lines)):
                shown += " " + text.lines[at].strip()
                at += 1
            found.append(
                Exit(
                    kind="raise" if raised else "return",
                    line=number,
                    end=number,
                    text=shorten(
                        shown.strip(" {};:)") if shown.strip().startswith(("{", ";", ":", ")")) else shown.strip()
                    ),
                    guard=next((g for g in around if g.kind != "loop"), None),
                )
            )
        return found


def indent(row: str) -> int:
    """Columns before the first character; a tab counts four."""
    width = 0
    for character in row:
        if character == " ":
            width += 1
        elif character == "\t":
            width += 4
        else:
            break
    return width


def shorten(text: str, width: int = 90) -> str:
    text = " ".join(text.split())
    return text if len(text) <= width else text[: width - 1].rstrip() + "…"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributes:
    """Fields named in one line (`x.name`, `x->name`), by what the line does with them; calls are neither."""

    written: tuple[str, ...]
    read: tuple[str, ...]


_FIELD = re.compile(r"(?:\.|->)([A-Za-z_]\w{3,})\b(?!\s*\()")
_ASSIGNMENT = re.compile(
    r"^\s*(?:if |while |for )?(?P<left>[\w.,\s>*\[\]()'\"-]+?)\s*(?:\+|\||-)?(?::=|=)(?![=>])(?P<right>.*)$"
)


def attributes(row: str) -> Attributes:
    match = _ASSIGNMENT.match(row)
    if match is None or match.group("left").count("(") != match.group("left").count(")"):
        return Attributes(written=(), read=tuple(dict.fromkeys(_FIELD.findall(row))))
    written = []
    for target in match.group("left").split(","):
        names = _FIELD.findall(target)
        if names:
            written.append(names[-1])
    return Attributes(
        written=tuple(dict.fromkeys(written)), read=tuple(dict.fromkeys(_FIELD.findall(match.group("right"))))
    )


def is_write(row: str, name: str) -> bool:
    """Whether this line puts something into a field or table `name`: assignment, item assignment, a call that adds."""
    quoted = re.escape(name)
    return bool(
        re.search(rf"(\.|->){quoted}\b(\s*\[[^\]]*\]|\s*\([^()]*\))?\s*(:\s*[^=]{{1,60}})?(=(?![=>])|:=|\+=|<-)", row)
        or re.match(
            rf"^\s*(var |let |const |static |pub |export )*(?:[\w:<>*]+ )?\*?{quoted}\b(\s*\[[^\]]*\])*\s*"
            r"(:[^=]{1,60})?=(?![=>])",
            row,
        )
        or re.search(rf"(?<![\w.>]){quoted}\s*\[[^\]]*\]\s*=(?!=)", row)
        or re.search(
            rf"(?<![\w]){quoted}\b(\[[^\]]*\])?\s*(\.|->|::)\s*(append|add|push|push_back|insert|extend|update|setdefault|put|"
            rf"register|store|emplace|emplace_back|entry|enqueue|prepend|appendleft|subscribe)\w*\s*\(",
            row,
        )
        or re.search(rf"\b(append|push|insert|dictAdd|hashSet|register)\w*\s*\(\s*&?[\w.>-]*(\.|->){quoted}\b", row)
    )


def _guard_at(text: TextFile, number: int, last: int) -> Guard | None:
    row = text.lines[number - 1]
    match = _GUARD.match(row)
    if match is None or _COMMENT.match(row):
        return None
    word = match.group("word")
    kind = _GUARD_KINDS[word]
    if kind == "otherwise":
        nested = re.match(r"\s*if\b(.*)$", match.group("rest"))
        if nested:
            return Guard(kind="condition", line=number, text=_condition(text, number, last, nested.group(1)))
        return Guard(kind="otherwise", line=number, text=_opposite(text, number))
    condition = _condition(text, number, last, match.group("rest"))
    if word in ("unless",):
        condition = f"not {condition}"
    return Guard(kind=kind, line=number, text=condition)


def _condition(text: TextFile, number: int, last: int, rest: str) -> str:
    """The condition after the keyword, joined over a few lines, without the opening of the block."""
    joined = rest
    at = number
    while at < min(last, number + 5) and (
        joined.count("(") > joined.count(")") or joined.rstrip().endswith(("&&", "||"))
    ):
        joined += " " + text.lines[at].strip()
        at += 1
    joined = re.sub(r"\s*(//|#\s).*$", "", joined).strip()
    joined = re.sub(r"\s*(\{|:|then|do)\s*(return\b.*|goto\b.*|continue;?|break;?)?$", "", joined).strip()
    while joined.startswith("(") and joined.endswith(")") and _balanced(joined[1:-1]):
        joined = joined[1:-1].strip()
    return shorten(joined)


def _balanced(text: str) -> bool:
    depth = 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if depth < 0:
            return False
    return depth == 0


def _opposite(text: TextFile, number: int) -> str:
    """For an `else`: the condition it is the other case of, or empty."""
    depth = indent(text.lines[number - 1])
    for at in range(number - 1, max(0, number - 80), -1):
        row = text.lines[at - 1]
        if row.strip() and indent(row) == depth:
            match = _GUARD.match(row)
            if match and match.group("word") in ("if", "elif", "else if"):
                return _condition(text, at, len(text.lines), match.group("rest"))
            if match and _GUARD_KINDS[match.group("word")] == "handler":
                return "no error was raised"
            if re.match(r"^\s*(try|for|while)\b", row):
                return ""
    return ""


def _block_end(text: TextFile, number: int, last: int) -> int:
    depth = indent(text.lines[number - 1])
    end = number
    for at in range(number + 1, min(last, number + 40) + 1):
        row = text.lines[at - 1]
        if row.strip() and indent(row) <= depth:
            break
        if row.strip():
            end = at
    return end


def _code_lines(rows: list[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Without comments, block comments and lines inside triple-quoted strings that start a line."""
    closing = ""
    for number, row in rows:
        if closing:
            if closing in row:
                closing = ""
            continue
        start = _STRING_START.match(row)
        if start:
            if row.count(start.group(1)) < 2:
                closing = start.group(1)
            continue
        stripped = row.strip()
        if stripped.startswith("/*") and "*/" not in stripped:
            closing = "*/"
            continue
        if not stripped or _COMMENT.match(row):
            continue
        yield number, row
