"""What an exploration costs grows with its steps and no faster, and nothing is forgotten for it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from subagents.engine import Workspace
from tests.bench.claude_cost import Walker, files, input_cost, measure
from tests.fake_api.thread import FakeApi
from tests.subagents.claude.world import make_repository, opened, session_on, settings_for


def test_forty_steps_cost_half_of_the_naive_loop_and_every_fact_is_among_the_findings(tmp_path: Path) -> None:
    """0.40 at sixty steps, where the benchmark measures; here fewer, since the naive loop is slow to play."""
    made = asyncio.run(measure(40, model="claude-opus-5", folder=tmp_path))
    assert made.recovered == made.facts == 40
    assert made.ratio <= 0.50


async def test_twice_the_steps_cost_at_most_about_twice(tmp_path: Path) -> None:
    (tmp_path / "facts").mkdir()
    make_repository(tmp_path / "facts", files(120))
    with opened(tmp_path / "facts", tmp_path / "cache") as workspace:
        once, twice = [await cost(workspace, tmp_path / f"state{n}", n) for n in (60, 120)]
    assert twice <= 2.005 * once


async def cost(workspace: Workspace, state: Path, steps: int) -> float:
    with session_on(workspace, state) as here, FakeApi(model=Walker(steps), keep_bodies=False) as api:
        outcome = await here.run(settings_for(api, max_turns=steps + 10))
        assert outcome.status == "finished"
        assert len(here.recorder(here.task()).findings()) == steps
        return input_cost(api.totals)
