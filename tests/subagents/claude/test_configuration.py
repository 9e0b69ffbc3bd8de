"""What is configured stands in the requests, and what the model does not accept is refused before anything is sent."""

from __future__ import annotations

from typing import Any

import pytest

from manifests.errors import UsageError
from orchestrator.summaries import build_summary
from subagents.claude.server_side import DIAGNOSIS_BETA
from subagents.engine import Workspace
from tests.fake_api.assertions import assert_all_valid
from tests.fake_api.models.explorer import Explorer
from tests.fake_api.thread import FakeApi
from tests.subagents.claude.world import World, settings_for


async def test_the_apis_own_cache_diagnosis_is_asked_for_with_the_reply_before(here: World) -> None:
    with FakeApi(model=Explorer(steps=3)) as api:
        assert (await here.run(settings_for(api, diagnostics=True))).status == "finished"
        assert_all_valid(api.requests)
        asked = [r.json["diagnostics"]["previous_message_id"] for r in api.created]
        assert asked[0] is None and all(asked[1:]) and len(set(asked)) == len(asked) >= 4
        assert all(DIAGNOSIS_BETA in r.headers["anthropic-beta"] for r in api.created)


async def test_the_cache_may_be_written_for_an_hour(here: World) -> None:
    with FakeApi(model=Explorer(steps=3)) as api:
        await here.run(settings_for(api, cache_ttl="1h"))
        assert_all_valid(api.requests)
    usages = [entry.usage for entry in here.entries]
    assert usages[0].write_1h and usages[1].read
    assert not any(usage.write_5m for usage in usages)


async def test_without_a_cache_nothing_is_marked(here: World) -> None:
    with FakeApi(model=Explorer(steps=3)) as api:
        assert (await here.run(settings_for(api, cache=False))).status == "finished"
        assert not any(b"cache_control" in r.body for r in api.created)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"model": "claude-opus-5-5", "thinking": "enabled", "thinking_budget_tokens": 2_000}, "thinking"),
        ({"model": "claude-haiku-4-5", "effort": "max"}, "effort"),
        ({"model": "claude-opus-4-5", "thinking": "enabled", "thinking_budget_tokens": 90_000}, "thinking"),
    ],
)
async def test_what_the_model_does_not_accept_is_refused_before_anything_is_sent(
    here: World, settings: dict[str, Any], named: str
) -> None:
    with FakeApi(model=Explorer(steps=3)) as api:
        with pytest.raises(UsageError, match=named) as caught:
            await here.run(settings_for(api, **settings))
        assert api.created == []
    assert caught.value.hint


async def test_after_a_phase_that_brought_nothing_no_other_is_planned(here: World, workspace: Workspace) -> None:
    with FakeApi(model=Explorer(steps=3)) as api:
        engine = here.engine(settings_for(api))
        try:
            assert await engine.plan(workspace, 2, [build_summary(1, "explore", [])]) is None
            assert await engine.plan(workspace, engine.settings.max_phases + 1, []) is None
        finally:
            await engine.close()
        assert api.requests == []
