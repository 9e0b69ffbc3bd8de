"""What may be sent, and what may be spent: the input budget of one request and the limits of one task.

The whole request counts: tools and system too. Window and output limit come from the endpoint or from
configuration; nothing in here knows a model.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from manifests.errors import UsageError


def input_budget(window_tokens: int, max_tokens: int, thinking_tokens: int, margin: float) -> int:
    """Tokens that one request may hold, tools and system included; rounded down.

    `margin` (0 <= margin < 1) is the share kept free because local counts run low.
    Raises UsageError when nothing is left for input. Source: design, Budget.
    """
    if not 0 <= margin < 1:
        raise ValueError(f"margin is no share: {margin!r}")
    left = math.floor((window_tokens - max_tokens - thinking_tokens) * (1 - margin))
    if left < 1:
        raise UsageError(
            f"a window of {window_tokens:,} tokens leaves no input beside {max_tokens:,} for the reply"
            + (f" and {thinking_tokens:,} for thinking" if thinking_tokens else ""),
            hint="lower reply_tokens or the thinking budget, or use a model with a larger window",
        )
    return left


def check_fixed_part(fixed_tokens: int, budget_tokens: int) -> None:
    """Refuse, before anything is spent, a window in which the fixed part leaves no room to work.

    Half of the budget has to be left for turns: below that every step would clear and compact.
    """
    if fixed_tokens > budget_tokens // 2:
        raise UsageError(
            f"tools, instructions, brief and task take {fixed_tokens:,} of {budget_tokens:,} input tokens",
            hint="use a model with a larger window, set window_tokens if it is larger than stated, "
            "or lower reply_tokens",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskLimits:
    """Limits of one task. None: no limit of its own; the session's still hold."""

    max_turns: int = 60
    max_minutes: float | None = None
    max_tokens: int | None = None
    """Input and output together, as billed: cached tokens count in full."""
    max_cost: float | None = None
    """In the currency of the price table."""


@dataclass(slots=True)
class Spending:
    """What one task has spent so far, resumed runs included."""

    turns: int = 0
    tokens: int = 0
    cost: float = 0.0
    seconds_before: float = 0.0
    """Minutes of earlier processes on this task."""
    started: float = field(default_factory=time.monotonic)
    clock: Callable[[], float] = time.monotonic

    @property
    def seconds(self) -> float:
        return self.seconds_before + self.clock() - self.started


def shares_spent(limits: TaskLimits, spent: Spending) -> dict[str, float]:
    """Share of each limit that is used up; 1 and more means reached."""
    shares = {"turns": spent.turns / max(1, limits.max_turns)}
    if limits.max_minutes is not None:
        shares["minutes"] = spent.seconds / 60 / max(1e-9, limits.max_minutes)
    if limits.max_tokens is not None:
        shares["tokens"] = spent.tokens / max(1, limits.max_tokens)
    if limits.max_cost is not None:
        shares["cost"] = spent.cost / max(1e-12, limits.max_cost)
    return shares


def limit_reached(limits: TaskLimits, spent: Spending) -> str:
    """Name of the first limit that is reached, or empty."""
    return next((name for name, share in shares_spent(limits, spent).items() if share >= 1), "")


def limit_near(limits: TaskLimits, spent: Spending, share: float = 0.8) -> str:
    """Name of the limit that is nearest, once it is used up to `share`, or empty."""
    name, used = max(shares_spent(limits, spent).items(), key=lambda item: item[1])
    return name if used >= share else ""
