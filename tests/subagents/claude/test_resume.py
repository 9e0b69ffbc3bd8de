"""Killed at any append and started again: at most one model call is repeated, and no tool result is lost."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.fake_api.assertions import assert_all_valid
from tests.fake_api.models.explorer import Explorer
from tests.fake_api.thread import FakeApi
from tests.subagents.claude.world import World, settings_for

ROOT = Path(__file__).resolve().parents[3]


def child(api: FakeApi, folder: Path, repository: Path, *, model: str, die_at: int) -> subprocess.CompletedProcess[str]:
    given = {
        "folder": str(folder),
        "repository": str(repository),
        "base_url": api.base_url,
        "api_key": api.api_key,
        "model": model,
        "die_at": die_at,
    }
    command = [sys.executable, "-m", "tests.subagents.claude.child", json.dumps(given)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize(("model", "points"), [("claude-opus-5", (4, 15)), ("claude-opus-5-5", (12, 7))])
def test_a_killed_run_continues_where_it_stopped(
    tmp_path: Path, repository: Path, model: str, points: tuple[int, ...]
) -> None:
    with FakeApi(model=Explorer(steps=6)) as api:
        for point in points:
            done = child(api, tmp_path, repository, model=model, die_at=point)
            assert done.returncode == -signal.SIGKILL, done.stderr
        done = child(api, tmp_path, repository, model=model, die_at=0)
        assert done.returncode == 0, done.stderr
        result: dict[str, Any] = json.loads(done.stdout)
        assert_all_valid(api.requests)
        bodies = Counter(json.dumps(r.json["messages"]) for r in api.created)
        charged = api.totals
    assert result["status"] == "finished"
    assert len(result["findings"]) == len(set(result["findings"])) >= 3
    repeated = sum(count - 1 for count in bodies.values())
    assert repeated <= len(points)
    assert charged.requests - result["usage"]["requests"] <= len(points)


def test_tool_calls_that_finished_are_not_run_again(tmp_path: Path, repository: Path) -> None:
    """Each result stands in the transcript once, whatever instant the process died at."""
    with FakeApi(model=Explorer(steps=5, parallel=3)) as api:
        for point in (8, 11):
            child(api, tmp_path, repository, model="claude-opus-5", die_at=point)
        done = child(api, tmp_path, repository, model="claude-opus-5", die_at=0)
        assert done.returncode == 0, done.stderr
        assert_all_valid(api.requests)
    (transcript,) = (tmp_path / "state").rglob("transcripts/*.jsonl")
    answered: Counter[str] = Counter()
    for line in transcript.read_text().splitlines():
        body = json.loads(line)["body"]
        if body.get("k") == "result":
            answered[body["id"]] += 1
        for result in body.get("results", ()):
            answered[result["id"]] += 1
    assert answered
    assert max(answered.values()) == 1


async def test_what_a_limit_stopped_goes_on_where_it_stood(here: World) -> None:
    """The steps before the limit are not paid for again: the next request begins with them."""
    with FakeApi(model=Explorer(steps=9)) as api:
        first = await here.run(settings_for(api, max_turns=4))
        assert (first.status, "turns" in first.failure) == ("partial", True)
        before = api.created[-1].json["messages"]
        seen = len(api.created)
        second = await here.run(settings_for(api, max_turns=30))
        after = api.created[seen].json["messages"]
        assert_all_valid(api.requests)
        asked = [json.dumps(r.json["messages"]) for r in api.created]
    assert second.status == "finished"
    calls = [[b["id"] for b in m["content"] if b["type"] == "tool_use"] for m in before if m["role"] == "assistant"]
    again = [[b["id"] for b in m["content"] if b["type"] == "tool_use"] for m in after if m["role"] == "assistant"]
    assert again[: len(calls)] == calls and len(again) == len(calls) + 1
    assert len(set(asked)) == len(asked)
    assert second.usage["requests"] == len(asked), "what the first attempt cost counts on"
