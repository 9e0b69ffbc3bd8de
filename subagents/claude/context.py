"""When a step is closed: which edits hold from here on, and what state block goes with it.

The decision is written down with the step, so that assembling stays a pure function of the record.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from subagents.claude.clearing import choose_mode, cut_before, figures_of, next_clearing, saving_share
from subagents.claude.compaction import choose_boundary, compacted, full_text
from subagents.claude.history import ClearingMode, Edits, History
from subagents.claude.messages import ToolResult, UserTurn
from subagents.claude.prices import Prices
from subagents.claude.sizes import SizeMemo
from subagents.claude.state_block import StateBlock
from subagents.claude.tokens import text_tokens

Pressure = Literal["clear", "compact", "compact_hard", "clear_newest"]
"""How hard to shrink when a request does not fit, in this order."""


LEAST_CYCLE_STEPS = 16
"""Compaction by price never comes sooner than so many steps after the last one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextPolicy:
    """What the decisions depend on besides the record."""

    prices: Prices
    budget_tokens: int
    clearing: ClearingMode | Literal["auto"] = "auto"
    server_side: bool = False
    """The model's capabilities report tool-result clearing of its own."""
    steps_ahead: float = 30.0
    max_steps: int | None = None
    """The task's limit: what pays only later than that does not pay."""
    keep_steps: int = 2
    """Newest steps that keep their results when a batch is cleared."""
    compaction_keep_steps: int = 3
    compaction_share: float = 0.7
    """Share of the input budget at which old steps are compacted in any case."""
    summary_tokens: int = 400
    state_tokens: int = 1_000
    """Both are written at each compaction and read at every step, about a fifth of a token's price a step: with three
    times as much, a run of 120 steps costs 2.08 times one of 60; with this, twice. Measured in tests/bench."""
    whole_state_steps: int = 60
    """A whole state block is sent at least this often."""


