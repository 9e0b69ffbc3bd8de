"""Whole runs through the real SDK against the fake API: every way a reply can end, and what the task makes of it."""

from __future__ import annotations

import os
from typing import Any

import pytest

from manifests.errors import EngineError, UsageError
from subagents.claude.stops import SessionClosed
from tests.fake_api import reply
from tests.fake_api.assertions import assert_all_valid
from tests.fake_api.faults import Fault, FaultPlan, between, by_number
from tests.fake_api.models.explorer import Explorer
from tests.fake_api.models.scripted import Ruled, Scripted, Sequential
from tests.fake_api.models.unruly import Chatty, Empty, Garbler, Liar, Odd, Pauser, Refuser, Stuck
from tests.fake_api.thread import FakeApi
from tests.subagents.claude.world import World, settings_for

MODELS = ("claude-opus-5", "claude-opus-5-5", "claude-haiku-4-5")
"""Without thinking by default; with thinking bound to its prefix; the oldest that is served."""


def texts_of(api: FakeApi) -> str:
    return "\n".join(str(request.json["messages"]) for request in api.created)


@pytest.mark.parametrize("model", MODELS)
async def test_an_exploring_model_ends_finished_with_checked_findings(here: World, model: str) -> None:
    with FakeApi(model=Explorer(steps=8)) as api:
        outcome = await here.run(settings_for(api, model=model))
        assert_all_valid(api.requests)
        assert api.problems == []
        charged = api.totals
    assert outcome.status == "finished"
    assert len(here.recorder(here.task()).findings()) >= 3
    assert outcome.usage["output_tokens"] == charged.output_tokens
    assert outcome.usage["input_tokens"] == charged.input_tokens
    assert outcome.usage["cache_read_tokens"] == charged.read_tokens
    assert outcome.coverage.files_read


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("within", ["text", "tool"])
async def test_a_reply_cut_at_the_output_limit_is_continued(here: World, model: str, within: str) -> None:
    with FakeApi(model=Chatty(within=within, times=2, then=Explorer(steps=4))) as api:
        outcome = await here.run(settings_for(api, model=model, reply_tokens=1_000))
        assert_all_valid(api.requests)
        assert "cut at the output limit" in texts_of(api)
    assert outcome.status == "finished"


async def test_a_model_that_is_always_cut_ends_and_is_not_done(here: World) -> None:
    with FakeApi(model=Chatty(times=100)) as api:
        outcome = await here.run(settings_for(api, reply_tokens=500))
    assert outcome.status == "incomplete"
    assert "max_tokens" in outcome.failure
    assert len(api.created) <= 5


async def test_calls_of_a_refused_reply_are_not_run(here: World) -> None:
    search = reply.tool("list_files", {"path": ""})
    refusing = Scripted([reply.Reply([search], "refusal")])
    with FakeApi(model=refusing) as api:
        outcome = await here.run(settings_for(api))
    assert outcome.status == "failed"
    assert "refused" in outcome.failure
    assert list(here.evidence.records()) == []


async def test_findings_before_a_refusal_are_in_the_result(here: World) -> None:
    with FakeApi(model=Refuser(at=5)) as api:
        outcome = await here.run(settings_for(api))
    assert outcome.status == "partial"
    assert here.recorder(here.task()).findings()


@pytest.mark.parametrize("model", MODELS)
async def test_a_paused_turn_goes_back_as_it_is_and_is_continued(here: World, model: str) -> None:
    with FakeApi(model=Pauser(at=2)) as api:
        outcome = await here.run(settings_for(api, model=model))
        assert_all_valid(api.requests)
        assert api.problems == []
    assert outcome.status == "finished"


@pytest.mark.parametrize("block", [True, False])
@pytest.mark.parametrize("model", MODELS)
async def test_an_empty_reply_never_goes_back_empty(here: World, model: str, block: bool) -> None:
    with FakeApi(model=Empty(at=1, block=block, then=Explorer(steps=5))) as api:
        outcome = await here.run(settings_for(api, model=model))
        assert_all_valid(api.requests)
    assert outcome.status == "finished"


async def test_a_final_text_without_findings_is_asked_once_then_incomplete(here: World) -> None:
    with FakeApi(model=Scripted([reply.say("Report delivered above.")], repeat_last=True)) as api:
        outcome = await here.run(settings_for(api))
        assert len(api.created) == 2
        assert "Nothing has been recorded" in texts_of(api)
    assert outcome.status == "incomplete"


async def test_a_claimed_report_with_invented_citations_is_incomplete(here: World) -> None:
    with FakeApi(model=Liar()) as api:
        outcome = await here.run(settings_for(api))
    assert outcome.status == "incomplete"
    assert not here.recorder(here.task()).findings()


async def test_findings_stand_though_the_last_message_is_one_more_call(here: World) -> None:
    with FakeApi(model=Explorer(steps=100)) as api:
        outcome = await here.run(settings_for(api, max_turns=6))
        assert len(api.created) == 6
    assert outcome.status == "partial"
    assert "turns" in outcome.failure
    assert here.recorder(here.task()).findings()


