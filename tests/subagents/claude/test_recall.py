"""The recall table tells a layout that keeps facts from one that loses them."""

from __future__ import annotations

import pytest

from subagents.claude.client import make_endpoint
from subagents.claude.recall import PLACES, conversation, evaluate, facts_for, probes_for, recovered, table
from tests.fake_api.models.narrow import Narrow
from tests.fake_api.thread import FakeApi
from tests.subagents.claude.world import quick_brake, settings_for


async def test_a_model_that_sees_only_both_ends_recovers_what_the_layout_restates() -> None:
    with FakeApi(model=Narrow(first_tokens=1_500, last_tokens=1_500)) as api:
        endpoint = make_endpoint(settings_for(api))
        facts = await endpoint.facts("claude-opus-5")
        entries: list[object] = []
        probes = probes_for(facts, lengths=[8_000, 40_000, 9_000_000])
        cells = await evaluate(endpoint, probes, brake=quick_brake(), on_entry=entries.append)
        await endpoint.close()
    assert len(entries) == len(api.created) == 6
    found = {(c.length_tokens, c.treatment, c.place): c.recovered / c.planted for c in cells}
    for length in (8_000, 40_000):
        for treatment in ("as it is", "cleared", "compacted"):
            assert found[length, treatment, "start"] == 1  # type: ignore[index]
            assert found[length, treatment, "middle, recorded"] == 1  # type: ignore[index]
    assert found[40_000, "as it is", "middle, only shown"] == 0
    assert found[40_000, "compacted", "middle, only shown"] == 0
    assert table(cells).count("\n") == 7


@pytest.mark.parametrize("length", [4_000, 30_000])
def test_a_value_counts_only_beside_its_own_name(length: int) -> None:
    facts = facts_for(length)
    swapped = "\n".join(f"{a.name} = {b.value}" for a, b in zip(facts, [*facts[1:], facts[0]], strict=True))
    assert sum(recovered(swapped, facts).values()) == 0
    right = "\n".join(f"- `{f.name}` = {f.value}" for f in facts)
    assert set(recovered(right, facts).values()) == {3}
    assert conversation(length, facts, "as it is") == conversation(length, facts, "as it is")
    assert len(PLACES) == 5