@dataclass(slots=True)
class ContextKeeper:
    """Decides at the end of each step. Holds only what the last state block said; a new process sends it whole."""

    policy: ContextPolicy
    keep_text: Callable[[str], str] = lambda _: ""
    """Keeps the full text of compacted steps as evidence and returns its reference."""
    sent: StateBlock | None = None
    whole_at: int = -1
    deltas_tokens: int = 0
    sizes: SizeMemo = field(default_factory=SizeMemo)

    def close(
        self, history: History, results: Sequence[ToolResult], notices: Sequence[str], state: StateBlock
    ) -> tuple[UserTurn, Edits]:
        """User turn and edits for the newest step, whose reply is the last pair of `history`."""
        pair = history.pairs[-1]
        user = UserTurn(results=tuple(results), notices=tuple(notices))
        closed = replace(history, pairs=(*history.pairs[:-1], replace(pair, user=user)))
        edits = self._edits(closed)
        rebuilt = edits.compacted > history.edits.compacted or (
            edits.mode != "behind" and edits.cleared > history.edits.cleared
        )
        text, whole = self._state_text(state, rebuilt=rebuilt, said=recorded_by(results))
        return replace(user, state=text, state_whole=whole), edits

    def opening_state(self, state: StateBlock) -> str:
        """The first whole block, part of the opening."""
        text, _ = self._state_text(state, rebuilt=True)
        return text

    def shrink(self, history: History, state: StateBlock, pressure: Pressure) -> tuple[Edits, str]:
        """Edits that make the next request smaller, and the whole state block that has to go with them.

        With edits that change nothing comes no block: nothing is to be sent anew.
        """
        newest = history.next_number - 1
        keep = {"clear": 1, "compact": 2, "compact_hard": 1, "clear_newest": 0}[pressure]
        edits = cut_before(history, cleared=max(history.edits.cleared, newest - keep + 1))
        if pressure != "clear":
            edits = self._compacted(replace(history, edits=edits), keep_steps=keep)
        if (edits.cleared, edits.compacted) == (history.edits.cleared, history.edits.compacted):
            return history.edits, ""
        text, _ = self._state_text(state, rebuilt=True)
        return edits, text

    def saving(self, history: History) -> float:
        """Estimated share saved by the present way of clearing."""
        policy = self.policy
        figures = figures_of(history, self.sizes, steps_ahead=policy.steps_ahead)
        return saving_share(figures, policy.prices, history.edits.mode)

    def _edits(self, history: History) -> Edits:
        policy = self.policy
        figures = figures_of(history, self.sizes, steps_ahead=policy.steps_ahead)
        free = not history.has_bound_thinking
        mode = policy.clearing
        if mode == "auto":
            mode = choose_mode(
                figures,
                policy.prices,
                current=history.edits.mode,
                may_edit_behind=free,
                server_side=policy.server_side,
            )
        elif mode == "behind" and not free:
            mode = "batch"
        history = replace(history, edits=replace(history.edits, mode=mode))
        newest = history.next_number - 1
        edits = next_clearing(
            history,
            figures,
            policy.prices,
            self.sizes,
            newest=newest,
            budget_tokens=policy.budget_tokens,
            keep_steps=policy.keep_steps,
        )
        history = replace(history, edits=edits)
        if self._compaction_is_due(history):
            edits = self._compacted(history, keep_steps=policy.compaction_keep_steps)
        return edits

    def _compaction_is_due(self, history: History) -> bool:
        """By price: what stands cleared has grown to a whole cycle, and the run is expected to last until it is earned
        back. By need: the steps fill their share of the budget.

        The cycle is the one of `clearing.policy_costs`, over what a compaction keeps.
        """
        policy = self.policy
        if len(history.kept) <= policy.compaction_keep_steps + 2:
            return False
        cleared = history.next_number - 1 if history.edits.mode == "server" else history.edits.cleared
        measured = [self.sizes.of(pair) for pair in history.kept]
        sizes = [
            one.cleared if pair.number < cleared else one.whole
            for pair, one in zip(history.kept, measured, strict=True)
        ]
        if sum(sizes) + text_tokens(history.edits.summary) > policy.compaction_share * policy.budget_tokens:
            return True
        old = [size for size, pair in zip(sizes, history.kept, strict=True) if pair.number < cleared]
        if not old:
            return False
        growth = sum(old) / len(old)
        if sum(old) <= growth * (policy.compaction_keep_steps + LEAST_CYCLE_STEPS):
            return False
        state = text_tokens(self.sent.render(max_tokens=policy.state_tokens)) if self.sent else 0
        kept = policy.summary_tokens + 2 * state + growth * policy.compaction_keep_steps
        prices = policy.prices
        cycle = math.sqrt(2 * prices.write_5m * kept * growth / max(prices.read, 1e-9))
        if sum(old) <= growth * policy.compaction_keep_steps + cycle:
            return False
        saved_a_step = prices.read * (sum(old) + text_tokens(history.edits.summary) - kept)
        return self._steps_left(history) * saved_a_step > prices.write_5m * kept

    def _steps_left(self, history: History) -> float:
        """About how long this goes on: as long again as it has, as far as its limit lets it."""
        taken = history.next_number
        most = self.policy.max_steps
        return min(self.policy.steps_ahead, taken, taken if most is None else max(0, most - taken))

    def _compacted(self, history: History, *, keep_steps: int) -> Edits:
        before = choose_boundary(history, keep_steps=keep_steps)
        if before <= history.edits.compacted:
            return history.edits
        ref = self.keep_text(full_text(history.pairs[:before]))
        bound = min(self.policy.summary_tokens, self.policy.budget_tokens // 8)
        return compacted(history, before=before, max_tokens=bound, full_text_ref=ref)

    def _state_text(self, state: StateBlock, *, rebuilt: bool, said: Collection[str] = ()) -> tuple[str, bool]:
        """Whole when the context was rebuilt, when deltas have grown as large as the block, or when it is long ago."""
        bound = min(self.policy.state_tokens, self.policy.budget_tokens // 6)
        if self.sent is not None and not rebuilt and state.step - self.whole_at < self.policy.whole_state_steps:
            delta = state.delta_from(self.sent, said=said)
            if not delta:
                self.sent = state if said else self.sent
                return "", False
            cost = text_tokens(delta)
            if self.deltas_tokens + cost <= max(400, text_tokens(state.render(max_tokens=bound))):
                self.sent = state
                self.deltas_tokens += cost
                return delta, False
        self.sent, self.whole_at, self.deltas_tokens = state, state.step, 0
        return state.render(max_tokens=bound), True


def recorded_by(results: Sequence[ToolResult]) -> set[str]:
    """Short ids of the findings that these calls recorded; see `tools.recording.record_finding` for the line."""
    lines = [r.log for r in results if r.tool == "record_finding" and not r.is_error and r.log]
    return {line.split()[1].rstrip(":") for line in lines if len(line.split()) > 1}
