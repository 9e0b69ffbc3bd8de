"""Long runs in small windows, and runs under faults: nothing exceeds its budget, breaks a seam or loses a finding."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from manifests.errors import EngineError
from subagents.claude.budget import input_budget
from subagents.engine import Workspace
from tests.fake_api.assertions import (
    assert_all_valid,
    assert_pinned,
    assert_prefix_stable,
    assert_within,
    tokens_by_request,
)
from tests.fake_api.faults import SEEDED_KINDS, Fault, FaultPlan, seeded
from tests.fake_api.models.explorer import Explorer
from tests.fake_api.models.unruly import Garbler
from tests.fake_api.thread import FakeApi
from tests.subagents.claude.world import World, make_repository, modules, opened, session_on, settings_for

SEEDS = int(os.environ.get("LEADLINE_FAULT_SEEDS", "12"))
"""300 for the whole matrix."""


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    folder = tmp_path_factory.mktemp("large")
    (folder / "repository").mkdir()
    make_repository(folder / "repository", modules(24, functions=60))
    with opened(folder / "repository", folder / "cache") as made:
        yield made


@pytest.fixture
def there(tmp_path: Path, large: Workspace) -> Iterator[World]:
    with session_on(large, tmp_path / "state") as made:
        yield made


@pytest.mark.parametrize(
    ("model", "clearing"), [("claude-opus-5", "auto"), ("claude-opus-5", "batch"), ("claude-opus-5-5", "auto")]
)
async def test_two_hundred_turns_in_a_small_window(there: World, model: str, clearing: Any) -> None:
    window = 30_000
    task = there.task(deliverable="all limits, verbatim", settings={"constraints": ["never guess"], "max_turns": 220})
    with FakeApi(model=Explorer(steps=200, parallel=2), window_tokens=window, max_output_tokens=3_000) as api:
        settings = settings_for(api, model=model, reply_tokens=2_500, clearing=clearing)
        outcome = await there.run(settings, task)
        assert_all_valid(api.requests)
        assert_within(api.created, input_budget(window, 2_500, 0, settings.margin))
        assert_pinned(api.created, [task.question, "all limits, verbatim", "never guess"])
        assert_prefix_stable(api.created)
        (sizes,) = tokens_by_request(api.created).values()
        assert len(sizes) >= 200
        first, second = sum(sizes[:100]), sum(sizes[100:200])
        assert second < 1.6 * first
    assert outcome.status in ("finished", "partial")
    findings = there.recorder(task).findings()
    assert len(findings) > 80
    assert_read_from_the_cache(there, clearing)
    if clearing == "auto":
        cleared = [cleared_by_api(request.reply or {}) for request in api.created]
        theirs = [now != before for before, now in pairwise([0, *cleared])]
        outside = sum(not (e.cleared or by_api) for e, by_api in zip(there.entries, theirs, strict=True))
        assert outside <= 5, "the default way, ours or the API's, clears behind every turn but the first"


def cleared_by_api(reply: Mapping[str, Any]) -> int:
    """How many results the API left out of the request that this is the reply to."""
    edits = (reply.get("context_management") or {}).get("applied_edits", ())
    return sum(edit.get("cleared_tool_uses", 0) for edit in edits)


def assert_read_from_the_cache(there: World, clearing: str) -> None:
    """In batches nine tenths of all input are read, turns left out that an edit went before. In the default way each
    turn clears: its newest results are sent once, then replaced, and never written; of all else nearly all is read."""
    usages = [e.usage for e in there.entries if not (clearing == "batch" and e.cleared)]
    assert len(usages) >= 150
    assert all(u.read is not None and u.uncached is not None for u in usages)
    read, written = sum(u.read or 0 for u in usages), sum(u.write_5m or 0 for u in usages)
    if clearing == "batch":
        assert read / (read + written + sum(u.uncached or 0 for u in usages)) >= 0.9
    else:
        assert read / (read + written) >= 0.95


KINDS = (
    *SEEDED_KINDS,
    Fault(kind="status", status=400, error_type="invalid_request_error", message="prompt is too long: 9 > 8 maximum"),
    Fault(kind="status", status=413, error_type="request_too_large", message="too large"),
)


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_under_faults_a_run_ends_answered_or_resumes_to_an_answer(there: World, seed: int) -> None:
    model = ("claude-opus-5", "claude-opus-5-5", "claude-haiku-4-5")[seed % 3]
    inner = Explorer(steps=10, parallel=1 + seed % 3)
    plan = FaultPlan(seeded(seed, 0.25, KINDS, most=12))
    with FakeApi(model=Garbler(seed=seed, rate=0.2, then=inner), faults=plan) as api:
        settings = settings_for(api, model=model)
        for _ in range(4):
            try:
                outcome = await there.run(settings)
            except EngineError:
                continue
            if outcome.status == "finished":
                break
        assert_all_valid(api.requests)
        assert api.problems == []
        recorded = Counter(f.id for f in there.recorder(there.task()).findings())
        known = sum((e.usage.input_total or 0) for e in there.entries)
        bound = known + sum(e.bound_input for e in there.entries if e.usage.uncached is None)
        charged = sum(c.input_tokens + c.write_5m_tokens + c.write_1h_tokens + c.read_tokens for c in api.ledger)
    assert outcome.status == "finished"
    assert recorded and max(recorded.values()) == 1
    assert known <= charged <= bound * 1.25
