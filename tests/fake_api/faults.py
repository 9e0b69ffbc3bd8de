"""What goes wrong on purpose: which request, and how. Nothing here is random unless a seed says so."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

FaultKind = Literal[
    "status",
    "reset_before",
    "reset_after_headers",
    "reset_mid",
    "end_early",
    "cut_json",
    "sse_error",
    "html",
    "stall",
    "garbage",
]
"""`status`: an error answer. `reset_before`: the connection is reset before the first byte. `reset_after_headers`:
after the response's head. `reset_mid`: after `after_events` events (plain: in the middle of the body). `end_early`: a
clean end after `after_events` events. `cut_json`: the data of one event is cut in its JSON, then a clean end.
`sse_error`: an `error` event of type `error_type`. `html`: a page of HTML with status `status`. `stall`: nothing for
`seconds`, then a normal answer. `garbage`: a well-formed head and a body of noise."""

STREAM_KINDS = frozenset({"reset_mid", "end_early", "cut_json", "sse_error"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault. Faults before the model (`status`, `reset_before`, `html`) are not charged; all others are."""

    kind: FaultKind = "status"
    status: int = 529
    after_events: int = 3
    seconds: float = 0.0
    retry_after_s: float | None = None
    error_type: str = "overloaded_error"
    message: str = ""
    code: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in get_args(FaultKind):
            raise ValueError(f"no such fault: {self.kind!r}")

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


FaultRule = Callable[["FaultCase"], Fault | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultCase:
    """What a rule may look at. `number` counts POST /v1/messages from 0, retries included."""

    number: int
    conversation: str
    turn: int
    body: Mapping[str, Any]


class FaultPlan:
    """Decides for each request whether it fails."""

    def __init__(self, *rules: FaultRule) -> None:
        self._rules = list(rules)

    def add(self, rule: FaultRule) -> None:
        self._rules.append(rule)

    def choose(self, case: FaultCase) -> Fault | None:
        return next((fault for rule in self._rules if (fault := rule(case)) is not None), None)


def by_number(faults: Mapping[int, Fault]) -> FaultRule:
    """The n-th request (from 0) fails so."""
    return lambda case: faults.get(case.number)


def every(period: int, fault: Fault, *, first: int = 0) -> FaultRule:
    """Each `period`-th request fails so."""
    return lambda case: fault if case.number >= first and (case.number - first) % period == 0 else None


def between(first: int, last: int, fault: Fault) -> FaultRule:
    """An outage: requests `first` to `last` fail so."""
    return lambda case: fault if first <= case.number <= last else None


SEEDED_KINDS: Sequence[Fault] = (
    Fault(kind="status", status=429, retry_after_s=0),
    Fault(kind="status", status=529),
    Fault(kind="status", status=500),
    Fault(kind="reset_before"),
    Fault(kind="reset_after_headers"),
    Fault(kind="reset_mid", after_events=4),
    Fault(kind="end_early", after_events=5),
    Fault(kind="cut_json", after_events=4),
    Fault(kind="sse_error", after_events=2),
)


def seeded(seed: int, rate: float, kinds: Sequence[Fault] = SEEDED_KINDS, *, most: int | None = None) -> FaultRule:
    """With probability `rate` a request fails in one of these ways; the same seed gives the same schedule."""
    given = [0]

    def rule(case: FaultCase) -> Fault | None:
        dice = random.Random(f"{seed}:{case.number}")
        if dice.random() >= rate or (most is not None and given[0] >= most):
            return None
        given[0] += 1
        return dice.choice(list(kinds))

    return rule
