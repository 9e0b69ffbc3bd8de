"""Tool-result clearing: old results are replaced by the digests their tools wrote, and when that pays.

Two ways pay (docs/design-notes/context.md has the arithmetic): rare, large batches, and always right behind the newest
results, where next to nothing stands behind the edit. Clearing a little in the middle at every step costs more than
not clearing at all. Which way is taken follows from the price table, the model's constraints and the run's figures.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from subagents.claude.history import ClearingMode, Edits, History
from subagents.claude.messages import Pair
from subagents.claude.prices import Prices
from subagents.claude.sizes import SizeMemo, is_clearable

SWITCH_GAIN = 0.10
"""Another way of clearing is taken only when it saves this share: a switch rewrites the history once."""


def clear_tool_results(pairs: Sequence[Pair], *, before: int) -> list[Pair]:
    """The same steps, with the results of steps below `before` replaced by digests.

    Calls, order, ids and every signed block stay; so do results of excluded tools, errors, and results that are not
    much larger than their digest. Applying it again changes nothing.
    """
    return [_cleared(pair) if pair.number < before else pair for pair in pairs]


def _cleared(pair: Pair) -> Pair:
    if pair.user is None or not any(is_clearable(result) for result in pair.user.results):
        return pair
    results = tuple(replace(r, text=r.digest) if is_clearable(r) else r for r in pair.user.results)
    return replace(pair, user=replace(pair.user, results=results))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFigures:
    """Means of this run, in tokens a step. The priors hold until a few steps were seen."""

    results: float = 1_500.0
    digests: float = 150.0
    other: float = 150.0
    """Replies, notices and deltas of the state block: what every policy keeps."""
    steps_ahead: float = 30.0
    """How much longer the run is expected to go on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyCost:
    """Price of one mean step under each way of clearing, in uncached input tokens, the common part left out."""

    none: float
    batch: float
    behind: float
    batch_cycle_tokens: float
    """Best distance between the trigger and the target of a batch."""


def policy_costs(figures: RunFigures, prices: Prices, *, keep_steps: int = 2) -> PolicyCost:
    """What a step costs when nothing is cleared, in batches, and right behind the newest results.

    `none` and both others grow with the steps ahead by what they leave standing. A batch cycle of x tokens over a kept
    part K costs read (K + x/2) + write K d / x beside the write of the step itself, least at x = sqrt(2 w K d / r).
    """
    w, r = prices.write_5m, prices.read
    d, g, a = figures.results, min(figures.digests, figures.results), figures.other
    standing = r * figures.steps_ahead / 2
    none = w * (d + a) + standing * (d + a)
    kept = max(1.0, keep_steps * (d + a) + (g + a) * figures.steps_ahead / 2)
    cycle = math.sqrt(2 * w * kept * max(1.0, d) / max(r, 1e-9))
    batch = w * (d + a) + r * (kept + cycle / 2) + w * kept * d / max(1.0, cycle)
    behind = 1.0 * d + w * (g + a) + standing * (g + a)
    return PolicyCost(none=none, batch=batch, behind=behind, batch_cycle_tokens=cycle)


def choose_mode(
    figures: RunFigures, prices: Prices, *, current: ClearingMode, may_edit_behind: bool, server_side: bool
) -> ClearingMode:
    """The cheapest way of clearing that the conversation allows.

    `may_edit_behind`: no live thinking is bound to what an edit would change. Where some is, and the API edits by
    itself, `server` takes the place of `behind`; once taken it stays, since its placeholders are not our digests.
    """
    cost = policy_costs(figures, prices)
    options: dict[ClearingMode, float] = {"none": cost.none, "batch": cost.batch}
    if server_side and (current == "server" or not may_edit_behind):
        options["server"] = cost.behind
    elif may_edit_behind:
        options["behind"] = cost.behind
    best = min(options, key=lambda mode: options[mode])
    if current in options and options[best] > (1 - SWITCH_GAIN) * options[current]:
        return current
    return best


def saving_share(figures: RunFigures, prices: Prices, mode: ClearingMode) -> float:
    """Estimated share of the cost of not clearing that `mode` saves; what reports show."""
    cost = policy_costs(figures, prices)
    taken = {"none": cost.none, "batch": cost.batch, "behind": cost.behind, "server": cost.behind}[mode]
    return max(0.0, 1 - taken / cost.none) if cost.none else 0.0


def figures_of(history: History, sizes: SizeMemo, *, steps_ahead: float, window: int = 20) -> RunFigures:
    """Means over the last `window` steps, mixed with the priors while there are fewer than five."""
    prior = RunFigures(steps_ahead=steps_ahead)
    sample = [sizes.of(p) for p in history.pairs[-window:] if p.user is not None]
    if not sample:
        return prior
    n, k = len(sample), max(0, 5 - len(sample))
    return RunFigures(
        results=(sum(s.results for s in sample) + k * prior.results) / (n + k),
        digests=(sum(s.digests for s in sample) + k * prior.digests) / (n + k),
        other=(sum(s.other_results + s.said for s in sample) + k * prior.other) / (n + k),
        steps_ahead=steps_ahead,
    )


def next_clearing(
    history: History,
    figures: RunFigures,
    prices: Prices,
    sizes: SizeMemo,
    *,
    newest: int,
    budget_tokens: int,
    keep_steps: int = 2,
) -> Edits:
    """The edits that hold for the request after step `newest`, by the mode they name.

    `behind` clears everything before the newest results. `batch` waits until what clearing would remove has grown to
    a whole cycle (or to two thirds of the budget) and then clears down to the newest `keep_steps` steps.
    """
    edits = history.edits
    if edits.mode == "behind" and newest > edits.cleared:
        return edits.advanced(cleared=newest)
    if edits.mode == "batch":
        target = newest - keep_steps + 1
        held = clearable_tokens(history, sizes, before=target)
        trigger = min(policy_costs(figures, prices, keep_steps=keep_steps).batch_cycle_tokens, budget_tokens * 2 / 3)
        if target > edits.cleared and held >= trigger:
            return cut_before(history, cleared=target)
    return edits


def clearable_tokens(history: History, sizes: SizeMemo, *, before: int) -> int:
    """What clearing up to `before` would take out, in uncalibrated tokens."""
    found = (sizes.of(p) for p in history.kept if history.edits.cleared <= p.number < before and p.user is not None)
    return sum(one.results - one.digests for one in found)


def cut_before(history: History, *, cleared: int) -> Edits:
    """Clear up to `cleared`. Thinking bound to what changes goes too, and with the rewrite so do old state blocks.

    The newest state block stays where it is about to be sent, even when the newest results are cleared.
    """
    edits = history.edits
    states = min(cleared, history.next_number - 1)
    to: dict[str, object] = {"cleared": max(cleared, edits.cleared), "states": max(states, edits.states)}
    if history.has_bound_thinking:
        to["thinking"] = history.next_number
    return edits.advanced(**to)
