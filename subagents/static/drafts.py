"""Findings before they are recorded: what a task yields, and how its pieces are worded the same way everywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from subagents.codebase.types import Symbol

Place = tuple[str, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """One finding to record. `data["step"]` says what kind of fact it is; answers are composed from `data`."""

    claim: str
    kind: str
    citations: tuple[Place, ...]
    data: Mapping[str, object]
    symbols: tuple[str, ...] = ()
    confidence: float = 0.9
    relevance: float = 0.5
    evidence: str = field(default="")
    """Raw text to keep as evidence (e.g. a log line of the history), or empty."""


def symbol_data(symbol: Symbol, prefix: str = "") -> dict[str, object]:
    """The facts about a definition that answers print."""
    return {
        f"{prefix}symbol": symbol.qualified,
        f"{prefix}path": symbol.path,
        f"{prefix}line": symbol.start,
        f"{prefix}end": symbol.end,
        f"{prefix}kind": symbol.kind,
        f"{prefix}doc": symbol.doc,
    }


def place(symbol: Symbol, lines: int = 1) -> Place:
    """The first line(s) of a definition, as a citation."""
    return (symbol.path, symbol.start, min(symbol.end, symbol.start + lines - 1))


def where(path: str, start: int, end: int | None = None) -> str:
    return f"{path}:{start}" if end is None or end == start else f"{path}:{start}-{end}"


def plural(count: int, noun: str, many: str = "") -> str:
    return f"{count:,} {noun if count == 1 else many or noun + 's'}"


def a(noun: str) -> str:
    """With its article: a class, an interface."""
    return f"{'an' if noun[:1] in 'aeio' else 'a'} {noun}"


def listing(parts: Sequence[str], last: str = "and") -> str:
    """a, b and c."""
    if len(parts) <= 1:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} {last} {parts[-1]}"
