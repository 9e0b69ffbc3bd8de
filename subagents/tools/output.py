"""What a tool gives back, and what it says when it cannot: two values, never an exception through the loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from subagents.codebase.types import Skipped

ErrorCode = Literal[
    "invalid_argument",
    "unknown_tool",
    "call_cut",
    "no_such_path",
    "not_a_file",
    "not_readable",
    "outside_scope",
    "range_outside_file",
    "bad_pattern",
    "no_such_symbol",
    "no_such_evidence",
    "bad_citation",
    "range_too_large",
    "quote_not_found",
    "not_shown",
    "bad_claim",
    "rejected",
    "timed_out",
    "unavailable",
    "failed",
]


class ToolError(Exception):
    """A call that gave nothing. `way_out` tells the model what to do instead; it is never empty."""

    def __init__(self, code: ErrorCode, message: str, way_out: str) -> None:
        super().__init__(message)
        self.code = code
        self.way_out = way_out

    @property
    def text(self) -> str:
        return f"error {self.code}: {self}\n{self.way_out}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutput:
    """A bounded answer. What was left out is said in `text` and kept in `raw`."""

    text: str
    digest: str
    """Stands for `text` once it is cleared: what was asked, what came back, where to look."""
    log: str
    """The call in one line."""
    raw: str = ""
    """Everything, where `text` is only a part; empty: `text` is everything."""
    shown: Sequence[tuple[str, int, int]] = ()
    """(path, first, last) of the lines of code in `text`: only these can be cited."""
    keep: bool = False
    """Small and never cleared."""
    read: str = ""
    """Path that was read, for the state block."""
    searched: str = ""
    """Search that was made, for the state block."""
    truncated: str = ""
    """What was cut, for coverage."""
    timed_out: str = ""
    skipped: tuple[Skipped, ...] = ()
    news: int = 0
    """New findings, notes or questions that came of it."""


def cut_line(text: str, width: int = 240) -> str:
    """One line of code, bounded; says how much is missing."""
    return text if len(text) <= width else f"{text[:width]} [... {len(text) - width} more characters]"


def plural(count: int, noun: str) -> str:
    ending = "es" if noun.endswith(("ch", "s")) else "s"
    return f"{count:,} {noun}{'' if count == 1 else ending}"
