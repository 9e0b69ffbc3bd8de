"""What a run may cost is said before it is spent, and limits hold over retries, phases and resumes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.orchestrator.claude.lab import QUESTION, Lab, lab, make_works, text_of


@pytest.fixture(scope="module")
def works(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_works(tmp_path_factory.mktemp("works") / "works")


def explore(one: Lab, works: Path) -> tuple[str, ...]:
    return ("explore", str(works), QUESTION, "--engine", "claude", "--json")


def test_past_the_amount_a_script_is_refused_and_yes_goes_on(tmp_path: Path, works: Path) -> None:
    with lab(tmp_path / "home", rounds=1) as one:
        assert one.api is not None
        one.configure(limits="ask_above_cost = 0.01")
        refused = one.run(*explore(one, works))
        assert refused.returncode == 2, refused.stderr
        assert refused.stdout == ""
        assert re.search(r"3 subagents: about [\d,]+ tokens, about [\d.]+ USD", refused.stderr)
        assert "--yes" in refused.stderr
        assert len(one.api.created) == 1, "only the plan was paid for"
        session = re.findall(r"leadline resume (\S+)", refused.stderr)[-1]
        got = one.json("resume", session, "--yes")
        assert got["status"] == "answered"
        assert sum(1 for r in one.api.created if not r.json.get("tools")) == 3, "one plan, one look back, one answer"


def test_a_limit_in_tokens_ends_in_a_partial_answer_and_holds_when_resumed(tmp_path: Path, works: Path) -> None:
    with lab(tmp_path / "home", steps=12) as one:
        assert one.api is not None
        limit = 90_000
        got = one.explore(works, "--max-tokens", str(limit), code=5)
        assert got["status"] == "partial"
        assert "limit" in got["answer"]["markdown"] or got["answer"]["statements"]
        assert got["findings"], "it answers from what it has"
        spent = one.api.totals
        assert spent.prompt_tokens + spent.output_tokens <= limit
        again = one.json("resume", got["session"], "--max-tokens", str(limit), code=5)
        spent = one.api.totals
        assert spent.prompt_tokens + spent.output_tokens <= limit
        assert {f["id"] for f in got["findings"]} <= {f["id"] for f in again["findings"]}


def test_a_limit_in_money_is_used_up_in_money_and_the_option_is_named(tmp_path: Path, works: Path) -> None:
    """Tokens that were read from the cache cost a tenth, so they count a tenth."""
    with lab(tmp_path / "home", steps=12) as one:
        got = one.explore(works, "--max-cost", "0.3", code=5)
        assert {t["failure"] for t in got["tasks"] if t["status"] == "partial"} == {"the limit on cost was reached"}
        assert 0.15 < got["usage"]["cost_usd"] <= 0.3
        assert "--max-cost N" in one.run("show", got["session"]).stdout


def test_money_without_a_price_is_refused(tmp_path: Path, works: Path) -> None:
    with lab(tmp_path / "home") as one:
        assert one.api is not None
        (one.home / "config.toml").write_text('[claude]\nmodel = "claude-opus-5"\n')
        refused = one.run(*explore(one, works), "--max-cost", "1")
        assert refused.returncode == 2
        assert "price" in refused.stderr
        assert one.api.created == []


def test_a_plan_of_hundreds_is_returned_once_then_replaced_by_one_that_fits(tmp_path: Path, works: Path) -> None:
    """One broad question, hundreds of subagents; and an answer that cites what nobody found."""
    task = {"scope": [], "deliverable": "", "depends_on": [], "share": 0.01}
    tasks = [{"id": f"t{n}", "question": f"Q {n}?", **task} for n in range(500)]
    invented = [{"text": "It retries five times.", "findings": ["f0123456789abcdef"]}, {"text": "So.", "findings": []}]
    script = {
        "At most": [json.dumps({"enough": False, "reason": "broad", "tasks": tasks})],
        "<coverage>": [json.dumps({"found": True, "statements": invented})],
    }
    coordinator = {"name": "scripted", "replies": script, "repeat_last": True}
    with lab(tmp_path / "home", settings={"models": {"claude-sonnet-5": coordinator}}) as one:
        assert one.api is not None
        one.configure(coordinator_model="claude-sonnet-5")
        done = one.run(*explore(one, works), "--max-agents", "3")
        assert done.returncode == 0, done.stderr
        got = json.loads(done.stdout)
        assert 1 <= len(got["tasks"]) <= 3
        assert re.search(r"[123] subagents?: about", done.stderr), "the product is shown before anything is launched"
        plans = [r.json for r in one.api.created if "At most" in text_of(r.json)]
        assert [len(p["messages"]) for p in plans] == [1, 3, 1, 3], "each plan was returned once"
        assert "500 tasks are proposed, at most 3" in text_of(plans[1])
        answers = [r.json for r in one.api.created if "<coverage>" in text_of(r.json)]
        assert "f0123456789abcdef" in text_of(answers[1])
        assert "retries five times" not in done.stdout
        assert got["answer"]["statements"], "code says what was found when the model's answer cannot be used"
