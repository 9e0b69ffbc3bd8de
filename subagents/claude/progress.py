"""Noticing that a subagent gets nowhere: from its calls and what they brought, never from what it says.

It is told once; if nothing comes of that either, it is stopped with what it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import orjson

from subagents.claude.messages import ToolUse

Verdict = Literal["on", "warn", "stop"]


@dataclass(slots=True)
class Progress:
    """Fed after each step. `patience` steps without news bring the warning, as many again the end."""

    patience: int = 5
    repeats: int = 3
    """So many times the very same call in a row is no progress either, whatever it returns."""
    idle: int = 0
    warned: bool = False
    _last: bytes = b""
    _same: int = 0
    _texts: dict[str, int] = field(default_factory=dict)

    def step(self, calls: Sequence[ToolUse], *, text: str, news: int) -> Verdict:
        """Take in one step. `news` counts new lines shown, findings, notes and questions."""
        key = orjson.dumps([[c.name, dict(c.input)] for c in calls], option=orjson.OPT_SORT_KEYS) if calls else b""
        self._same = self._same + 1 if calls and key == self._last else 1
        self._last = key
        said = " ".join(text.split())
        repeated_text = False
        if said and not calls:
            self._texts[said] = self._texts.get(said, 0) + 1
            repeated_text = self._texts[said] >= self.repeats
        if news > 0 and self._same < self.repeats and not repeated_text:
            self.idle = 0
            self.warned = self.warned and self._same > 1  # the call it was warned of is no new beginning
            return "on"
        self.idle += 1
        if self._same >= self.repeats or repeated_text:
            self.idle = max(self.idle, self.patience)
        if not self.warned and self.idle >= self.patience:
            self.warned = True
            self.idle = 0
            self._same = 1
            return "warn"
        return "stop" if self.warned and self.idle >= self.patience else "on"
