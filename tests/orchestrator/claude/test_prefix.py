"""Side by side on one prefix: it is paid for once, however many subagents start at the same time."""

from __future__ import annotations

from pathlib import Path

from tests.bench.claude_run import measure


async def test_six_subagents_write_the_shared_prefix_once_and_lose_no_fact(tmp_path: Path) -> None:
    made = await measure(agents=6, steps=8, model="claude-opus-5", folder=tmp_path)
    assert made.prefix_writes == 1
    assert made.recovered == made.facts == 48
    assert made.ratio < 0.8, "already at eight steps each; tests.bench.claude_run measures longer runs"
