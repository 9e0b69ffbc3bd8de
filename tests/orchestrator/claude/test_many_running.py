"""Many subagents at once, and the process gone: what they had done is not done again, and only what failed is."""

from __future__ import annotations

import json
import re
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

from manifests.sessions import TRANSCRIPT_SCHEMA
from tests.orchestrator.claude.lab import Lab, assert_ledger_equals_charges, lab, make_works, opening_of

AREAS = ("orders", "payment", "shipping", "returns", "stock", "prices", "taxes", "mail")


def test_killed_with_eight_running_no_finished_call_runs_again_and_one_request_each_at_most(tmp_path: Path) -> None:
    works = make_works(tmp_path / "works", areas=AREAS, parts=3)
    slow = {"latency_s": 0.03, "event_delay_s": 0.002}
    with lab(tmp_path / "home", settings=slow, tasks=8, rounds=1, steps=8) as one:
        one.configure(fan_out=8)
        api = one.api
        assert api is not None
        question = "How do orders, payment, shipping, returns, stock, prices, taxes and mail work together?"
        process = one.start(
            "explore", str(works), question, "--engine", "claude", "--quiet", "--parallel", "8", "--yes"
        )
        while process.poll() is None and api.state["created"] < 1 + 8 * 4:
            time.sleep(0.02)
        process.kill()
        _, said = process.communicate()
        assert process.returncode == -signal.SIGKILL, said
        (listed,) = one.json("sessions")["sessions"]
        before = results_of(one, listed["session"])
        assert len(before) == 8 and sum(map(len, before.values())) >= 16
        got = one.json("resume", listed["session"], "--parallel", "8")
        after = results_of(one, listed["session"])
        assert api.problems == []
        assert {t["status"] for t in got["tasks"]} == {"finished"} and len(got["tasks"]) == 8
        assert max(n for counts in after.values() for n in counts.values()) == 1, "a call was run again"
        assert all(set(before[task]) <= set(after[task]) for task in before)
        repeated = Counter(
            opening
            for opening, n in Counter((opening_of(r.json), r.body) for r in api.created).items()
            for _ in range(n - 1)
        )
        assert max(Counter(opening for opening, _ in repeated).values(), default=0) <= 1
        assert_ledger_equals_charges(one.entries(listed["session"]), api.ledger)


def results_of(one: Lab, name: str) -> dict[str, Counter[str]]:
    """How often each call's result stands on record, by task."""
    found: dict[str, Counter[str]] = {}
    with one.session(name) as session:
        for task in session.names_of("transcripts", ".jsonl"):
            counts: Counter[str] = Counter()
            for record in session.read_log(f"transcripts/{task}.jsonl", TRANSCRIPT_SCHEMA):
                body: Any = record.body
                if body["k"] == "result":
                    counts[str(body["id"])] += 1
                for result in body.get("results", ()):
                    counts[str(result["id"])] += 1
            if counts:
                found[task] = counts
    return found


def test_of_102_tasks_one_of_which_failed_only_that_one_runs_again(tmp_path: Path) -> None:
    """And what resuming will take is said before anything is sent."""
    count = 102
    works = make_works(tmp_path / "works", areas=[f"area{n}" for n in range(count)], parts=1)
    task = {"deliverable": "", "depends_on": [], "share": 0.01}
    plan = [{"id": f"t{n}", "question": f"What does area{n} do?", "scope": [f"area{n}"], **task} for n in range(count)]
    coordinator = {
        "name": "scripted",
        "replies": {
            "At most": [json.dumps({"enough": False, "reason": "broad", "tasks": plan})],
            "<coverage>": [json.dumps({"found": False, "statements": []})],
        },
        "repeat_last": True,
    }
    models = {"models": {"claude-sonnet-5": coordinator, "claude-opus-5": {"name": "explorer", "steps": 2}}}
    with lab(tmp_path / "home", settings=models) as one:
        api = one.api
        assert api is not None
        one.configure(coordinator_model="claude-sonnet-5", fan_out=count, max_phases=1, parallel_requests=32)
        api.fail_next(*[{} for _ in range(4)], {"kind": "status", "status": 400, "error_type": "invalid_request_error"})
        options = ("--engine", "claude", "--max-agents", "300", "--parallel", "32", "--yes")
        done = one.run("explore", str(works), "What does each area do?", *options, "--json", timeout=100)
        got = json.loads(done.stdout)
        failed = [t["id"] for t in got["tasks"] if t["status"] != "finished"]
        assert len(got["tasks"]) == count and len(failed) == 1, done.stderr[-2_000:]
        seen, openings = len(api.created), one.openings(got["session"])
        again = one.run("resume", got["session"], *options[2:], "--json", timeout=100)
        assert re.search(r"1 subagent: about [\d,]+ tokens", again.stderr), again.stderr[-2_000:]
        assert {t["status"] for t in json.loads(again.stdout)["tasks"]} == {"finished"}
        asked = {opening_of(r.json) for r in api.created[seen:] if r.json.get("tools")}
        assert asked and asked <= {openings[failed[0]]}
