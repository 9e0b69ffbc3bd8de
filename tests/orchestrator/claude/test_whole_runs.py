"""Explorations with several subagents in several phases, undisturbed and killed: nothing is lost and nothing paid
twice."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.orchestrator.claude.lab import (
    Lab,
    assert_ledger_equals_charges,
    finished_tasks,
    lab,
    make_works,
    opening_of,
    text_of,
    tool_results,
)

KILLS = 2
"""In the ordinary suite; `--every-step` makes forty."""


@pytest.fixture(scope="module")
def works(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_works(tmp_path_factory.mktemp("works") / "works")


def test_two_phases_of_three_end_in_an_answer_of_bound_statements(tmp_path: Path, works: Path) -> None:
    with lab(tmp_path / "home") as one:
        got = one.explore(works)
        assert one.api is not None
        assert one.api.problems == []
        assert got["status"] == "answered"
        assert [(t["phase"], t["status"]) for t in got["tasks"]] == [(1, "finished")] * 3 + [(2, "finished")] * 3
        known = {f["id"] for f in got["findings"] if f["status"] == "verified"}
        assert got["answer"]["statements"]
        assert all(s["findings"] and set(s["findings"]) <= known for s in got["answer"]["statements"])
        for finding in got["findings"]:
            for c in finding["citations"]:
                lines = (works / c["path"]).read_text().split("\n")
                assert "\n".join(lines[c["start"] - 1 : c["end"]]) == c["quote"]
        entries = one.entries(got["session"])
        assert_ledger_equals_charges(entries, one.api.ledger)
        assert not any(e.unknown for e in entries)
        assert got["usage"]["requests"] == len(one.api.ledger)
        assert_coordinator_saw_no_tool_output(one, got)
        assert one.json("show", got["session"], "--cost")["total"] == got["usage"]
        sent = [r.json["messages"] for r in one.api.created]
        for name in (got["tasks"][0]["id"], "plan", "answer"):
            names = [n for n in one.openings(got["session"]) if n.startswith(name)]
            shown = one.json("show", got["session"], "--context", names[0], "--turn", "1")
            assert shown["request"]["messages"] in sent
            assert shown["total_tokens"] > 0


def assert_coordinator_saw_no_tool_output(one: Lab, got: Any) -> None:
    assert one.api is not None
    bodies = [r.json for r in one.api.created]
    subagents = [b for b in bodies if b.get("tools")]
    coordinator = [b for b in bodies if not b.get("tools")]
    raw = {line.strip() for b in subagents for text in tool_results(b) for line in text.splitlines()}
    elsewhere = {line.strip() for b in subagents for line in text_of({**b, "messages": b["messages"][:1]}).splitlines()}
    only_raw = {line for line in raw - elsewhere if len(line) > 8}
    assert len(coordinator) >= 3
    assert len(only_raw) > 100
    said = {line.strip() for b in coordinator for line in text_of(b).splitlines()}
    assert not said & only_raw
    assert not any(list(tool_results(b)) for b in coordinator)


def test_killed_at_random_it_resumes_to_an_answer_and_pays_for_nothing_twice(
    tmp_path: Path, works: Path, request: pytest.FixtureRequest
) -> None:
    kills = 40 if request.config.getoption("--every-step") else KILLS
    dice = random.Random(7)
    for number in range(kills):
        with lab(tmp_path / f"home{number}", settings={"latency_s": 0.02, "event_delay_s": 0.002}) as one:
            killed_and_resumed(one, works, after=dice.randrange(1, 24), pause_s=dice.random() * 0.08)


def killed_and_resumed(one: Lab, works: Path, *, after: int, pause_s: float) -> None:
    api = one.api
    assert api is not None
    process = one.start("explore", str(works), "--engine", "claude", "--quiet", "How do orders get paid?")
    while process.poll() is None and api.state["created"] < after:
        time.sleep(0.005)
    time.sleep(pause_s)
    process.kill()
    _, said = process.communicate()
    if process.returncode == 0:
        return  # it was quicker
    assert process.returncode == -signal.SIGKILL, said
    (listed,) = one.json("sessions")["sessions"]
    done = finished_tasks(one.run("show", listed["session"], "--tasks", "--json"))
    openings = one.openings(listed["session"])
    seen = len(api.created)
    got = one.json("resume", listed["session"])
    assert got["status"] == "answered", (after, got["tasks"])
    assert api.problems == []
    ids = [f["id"] for f in got["findings"]]
    assert len(ids) == len(set(ids))
    assert {t["status"] for t in got["tasks"]} == {"finished"}
    asked_again = {opening_of(r.json) for r in api.created[seen:]}
    assert not asked_again & {openings[task] for task in done if task in openings}
    assert_ledger_equals_charges(one.entries(listed["session"]), api.ledger)
    requests = [r.body for r in api.created]
    repeated = len(requests) - len(set(requests))
    assert repeated <= 3, f"{repeated} requests were made twice, with at most three subagents running"
