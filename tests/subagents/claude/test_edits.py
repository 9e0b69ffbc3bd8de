"""Clearing and compaction over random conversations: every seam holds, and nothing signed or pinned is touched."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any, get_args

from hypothesis import given, settings
from hypothesis import strategies as st

from subagents.claude.assemble import FixedPart, assemble
from subagents.claude.clearing import clear_tool_results
from subagents.claude.compaction import compact_turns, compacted, summary_of
from subagents.claude.context import ContextKeeper, ContextPolicy, Pressure
from subagents.claude.history import ClearingMode, Edits, History
from subagents.claude.messages import Pair, Signed
from subagents.claude.prices import Prices
from subagents.claude.protocol import check_request, signature_key
from subagents.claude.state_block import StateBlock
from subagents.claude.tokens import text_tokens
from tests.subagents.claude.histories import Step, assistant_of, pairs_of, results_of, steps

FIXED = FixedPart(
    model="m",
    max_tokens=1_000,
    tools=({"name": "note", "description": "Notes.", "input_schema": {"type": "object"}},),
    role_prompt="Explore.",
    brief="A repository.",
)


def signed_keys(pairs: tuple[Pair, ...]) -> set[str]:
    return {signature_key(b.raw) for p in pairs for b in p.assistant.blocks if isinstance(b, Signed)}


def unmarked(messages: Any) -> Any:
    """Messages without cache marks, which may move freely."""
    messages = copy.deepcopy(list(messages))
    for message in messages:
        for block in message["content"]:
            block.pop("cache_control", None)
    return messages


@given(sequence=st.lists(steps(), min_size=1, max_size=8), before=st.integers(0, 9))
def test_clearing_keeps_seams_and_is_idempotent(sequence: list[Step], before: int) -> None:
    pairs = pairs_of(sequence)
    once = clear_tool_results(pairs, before=before)
    assert clear_tool_results(once, before=before) == once
    assert [p.assistant for p in once] == [p.assistant for p in pairs]
    history = History(opening="Task", pairs=tuple(once), edits=Edits(cleared=before, mode="batch"))
    check_request(assemble(FIXED, history), signed=signed_keys(pairs))


@given(sequence=st.lists(steps(), min_size=1, max_size=8), before=st.integers(0, 9))
def test_compaction_keeps_seams_and_is_idempotent(sequence: list[Step], before: int) -> None:
    pairs = pairs_of(sequence)
    before = min(before, len(pairs) - 1)
    history = History(opening="Task", pairs=pairs)
    edits = compacted(history, before=before, max_tokens=2_000)
    again = compacted(replace(history, edits=edits), before=before, max_tokens=2_000)
    assert again == edits
    assert compact_turns(compact_turns(pairs, before=before), before=before) == compact_turns(pairs, before=before)
    check_request(assemble(FIXED, replace(history, edits=edits)), signed=signed_keys(pairs))


@given(sequence=st.lists(steps(), min_size=1, max_size=12), tokens=st.integers(200, 3_000))
def test_summary_stays_inside_its_bound(sequence: list[Step], tokens: int) -> None:
    assert text_tokens(summary_of(pairs_of(sequence), max_tokens=tokens)) <= max(tokens, 260)


def shrunk(keeper: ContextKeeper, history: History, state: StateBlock, pressure: Pressure) -> History:
    """As the loop does it: the whole state block takes the place of the newest one, unless nothing changed."""
    edits, text = keeper.shrink(history, state, pressure)
    if edits == history.edits:
        return history
    last = history.pairs[-1]
    assert last.user is not None
    last = replace(last, user=replace(last.user, state=text, state_whole=True))
    return replace(history, pairs=(*history.pairs[:-1], last), edits=edits)


MODES: list[ClearingMode] = ["none", "batch", "behind", "server"]


@settings(max_examples=150, deadline=None)
@given(
    sequence=st.lists(steps(), min_size=1, max_size=14),
    mode=st.sampled_from([*MODES, "auto"]),
    shrinks=st.dictionaries(st.integers(0, 13), st.sampled_from(get_args(Pressure)), max_size=3),
    budget=st.sampled_from([2_000, 8_000, 100_000]),
)
def test_no_sent_thinking_ever_stands_behind_a_changed_prefix(
    sequence: list[Step], mode: Any, shrinks: dict[int, Pressure], budget: int
) -> None:
    """What a model that binds thinking checks: each block comes back after the very messages it was made after."""
    policy = ContextPolicy(prices=Prices(), budget_tokens=budget, clearing=mode, compaction_keep_steps=2)
    keeper = ContextKeeper(policy)
    state = StateBlock(goal="the goal, verbatim", findings=("first fact (a.py:1)",))
    history = History(opening="Task\n" + keeper.opening_state(state))
    made_after: dict[int, Any] = {}
    keys: set[str] = set()
    for number, step in enumerate(sequence):
        request = assemble(FIXED, history)
        assert assemble(FIXED, history) == request
        check_request(request, signed=keys)
        messages = unmarked(request.messages)
        thinking_of = [p for p in history.kept if p.assistant.thinks and p.number >= history.edits.thinking]
        for pair in thinking_of:
            at = 1 + 2 * (pair.number - history.edits.compacted)
            assert messages[:at] == made_after[pair.number]
        made_after[number] = messages
        pair = Pair(number=number, assistant=assistant_of(number, step))
        keys |= signed_keys((pair,))
        open_history = replace(history, pairs=(*history.pairs, pair))
        state = replace(state, step=number + 1, findings=(*state.findings, f"fact {number} (a.py:{number + 1})"))
        user, edits = keeper.close(open_history, results_of(number, step), (step.notice,), state)
        history = replace(history, pairs=(*history.pairs, replace(pair, user=user)), edits=edits)
        if number in shrinks:
            history = shrunk(keeper, history, state, shrinks[number])


@settings(max_examples=60, deadline=None)
@given(
    sequence=st.lists(steps(), min_size=6, max_size=16),
    mode=st.sampled_from([*MODES, "auto"]),
    pressures=st.lists(st.sampled_from(get_args(Pressure)), min_size=1, max_size=3),
)
def test_pinned_facts_stand_verbatim_in_what_is_sent_after_heavy_compaction(
    sequence: list[Step], mode: Any, pressures: list[Pressure]
) -> None:
    facts = ("Budget is 4,711 units (conf/limits.py:12)", "Retry lives in net/retry.py:8-40 and nowhere else")
    state = StateBlock(
        goal="Where is `Rétry` configured?",
        constraints=("Only files under net/",),
        deliverable="a list of settings",
        open_questions=("Does v2 differ?",),
    )
    keeper = ContextKeeper(ContextPolicy(prices=Prices(), budget_tokens=30_000, clearing=mode))
    history = History(opening="Task\n" + keeper.opening_state(state))
    for number, step in enumerate(sequence):
        if number == 2:
            state = replace(state, findings=facts)
        pair = Pair(number=number, assistant=assistant_of(number, step))
        open_history = replace(history, pairs=(*history.pairs, pair))
        state = replace(state, step=number + 1)
        user, edits = keeper.close(open_history, results_of(number, step), (), state)
        history = replace(history, pairs=(*history.pairs, replace(pair, user=user)), edits=edits)
    for pressure in pressures:
        history = shrunk(keeper, history, state, pressure)
        sent = "\n".join(b.get("text", "") for m in assemble(FIXED, history).messages for b in m["content"])
        for fact in (*facts, state.goal, *state.constraints, state.deliverable, *state.open_questions):
            assert fact in sent
