"""What a variable of one function may hold: functions named without being called, kept in locals, wrapped, handed on.

`handler = self._respond`, then `handler = guarded(handler)`, then `self._chain = handler`: who calls `_chain` arrives,
by way of what was wrapped around, at `_respond`. No call says so, and no index holds it; the lines of the one function
in which it is put together do. Both directions are read here: from a variable back to the functions, and from a
function on to the fields it ends in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from subagents.codebase.types import Symbol
from subagents.static.source import Sources

MAX_ROWS = 300
MAX_FOUND = 40

_SELF_PART = r"(?:self|this|cls)(?:\.|->)"
_ASSIGNED = re.compile(
    r"^\s*(?:(?:let|var|const|auto|mut|final|val)\s+)*([A-Za-z_]\w*)\s*(?::\s*[^=]{1,60})?(?::=|=)(?![=>])(.*)$"
)
_NAMED = re.compile(rf"(?<![\w.>])({_SELF_PART})?([A-Za-z_]\w{{2,}})\b(?!\s*[\(=.\[]|->|::)")
_FIELD = r"(?:\.|->)([A-Za-z_]\w{2,})\s*(?::\s*[^=]{1,60})?(?::=|=)(?![=>])\s*(?:await\s+)?{value}\s*[,;]?\s*$"


@lru_cache(maxsize=4096)
def named(expression: str) -> tuple[tuple[str, bool], ...]:
    """(name, whether of `self`) of what an expression names without calling or reading into it; arguments count."""
    text = re.sub(r"\"[^\"]*\"|'[^']*'", "", expression.split(" #")[0].split("//")[0])
    return tuple(dict.fromkeys((name, bool(own)) for own, name in _NAMED.findall(text)))


def origins(variable: str, function: Symbol, line: int, sources: Sources) -> list[tuple[str, bool]]:
    """(name, whether of `self`) of what a local may have been made of before a line, nearest first; locals followed."""
    rows = assignments(function, sources)
    found: dict[tuple[str, bool], None] = {}
    seen = {variable}
    waiting = [variable]
    while waiting and len(found) < MAX_FOUND:
        wanted = waiting.pop(0)
        for number, target, right in reversed(rows):
            if target != wanted or number >= line:
                continue
            for name, own in named(right):
                if own or not any(target == name for _, target, _ in rows):
                    found.setdefault((name, own))
                elif name not in seen:
                    seen.add(name)
                    waiting.append(name)
    return list(found)[:MAX_FOUND]


def ends_in(name: str, function: Symbol, line: int, row: str, sources: Sources) -> Iterator[str]:
    """Fields that get, further down in the function, what this row puts into a local."""
    first = _ASSIGNED.match(row)
    if first is None or not any(name == said for said, _ in named(first.group(2))):
        return
    held = {first.group(1)}
    for number, target, right in assignments(function, sources):
        if number > line and any(said in held for said, _ in named(right)):
            held.add(target)
    fields = re.compile(_FIELD.replace("{value}", f"(?:{'|'.join(map(re.escape, sorted(held)))})"))
    for number, row in sources.code(function, limit=MAX_ROWS)[1:]:
        stored = fields.search(row)
        if stored and number > line:
            yield stored.group(1)


def assignments(function: Symbol, sources: Sources) -> Sequence[tuple[int, str, str]]:
    """(line, variable, right side) of the assignments to locals, in line order; a right side over lines is joined."""
    rows = sources.code(function, limit=MAX_ROWS)[1:]
    found = []
    after = 0
    for at, (number, row) in enumerate(rows):
        match = _ASSIGNED.match(row) if at >= after else None
        if match is None:
            continue
        right = match.group(2)
        after = at + 1
        while right.count("(") > right.count(")") and after < min(len(rows), at + 10):
            right += " " + rows[after][1].strip()
            after += 1
        found.append((number, match.group(1), right))
    return found
