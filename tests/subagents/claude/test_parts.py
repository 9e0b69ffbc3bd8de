"""The small parts on their own: replies, budgets, prices, the ledger, progress, warming, diagnosis, configuration."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifests.errors import UsageError
from subagents.claude.budget import Spending, TaskLimits, check_fixed_part, input_budget, limit_near, limit_reached
from subagents.claude.clearing import RunFigures, choose_mode, policy_costs
from subagents.claude.config import ClaudeSettings, facts_from, newest_model, settings_from
from subagents.claude.diagnose import first_change, prints_of
from subagents.claude.ledger import Entry, entry_from_json, entry_to_json, never_reads, totals
from subagents.claude.messages import Request, Signed, Text, ToolUse, Usage, block_from_json, block_to_json
from subagents.claude.prices import Prices, prices_from
from subagents.claude.progress import Progress
from subagents.claude.replies import StreamReader, reply_of, usage_of
from subagents.claude.state_block import StateBlock
from subagents.claude.stops import Trouble
from subagents.claude.tokens import TokenMeter
from subagents.claude.transcript import redact_record
from subagents.claude.warm import Warmth


def message(*content: dict[str, Any], stop: str = "end_turn") -> dict[str, Any]:
    return {"id": "m", "model": "x", "content": list(content), "stop_reason": stop}


# --- replies ---


def test_arguments_that_are_no_object_are_kept_apart_and_never_run() -> None:
    cut = {"type": "tool_use", "id": "a", "name": "find", "input": {}, "input_json": '{"query": "x'}
    listed = {"type": "tool_use", "id": "b", "name": "find", "input_json": "[1]"}
    good = {"type": "tool_use", "id": "c", "name": "find", "input_json": '{"query": "x"}'}
    calls = reply_of(message(cut, listed, good), {}, number=0, used_ids=()).turn.calls
    assert [bool(c.broken) for c in calls] == [True, True, False]
    assert calls[2].input == {"query": "x"}


def test_ids_that_repeat_or_are_malformed_and_names_that_are_none_are_put_right() -> None:
    content = [
        {"type": "tool_use", "id": "same", "name": "find", "input": {}},
        {"type": "tool_use", "id": "same", "name": "fi nd()" + "x" * 99, "input": {}},
        {"type": "tool_use", "id": "a b", "name": "", "input": {}},
        {"type": "tool_use", "id": "used", "name": "find", "input": None},
    ]
    calls = reply_of(message(*content), {}, number=3, used_ids={"used"}).turn.calls
    assert [c.id for c in calls] == ["same", "toolu_s3_1", "toolu_s3_2", "toolu_s3_3"]
    assert calls[1].name.startswith("fi_nd__") and len(calls[1].name) == 64
    assert calls[2].name == "unnamed"
    assert calls[3].broken


def test_thinking_without_a_signature_cannot_go_back_and_signed_blocks_stay_as_they_are() -> None:
    signed = {"type": "thinking", "thinking": "hm", "signature": "s"}
    redacted = {"type": "redacted_thinking", "data": "d"}
    blocks = reply_of(
        message({"type": "thinking", "thinking": "x"}, signed, redacted), {}, number=0, used_ids=()
    ).turn.blocks
    assert [b.raw for b in blocks if isinstance(b, Signed)] == [signed, redacted]


@given(text=st.text(), name=st.text(min_size=1), given_=st.dictionaries(st.text(), st.integers() | st.text()))
def test_blocks_survive_the_transcript(text: str, name: str, given_: dict[str, Any]) -> None:
    for block in (
        Text(text=text),
        ToolUse(id="i", name=name, input=given_, broken=text),
        Signed(raw={"type": "thinking"}),
    ):
        assert block_from_json(block_to_json(block)) == block


def event(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, **fields}


START = event("message_start", message={"id": "m", "model": "x", "usage": {"input_tokens": 5, "output_tokens": 1}})
END = event("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 9})


@pytest.mark.parametrize(
    "events",
    [
        [],
        [START],
        [START, END],
        [END],
        [START, event("content_block_delta", index=3, delta={"type": "text_delta", "text": "x"})],
        [START, event("content_block_start", index=0)],
        [START, event("message_delta", delta={"stop_reason": None}), event("message_stop")],
    ],
)
def test_a_stream_that_is_not_whole_is_trouble_never_a_reply(events: list[Any]) -> None:
    reader = StreamReader()
    with pytest.raises(Trouble) as caught:
        for one in events:
            reader.take(one)
        reader.message()
    assert caught.value.kind == "broken"


def test_usage_that_is_not_reported_is_unknown_not_zero() -> None:
    assert usage_of({}).uncached is None and usage_of({}).input_total is None
    null = usage_of({"input_tokens": 7, "cache_read_input_tokens": None, "output_tokens": 2})
    assert (null.input_total, null.read) == (7, None)
    full = usage_of(
        {
            "input_tokens": 1,
            "cache_creation_input_tokens": 30,
            "cache_creation": {"ephemeral_1h_input_tokens": 10, "ephemeral_5m_input_tokens": 20},
            "cache_read_input_tokens": 100,
            "output_tokens": 5,
            "iterations": [{"type": "compaction", "input_tokens": 50, "output_tokens": 6}, {"type": "message"}],
        }
    )
    assert (full.write_5m, full.write_1h, full.input_total, full.extra_input, full.extra_output) == (20, 10, 131, 50, 6)


# --- budgets, prices, ledger ---


def test_the_input_budget_is_what_the_reply_thinking_and_margin_leave() -> None:
    assert input_budget(200_000, 20_000, 10_000, 0.1) == 153_000
    with pytest.raises(UsageError, match="leaves no input"):
        input_budget(4_000, 4_000, 0, 0.0)
    check_fixed_part(4_000, 8_000)
    with pytest.raises(UsageError, match="input tokens"):
        check_fixed_part(4_001, 8_000)


def test_limits_are_named_when_near_and_when_reached() -> None:
    limits = TaskLimits(max_turns=10, max_tokens=1_000, max_minutes=5)
    assert limit_reached(limits, Spending(turns=9, tokens=999)) == ""
    assert limit_near(limits, Spending(turns=9, tokens=999)) == "tokens"
    assert limit_reached(limits, Spending(turns=10)) == "turns"
    assert limit_reached(limits, Spending(seconds_before=301)) == "minutes"


def entry(usage: Usage, **fields: Any) -> Entry:
    return Entry(
        **{"task": "t", "turn": 0, "kind": "message", "usage": usage, "bound_input": 500, "bound_output": 50, **fields}
    )


def test_the_ledger_adds_up_known_figures_and_bounds_unknown_ones() -> None:
    entries = [
        entry(Usage(uncached=10, write_5m=100, read=1_000, output=7)),
        entry(Usage(), kind="cut"),
        entry(Usage(uncached=3, output=None), kind="cut"),
    ]
    sums = totals(entries, Prices(per_million=2.0))
    assert (sums.requests, sums.uncached, sums.write, sums.read, sums.output) == (3, 13, 100, 1_000, 7)
    assert sums.input_equivalents == 13 + 125 + 100
    assert (sums.unknown_requests, sums.bound_input, sums.bound_output) == (2, 500, 100)
    back = [entry_from_json(entry_to_json(e)) for e in entries]
    assert totals(back, Prices(per_million=2.0)) == sums
    assert back[1:] == entries[1:]
    assert back[0] == replace(entries[0], bound_input=0, bound_output=0), "of what is known nobody asks for a bound"


def test_a_cache_that_is_written_and_never_read_is_noticed() -> None:
    writes = [entry(Usage(uncached=1, write_5m=50, read=0, output=1)) for _ in range(8)]
    assert never_reads(writes)
    assert not never_reads([*writes, entry(Usage(uncached=1, write_5m=5, read=40, output=1))])
    assert not never_reads([entry(Usage(uncached=50, output=1)) for _ in range(8)])


def test_prices_are_configuration_and_nonsense_is_refused() -> None:
    assert prices_from({"m": {"per_million": 3, "read": 0.2}}, "m") == Prices(per_million=3.0, read=0.2)
    assert prices_from({}, "m").money(1e6) is None
    for bad in ({"m": {"per_milion": 3}}, {"m": {"read": -1}}, {"m": 4}):
        with pytest.raises(UsageError):
            prices_from(bad, "m")


def test_estimates_follow_what_is_reported_up_at_once_and_down_slowly() -> None:
    meter = TokenMeter()
    meter.learn(raw=1_000, reported=1_500)
    assert meter.calibrated(1_000) >= 1_500
    meter.learn(raw=1_000, reported=1_000)
    assert 1_300 < meter.calibrated(1_000) < 1_500
    before = meter.factor
    meter.learn(raw=1_000, reported=None)
    meter.learn(raw=50, reported=5_000)
    assert meter.factor == before


def test_clearing_follows_the_figures_and_the_constraints() -> None:
    large, small = RunFigures(results=2_500, digests=80), RunFigures(results=90, digests=80, other=100)
    take = {"current": "none", "may_edit_behind": True, "server_side": False}
    assert choose_mode(large, Prices(), **take) == "behind"  # type: ignore[arg-type]
    assert choose_mode(small, Prices(), **take) == "none"  # type: ignore[arg-type]
    assert choose_mode(large, Prices(), **{**take, "may_edit_behind": False}) == "batch"  # type: ignore[arg-type]
    assert choose_mode(large, Prices(), current="none", may_edit_behind=False, server_side=True) == "server"
    assert choose_mode(large, Prices(), current="server", may_edit_behind=True, server_side=True) == "server"
    free_reads = Prices(read=0.0, write_5m=1.0)
    assert policy_costs(large, free_reads).none <= policy_costs(large, free_reads).behind


# --- progress, warmth, diagnosis ---


def test_the_same_call_again_and_again_is_told_once_then_stopped() -> None:
    progress = Progress()
    call = ToolUse(id="a", name="find", input={"query": "x"})
    verdicts = [progress.step([call], text="", news=1) for _ in range(12)]
    assert verdicts.count("warn") == 1
    assert "stop" in verdicts and verdicts.index("warn") < verdicts.index("stop")


def test_news_puts_an_end_to_idleness() -> None:
    progress = Progress(patience=3)
    for n in range(30):
        call = ToolUse(id=f"{n}", name="find", input={"query": str(n)})
        assert progress.step([call], text="", news=n % 2) == "on"


async def test_one_request_warms_the_prefix_before_the_others_start() -> None:
    warmth = Warmth()
    running: list[int] = []
    most_before = 0
    warm = False

    async def one(n: int) -> None:
        nonlocal most_before, warm
        async with warmth.entering("p", lambda: None) as begun:
            running.append(n)
            if not warm:
                most_before = max(most_before, len(running))
            await asyncio.sleep(0.001)
            warm = True
            begun()

    await asyncio.gather(*(one(n) for n in range(6)))
    assert most_before == 1 and len(running) == 6


async def test_a_leader_that_fails_hands_the_lead_on() -> None:
    warmth = Warmth()

    async def fail() -> None:
        async with warmth.entering("p", lambda: None):
            await asyncio.sleep(0)
            raise ValueError

    async def succeed() -> str:
        async with warmth.entering("p", lambda: None) as begun:
            begun()
            return "done"

    failed, done = await asyncio.gather(fail(), succeed(), return_exceptions=True)
    assert isinstance(failed, ValueError) and done == "done"


def request(system: str, *texts: str) -> Request:
    messages = [{"role": "user", "content": [{"type": "text", "text": t} for t in texts]}]
    return Request(body={"system": [{"type": "text", "text": system}], "messages": messages})


def test_a_moved_prefix_is_named_by_block_and_byte() -> None:
    before = prints_of(request("at 12:00", "a"))
    assert first_change(before, prints_of(request("at 12:00", "a", "b"))) is None
    change = first_change(before, prints_of(request("at 12:01", "a")))
    assert change is not None and change.where == "system.0"
    assert before[0].data[change.byte : change.byte + 1] == b"0"


# --- configuration ---


def test_the_newest_model_of_a_line_is_taken_from_the_list() -> None:
    names = ("claude-opus-4-8", "claude-opus-5-5", "claude-opus-5", "claude-opus-4-5-20251101", "claude-sonnet-6")
    assert newest_model(names, "opus") == "claude-opus-5-5"
    with pytest.raises(UsageError):
        newest_model(names, "haiku")


def test_the_sdks_own_list_has_a_default() -> None:
    from subagents.claude.client import known_models, model_of

    assert model_of(ClaudeSettings()) in known_models()


def test_settings_are_checked_and_the_environment_wins() -> None:
    read = settings_from({"model": "a", "window_tokens": 9, "limits": {"max_turns": 5}}, {"LEADLINE_MODEL": "b"})
    assert (read.model, read.window_tokens, read.limits.max_turns) == ("b", 9, 5)
    for bad in ({"modle": "x"}, {"window_tokens": "9"}, {"provider": "else"}, {"cache": 1}, {"limits": {"turns": 1}}):
        with pytest.raises(UsageError):
            settings_from(bad, {})
    assert "sk-1" not in repr(ClaudeSettings(api_key="sk-1"))


def test_the_window_comes_from_configuration_or_the_endpoint_never_from_code() -> None:
    with pytest.raises(UsageError, match="window"):
        facts_from(None, ClaudeSettings(), "m")
    assert facts_from({"meta": {"n_ctx": 8_192}}, ClaudeSettings(), "m").window_tokens == 8_192
    facts = facts_from({"max_input_tokens": 100, "max_tokens": 5}, ClaudeSettings(window_tokens=64), "m")
    assert (facts.window_tokens, facts.reply_tokens, facts.source) == (64, 5, "configuration")


# --- state block, records, imports ---


def test_a_delta_says_what_changed_and_nothing_else() -> None:
    before = StateBlock(goal="g", findings=("[f12345678] a",), open_questions=("q?",), step=3)
    after = StateBlock(
        goal="g", findings=("[f12345678] a", "[f23456789] b"), open_questions=(), read=("x.py 1-2",), step=4
    )
    assert after.delta_from(before).splitlines()[1:-1] == ["New finding: [f23456789] b", "Settled question: q?"]
    assert after.delta_from(after) == ""
    assert "[f23456789]" not in after.delta_from(before, said={"f23456789"})


@given(count=st.integers(0, 400), bound=st.integers(300, 3_000))
def test_the_state_block_is_bounded_and_always_has_its_goal(count: int, bound: int) -> None:
    block = StateBlock(
        goal="the goal", constraints=("never guess",), findings=tuple(f"[f{n:08}] fact" for n in range(count))
    )
    text = block.render(max_tokens=bound)
    assert "the goal" in text and "never guess" in text
    assert len(text) / 3.2 < bound * 1.3 + 100


def test_redaction_leaves_signed_blocks_alone() -> None:
    thinking = {"type": "thinking", "thinking": "x", "signature": "AKIAIOSFODNN7QXAMPLE"}
    body = {"k": "reply", "blocks": [thinking, {"type": "text", "text": "secret"}]}
    upper = redact_record(body, lambda v: {k: "R" if k == "text" else x for k, x in v.items()})  # type: ignore[attr-defined]
    assert upper == {"k": "reply", "blocks": [thinking, {"type": "text", "text": "R"}]}


def test_the_sdk_is_not_imported_before_a_client_is_made() -> None:
    code = (
        "import sys, subagents.claude.engine, subagents.tools.roles;"
        "print('anthropic' in sys.modules, 'numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
