"""The dashboards: a request shown is the request that was sent, and the ledger is what the endpoint charged."""

from __future__ import annotations

import pytest

from manifests.errors import UsageError
from subagents.claude.prices import Prices
from subagents.claude.report import context_report, cost_report
from subagents.claude.store import SessionEngineStore
from tests.fake_api.models.explorer import Explorer
from tests.fake_api.thread import FakeApi
from tests.subagents.claude.world import World, settings_for


@pytest.mark.parametrize("model", ["claude-opus-5", "claude-haiku-4-5"])
async def test_each_request_can_be_shown_as_it_was_sent(here: World, model: str) -> None:
    task = here.task()
    with FakeApi(model=Explorer(steps=9)) as api:
        await here.run(settings_for(api, model=model))
        sent = [request.json for request in api.created]
        sizes = [request.prompt_tokens for request in api.created]
    store = SessionEngineStore(here.session, here.evidence, here.redactor)
    for turn, (body, size) in enumerate(zip(sent, sizes, strict=True), 1):
        report = context_report(task.id, store.records(task.id), turn=turn, evidence=store.evidence)
        assert report.sent and report.calibrated
        assert report.request.body["messages"] == body["messages"]
        assert report.request.body["system"] == body["system"]
        assert abs(report.total_tokens - size) <= len(report.parts) + 1
        assert {"tools", "system", "brief", "task", "state block", "hints"} <= {part.name for part in report.parts}
    following = context_report(task.id, store.records(task.id), evidence=store.evidence)
    assert not following.sent
    with pytest.raises(UsageError, match="turn 99"):
        context_report(task.id, store.records(task.id), turn=99, evidence=store.evidence)
    with pytest.raises(UsageError, match="no conversation"):
        context_report("t0", [])


async def test_the_cost_report_adds_up_to_what_was_charged(here: World) -> None:
    task = here.task()
    with FakeApi(model=Explorer(steps=6)) as api:
        await here.run(settings_for(api))
        charged = api.totals
    store = SessionEngineStore(here.session, here.evidence, here.redactor)
    report = cost_report({task.id: store.records(task.id)}, Prices(per_million=4.0))
    assert len(report.rows) == charged.requests
    assert report.totals.uncached == charged.input_tokens
    assert report.totals.write == charged.write_tokens
    assert report.totals.read == charged.read_tokens
    assert report.totals.output == charged.output_tokens
    assert report.money == pytest.approx(report.totals.equivalents * 4 / 1_000_000)
    assert report.warnings == ()