async def test_a_model_that_repeats_itself_is_told_once_then_stopped(here: World) -> None:
    with FakeApi(model=Stuck()) as api:
        outcome = await here.run(settings_for(api))
        told = sum("brought nothing new" in str(r.json["messages"][-1]) for r in api.created)
        assert told == 1
        assert len(api.created) < 20
    assert outcome.status == "incomplete"
    assert "no progress" in outcome.failure


async def test_garbled_calls_are_answered_with_errors_and_the_run_goes_on(here: World) -> None:
    with FakeApi(model=Garbler(seed=3, rate=0.5, then=Explorer(steps=12))) as api:
        outcome = await here.run(settings_for(api))
        assert_all_valid(api.requests)
        assert "error unknown_tool" in texts_of(api)
        assert "error invalid_argument" in texts_of(api)
    assert outcome.status == "finished"


async def test_an_unknown_stop_reason_is_an_error_never_done(here: World) -> None:
    with FakeApi(model=Odd(stop_reason="tea_break")) as api:
        outcome = await here.run(settings_for(api))
    assert outcome.status == "failed"
    assert "tea_break" in outcome.failure


async def test_output_that_meets_the_end_of_the_window_compacts_and_goes_on(here: World) -> None:
    odd = Odd(stop_reason="model_context_window_exceeded", at=4, then=Explorer(steps=10))
    with FakeApi(model=odd) as api:
        outcome = await here.run(settings_for(api))
        assert_all_valid(api.requests)
        assert "<earlier_steps>" in str(api.created[5].json["messages"][0])
    assert outcome.status == "finished"


@pytest.mark.parametrize("model", MODELS)
async def test_a_full_window_told_as_400_is_compacted_and_sent_once_more(here: World, model: str) -> None:
    full = Fault(status=400, error_type="invalid_request_error", message="prompt is too long: 9 tokens > 8 maximum")
    with FakeApi(model=Explorer(steps=8), faults=FaultPlan(by_number({5: full}))) as api:
        outcome = await here.run(settings_for(api, model=model))
        assert_all_valid(api.requests)
    assert outcome.status == "finished"


async def test_a_window_that_stays_full_ends_with_what_there_is(here: World) -> None:
    full = Fault(status=400, error_type="invalid_request_error", message="prompt is too long: 9 tokens > 8 maximum")
    with FakeApi(model=Explorer(steps=8), faults=FaultPlan(between(5, 99, full))) as api:
        outcome = await here.run(settings_for(api))
    assert outcome.status == "partial"
    assert "does not fit" in outcome.failure


async def test_a_body_that_is_too_large_is_shrunk(here: World) -> None:
    large = Fault(status=413, error_type="request_too_large", message="Request exceeds the maximum size")
    with FakeApi(model=Explorer(steps=8), faults=FaultPlan(by_number({4: large}))) as api:
        outcome = await here.run(settings_for(api))
    assert outcome.status == "finished"


async def test_a_400_after_an_edit_names_the_edit(here: World) -> None:
    bad = Fault(status=400, error_type="invalid_request_error", message="messages.3: no such thing")
    with FakeApi(model=Explorer(steps=8), faults=FaultPlan(by_number({5: bad}))) as api:
        outcome = await here.run(settings_for(api))
    assert outcome.status == "partial"
    assert "messages.3: no such thing" in outcome.failure
    assert "after behind up to step 4" in outcome.failure


@pytest.mark.parametrize("status", [401, 402, 403])
async def test_a_refused_key_stops_the_session_at_once_and_resumes(here: World, status: int) -> None:
    kinds = {401: "authentication_error", 402: "billing_error", 403: "permission_error"}
    refused = Fault(status=status, error_type=kinds[status], message="no")
    with FakeApi(model=Explorer(steps=5), faults=FaultPlan(by_number({3: refused}))) as api:
        with pytest.raises(SessionClosed) as caught:
            await here.run(settings_for(api))
        assert len(api.created) == 4
        assert caught.value.exit_code == 4
        assert "resume" in caught.value.hint
        outcome = await here.run(settings_for(api))
    assert outcome.status == "finished"


@pytest.mark.parametrize(
    "kind", ["reset_before", "reset_after_headers", "reset_mid", "end_early", "cut_json", "sse_error", "garbage"]
)
async def test_connections_and_streams_that_break_are_tried_again(here: World, kind: Any) -> None:
    with FakeApi(model=Explorer(steps=5), faults=FaultPlan(by_number({2: Fault(kind=kind, after_events=3)}))) as api:
        outcome = await here.run(settings_for(api))
        assert_all_valid(api.requests)
    assert outcome.status == "finished"


async def test_streams_that_always_break_end_the_task_not_the_program(here: World) -> None:
    with FakeApi(model=Explorer(), faults=FaultPlan(between(2, 99, Fault(kind="end_early", after_events=3)))) as api:
        outcome = await here.run(settings_for(api))
        assert len(api.created) < 12
    assert outcome.status in ("partial", "failed")


