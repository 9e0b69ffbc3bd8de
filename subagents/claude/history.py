"""The record of one conversation and the edits decided over it. What is sent is computed from the two.

The record only grows. An edit is a number: everything before it is cleared, compacted, or without its thinking. Edits
only move forward, so applying them twice is applying them once, and the same record always gives the same view.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from subagents.claude.messages import Pair

ClearingMode = Literal["none", "batch", "behind", "server"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Edits:
    """Step numbers; each field covers the steps before it."""

    cleared: int = 0
    """Tool results stand as digests."""
    compacted: int = 0
    """Steps are replaced by `summary`, which stands behind the opening."""
    thinking: int = 0
    """Thinking blocks are left out."""
    states: int = 0
    """State blocks are left out."""
    summary: str = ""
    mode: ClearingMode = "none"
    """How clearing goes on from here; it decides where the rolling breakpoint stands."""

    def advanced(self, **to: object) -> Edits:
        """These edits moved forward. Raises ValueError when one would go back."""
        new = replace(self, **to)  # type: ignore[arg-type]
        for name in ("cleared", "compacted", "thinking", "states"):
            if getattr(new, name) < getattr(self, name):
                raise ValueError(f"edit {name!r} goes back from {getattr(self, name)} to {getattr(new, name)}")
        return new


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """`opening` is the text of the first user turn; `pairs` are all steps ever taken, in order, numbered from 0."""

    opening: str
    pairs: tuple[Pair, ...] = ()
    edits: Edits = Edits()
    binds: bool = True
    """Whether the model may bind thinking to its prefix; assumed unless configured otherwise."""

    @property
    def kept(self) -> Sequence[Pair]:
        """The steps that are still sent one by one."""
        return self.pairs[self.edits.compacted :]

    @property
    def next_number(self) -> int:
        return len(self.pairs)

    @property
    def has_bound_thinking(self) -> bool:
        """Whether bound thinking blocks are among what is sent: then nothing before them may change."""
        return self.binds and any(p.assistant.thinks and p.number >= self.edits.thinking for p in self.kept)
