"""What a value is by default: parameters, constants, fields and keys that are named like the subject and are given one.

"Where is the default timeout set?" is often answered by no definition at all, but by `def request(self, timeout=None)`.
A line counts when the name in it is the subject and hardly anything else, and when it gives the name a value; what a
build service is told about its own time-outs is no setting of the code.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from subagents.codebase.types import CodeIndex, Symbol
from subagents.static.callgraph import FUNCTION_KINDS
from subagents.static.grep import Grep
from subagents.static.question import Question, subwords
from subagents.static.relevance import stem, term_match
from subagents.static.roles import aside
from subagents.static.source import Sources
from subagents.static.wordlists import words

Manner = Literal["parameter", "constant", "key", "field", "entry"]

MAX_DEFAULTS = 4
_SPARE = words("default defaults max maximum min minimum initial value global opt option config setting")
_MAKERS = re.compile(r"^(new|default|init|__init__|constructor|create|with|make|setup)", re.I)
_DEFAULT = re.compile(r"""["']?\bdefault(?:_value)?\b["']?\s*[:=]\s*(?P<value>[^=\s].*)$""")
_GIVEN = re.compile(
    r"""^["'`]?\s*(?::\s*(?P<type>[^=(){};]{1,80}?))?\s*(?P<sign>=(?![=>~])|:=|=>|:)\s*(?P<value>[^=\s].*)$"""
)
_NOT_A_VALUE = re.compile(r"^(?!(true|false|none|null|nil|undefined)$)(self\.|this\.)?[a-z_]\w*$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Default:
    """`owner` is the function whose parameter it is, or the definition around it; may be empty."""

    manner: Manner
    name: str
    value: str
    path: str
    line: int
    text: str
    owner: str
    worth: float


def defaults_of(
    question: Question, index: CodeIndex, sources: Sources, grep: Grep, paths: Sequence[str]
) -> Iterator[Default]:
    """Best first, few of one file."""
    subject = [t for t in question.strong_terms if t not in _SPARE and t not in ("configured", "set", "defined")]
    if not subject or len(subject) > 4:
        return
    longest = max(subject, key=len)
    spare = _SPARE | set(question.terms)
    found: list[Default] = []
    for match in grep.lines(rf"(?i){re.escape(stem(longest)[:12])}", paths):
        row = sources.line(match.path, match.line)
        if len(row) <= 300 and match.line in sources.code_numbers(match.path):
            one = _read(match.path, match.line, row, subject, spare, index, sources)
            if one is not None:
                found.append(one)
    per_file: dict[str, int] = {}
    kept = 0
    for one in sorted(found, key=lambda d: (-d.worth, d.path, d.line)):
        if per_file.get(one.path, 0) < 2 and kept < MAX_DEFAULTS:
            per_file[one.path] = per_file.get(one.path, 0) + 1
            kept += 1
            yield one


def _read(
    path: str,
    line: int,
    row: str,
    subject: Sequence[str],
    spare: Collection[str],
    index: CodeIndex,
    sources: Sources,
) -> Default | None:
    for at in re.finditer(r"[A-Za-z_][\w-]*", row):
        if not _is_subject(at.group(), subject, spare):
            continue
        before = row[: at.start()]
        quoted = re.search(r"""["'`](--?)?$""", before) is not None
        around = index.symbol_at(path, line)
        making = around is not None and around.kind in FUNCTION_KINDS and _MAKERS.match(around.name) is not None
        if before.endswith((".", "->")) and not (making and re.search(r"\b(self|this)(\.|->)$", before)):
            continue
        given = _GIVEN.match(row[at.end() :])
        if (
            given is None
            and quoted
            and not (around is not None and around.kind in FUNCTION_KINDS and "--" not in before)
        ):
            entry = _entry(path, line, row, row[at.end() :], at.group(), around, sources)
            if entry is not None:
                return entry
        if given is None:
            continue
        manner = _manner(line, given.group("sign"), quoted, around, making, sources)
        if manner is None or (
            given.group("sign") == ":" and not quoted and not making and path.endswith((".py", ".pyi", ".rs", ".go"))
        ):
            continue
        value = _first_value(given.group("value").strip())
        if not value or (manner == "field" and _NOT_A_VALUE.match(value)):
            continue
        owner = around.qualified if around is not None and around.start != line else ""
        if around is not None and manner == "parameter":
            owner = around.qualified
        worth = {"constant": 1.0, "key": 0.9, "entry": 0.9, "field": 0.8, "parameter": 0.8}[manner]
        worth += 0.3 if "default" in subwords(at.group()) else 0.0
        worth -= 0.3 if aside(path) else 0.0
        worth -= 0.1 * sum(1 for word in subwords(at.group()) if word in _SPARE and word != "default")
        if around is not None and manner == "parameter":
            worth -= 0.3 if around.name.startswith("_") and not around.name.startswith("__") else 0.0
            worth += 0.1 if around.doc or "." not in around.qualified else 0.0
            worth += 0.1 * min(1.0, (around.end - around.start) / 100) - 0.02 * path.count("/")
        return Default(
            manner=manner,
            name=at.group(),
            value=value,
            path=path,
            line=line,
            text=row.strip(),
            owner=owner,
            worth=worth,
        )
    return None


def _entry(
    path: str, line: int, row: str, rest: str, name: str, around: Symbol | None, sources: Sources
) -> Default | None:
    """An option that is declared: `add_argument("--timeout", default=30)`, a row of a table of options."""
    owner = around.qualified if around is not None and around.start != line else ""
    for at, text in [(line, rest), *sources.lines(path, line + 1, line + 5)]:
        if at > line and re.search(r"""["']--?[a-z]|^\s*[)\]]""", text):
            break
        told = _DEFAULT.search(text)
        if told:
            value = _first_value(told.group("value"))
            return Default(
                manner="entry", name=name, value=value, path=path, line=at, text=text.strip(), owner=owner, worth=1.1
            )
    if re.match(r"^\s*[\w.:]*[({\[]", row) and rest.count(",") >= 2:
        return Default(
            manner="entry", name=name, value="", path=path, line=line, text=row.strip(), owner=owner, worth=0.9
        )
    return None


def _is_subject(name: str, subject: Sequence[str], spare: Collection[str]) -> bool:
    """Every word of the subject, and besides these only words like `default`."""
    own = subwords(name)
    held = [t for t in subject if any(term_match(t, word) >= 0.75 for word in own)]
    left = [w for w in own if w not in spare and not any(term_match(t, w) >= 0.75 for t in subject)]
    if "".join(w for w in own if w not in _SPARE) == "".join(subject):  # DEFAULT_POOLSIZE
        return True
    return len(held) == len(subject) and not left


def _manner(line: int, sign: str, quoted: bool, around: Symbol | None, making: bool, sources: Sources) -> Manner | None:
    if around is not None and around.kind in FUNCTION_KINDS:
        if declared_at(around, line, sources):
            return "parameter" if sign == "=" and not quoted else None
        if quoted:
            return "key" if "default" in around.name.lower() else None
        return "field" if making and sign in (":", "=") else None
    if quoted:
        return "key" if sign in (":", "=>", "=") else None
    if around is not None and around.start == line and around.kind in ("constant", "variable", "macro"):
        return "constant"
    if around is not None and around.kind != "module":
        return "field"
    return "constant" if sign != ":" else None


def declared_at(symbol: Symbol, line: int, sources: Sources) -> bool:
    """Whether the line is before the bracket that closes the parameters."""
    depth = 0
    opened = False
    for number, row in sources.lines(symbol.path, symbol.start, min(symbol.end, symbol.start + 60)):
        if number == line and (opened or "(" in row):
            return depth > 0 or not opened
        depth += row.count("(") - row.count(")")
        opened = opened or "(" in row
        if opened and depth <= 0:
            return False
    return False


def _first_value(text: str) -> str:
    """Up to the comma or bracket that ends it."""
    depth = 0
    quote = ""
    for at, here in enumerate(text):
        if quote:
            quote = "" if here == quote else quote
        elif here in "\"'`":
            quote = here
        elif here in "([{":
            depth += 1
        elif here in ")]}":
            depth -= 1
            if depth < 0:
                return text[:at].strip()
        elif depth == 0 and (here in ",;#" or text.startswith("//", at)):
            return text[:at].strip()
    return text.strip().rstrip("{[(").strip()
