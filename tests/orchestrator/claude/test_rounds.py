"""A session goes on: further questions reuse what is known, and a moved HEAD costs only what it changed."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.orchestrator.claude.lab import Lab, assert_ledger_equals_charges, lab, make_works, opening_of, text_of
from tests.repositories import git


@pytest.fixture
def works(tmp_path: Path) -> Path:
    return make_works(tmp_path / "works")


def test_moved_lines_are_followed_changed_ones_asked_again_and_others_left_alone(tmp_path: Path, works: Path) -> None:
    with lab(tmp_path / "home", rounds=1) as one:
        assert one.api is not None
        before = one.explore(works)
        by_area = {area: _cited(before, area) for area in ("orders", "payment", "shipping")}
        moved, edited, left = (by_area[area][0] for area in ("orders", "payment", "shipping"))
        _prepend(works / moved["path"], "# one more line\n# and another\n")
        _replace_lines(works / edited["path"], edited["start"], edited["end"])
        git(works, "commit", "-qam", "Move and edit")
        seen = len(one.api.created)
        done = one.run("resume", before["session"], "--rebase", "--json")
        assert done.returncode == 0, done.stderr
        assert "stale" in done.stderr
        after = json.loads(done.stdout)
        assert after["snapshot"]["commit"] == git(works, "rev-parse", "HEAD")
        places = {(c["path"], c["start"], f["status"]) for f in after["findings"] for c in f["citations"]}
        assert (moved["path"], moved["start"] + 2, "verified") in places
        assert (moved["path"], moved["start"], "verified") not in places
        assert (edited["path"], edited["start"], "stale") in places
        assert (left["path"], left["start"], "verified") in places
        asked = {opening_of(r.json) for r in one.api.created[seen:] if r.json.get("tools")}
        assert len(asked) == 1, "one question was asked again"
        assert "payment" in next(iter(asked)).splitlines()[2]
        stale = {f["id"] for f in after["findings"] if f["status"] == "stale"}
        assert not {i for s in after["answer"]["statements"] for i in s["findings"]} & stale
        assert_ledger_equals_charges(one.entries(before["session"]), one.api.ledger)


def _cited(report: Any, area: str) -> list[Any]:
    found = [c for f in report["findings"] for c in f["citations"] if c["path"].startswith(f"{area}/")]
    assert found, area
    return found


def _prepend(path: Path, text: str) -> None:
    path.write_text(text + path.read_text())


def _replace_lines(path: Path, start: int, end: int) -> None:
    lines = path.read_text().split("\n")
    lines[start - 1 : end] = [f"# rewritten {n}" for n in range(start, end + 1)]
    path.write_text("\n".join(lines))


def test_a_further_question_starts_from_what_is_known(tmp_path: Path, works: Path) -> None:
    with lab(tmp_path / "home", rounds=1) as one:
        assert one.api is not None
        first = one.explore(works)
        seen = len(one.api.created)
        got = one.json("ask", first["session"], "Which limit does the first step use?")
        assert got["status"] == "answered"
        assert got["question"] == "Which limit does the first step use?"
        assert got["session"] == first["session"]
        new = [r.json for r in one.api.created[seen:]]
        assert not any(b.get("tools") for b in new), "what is known was enough: no subagent ran"
        assert all(f["claim"] in text_of(new[0]) for f in first["findings"][:3])
        assert "How do orders" in text_of(new[-1]), "the answer knows what was asked before"
        shown = one.json("show", first["session"])
        assert shown["question"] == got["question"]
        said = prompt(one, first["session"], "/findings\n/cost\n/context\n/compact\n/context\n/quit\n")
        assert said.returncode == 0, said.stderr
        assert first["findings"][0]["claim"] in said.stdout
        assert "coordinator" in said.stdout
        assert "Asked: How do orders" in said.stdout
        assert "nothing is sent along" in said.stdout


def prompt(one: Lab, session: str, typed: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        one.command("ask", session),
        env=one.environment,
        cwd=one.home,
        input=typed,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