async def test_a_cut_stream_is_in_the_ledger_with_a_bound(here: World) -> None:
    with FakeApi(
        model=Explorer(steps=3), faults=FaultPlan(by_number({1: Fault(kind="reset_mid", after_events=3)}))
    ) as api:
        outcome = await here.run(settings_for(api))
    cut = [e for e in here.entries if e.kind == "cut"]
    assert len(cut) == 1
    assert cut[0].usage.uncached is not None
    assert cut[0].usage.output is None
    assert cut[0].bound_output > 0
    assert outcome.usage["unknown_requests"] == 1


async def test_a_page_of_html_is_said_to_be_one(here: World) -> None:
    with FakeApi(faults=FaultPlan(between(0, 9, Fault(kind="html", status=200)))) as api:
        with pytest.raises(UsageError) as caught:
            await here.run(settings_for(api))
        assert len(api.created) == 1
    assert "text/html" in str(caught.value)
    assert caught.value.exit_code == 2


async def test_an_unknown_model_is_one_clear_line(here: World) -> None:
    with FakeApi() as api, pytest.raises((UsageError, EngineError)) as caught:
        await here.run(settings_for(api, model="claude-nonsense-9"))
    assert "claude-nonsense-9" in str(caught.value)


async def test_a_window_too_small_for_the_fixed_part_is_refused_before_anything_is_spent(here: World) -> None:
    with FakeApi(window_tokens=4_000) as api, pytest.raises(UsageError) as caught:
        await here.run(settings_for(api))
    assert api.created == []
    assert "input tokens" in str(caught.value)


async def test_a_compatible_server_needs_a_configured_window_and_then_works(here: World) -> None:
    with FakeApi(model=Explorer(steps=6), persona="compatible") as api:
        with pytest.raises(UsageError, match="window"):
            await here.run(settings_for(api, model="local"))
        outcome = await here.run(settings_for(api, model="local", window_tokens=32_768))
    assert outcome.status == "finished"


async def test_a_limit_in_money_holds_where_no_usage_is_reported(here: World) -> None:
    from dataclasses import replace

    from tests.fake_api.persona import COMPATIBLE

    with FakeApi(model=Explorer(steps=40), persona=replace(COMPATIBLE, usage="none", has_count_tokens=False)) as api:
        prices = {"default": {"per_million": 3.0}}
        task = here.task(settings={"max_cost": 0.2})
        outcome = await here.run(settings_for(api, model="local", window_tokens=32_768, prices=prices), task)
    assert outcome.failure == "the limit on cost was reached"


async def test_a_server_that_reports_no_usage_has_unknown_costs_with_a_bound(here: World) -> None:
    from dataclasses import replace

    from tests.fake_api.persona import COMPATIBLE

    with FakeApi(model=Explorer(steps=3), persona=replace(COMPATIBLE, usage="none", has_count_tokens=False)) as api:
        outcome = await here.run(settings_for(api, model="local", window_tokens=32_768))
    assert outcome.status == "finished"
    assert outcome.usage["unknown_requests"] == outcome.usage["requests"]
    assert outcome.usage["unknown_input_bound"] > 1_000


async def test_a_model_without_tools_ends_incomplete(here: World) -> None:
    with FakeApi(model=Ruled(lambda call: reply.say("I think it is fine."))) as api:
        outcome = await here.run(settings_for(api))
    assert outcome.status == "incomplete"


async def test_a_secret_in_a_file_is_neither_sent_nor_written(tmp_path: Any) -> None:
    from tests.subagents.claude.world import make_repository, world

    secret = "AKIAIOSFODNN7QXAMPLE"
    folder = tmp_path / "repository"
    folder.mkdir()
    make_repository(folder, {"conf.py": f"KEY_ID = 'x'\naws_access_key_id = '{secret}'\nREGION = 'north'\n"})
    script = [
        reply.Reply([reply.tool("read_file", {"path": "conf.py"})]),
        reply.Reply([reply.tool("record_finding", {"claim": "Keys are in conf.py", "citations": ["conf.py:1-3"]})]),
        reply.say("Done."),
    ]
    with world(tmp_path, folder) as here, FakeApi(model=Sequential(script)) as api:
        outcome = await here.run(settings_for(api))
        assert secret not in texts_of(api)
        assert "[redacted:" in texts_of(api)
        written = b"".join(p.read_bytes() for p in here.session.folder.rglob("*") if p.is_file())
    assert outcome.status == "finished"
    assert secret.encode() not in written


async def test_without_a_key_a_server_of_ones_own_is_tried_and_the_public_one_is_not(
    here: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    for name in [name for name in os.environ if name.startswith(("ANTHROPIC_", "XDG_"))]:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    with FakeApi(model=Explorer(steps=3), persona="compatible") as api:
        outcome = await here.run(settings_for(api, api_key="", model="local", window_tokens=32_768))
    assert outcome.status == "finished"
    with FakeApi() as api:
        with pytest.raises(SessionClosed):
            await here.run(settings_for(api, api_key=""))
        with pytest.raises(UsageError, match="no credentials"):
            await here.run(settings_for(api, api_key="", base_url=""))
