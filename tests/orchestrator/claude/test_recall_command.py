"""`leadline eval recall` shows what a context layout is worth, says what that costs first, and keeps to limits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.fake_api.process import FakeApiProcess
from tests.orchestrator.claude.lab import Lab

LENGTHS = ("eval", "recall", "--lengths", "8000,40000")


@contextmanager
def narrow_lab(home: Path) -> Iterator[Lab]:
    """A model that sees only the first and the last 1,500 tokens."""
    home.mkdir()
    with FakeApiProcess(model={"name": "narrow", "first_tokens": 1_500, "last_tokens": 1_500}) as api:
        made = Lab(home, api)
        made.configure()
        yield made


def test_only_what_the_layout_restates_comes_back_from_the_middle(tmp_path: Path) -> None:
    with narrow_lab(tmp_path / "home") as one:
        assert one.api is not None
        got = one.json(*LENGTHS, "--facts", "2")
        assert len(one.api.created) == 6
        charged = one.api.totals
    assert got["model"] == "claude-opus-5"
    assert got["complete"] is True
    found = {(c["length_tokens"], c["context"], c["place"]): (c["recovered"], c["planted"]) for c in got["cells"]}
    assert len(found) == 2 * 3 * 5
    for context in ("as it is", "cleared", "compacted"):
        assert found[40_000, context, "start"] == (2, 2)
        assert found[40_000, context, "middle, recorded"] == (2, 2)
        assert found[40_000, context, "middle, only shown"] == (0, 2)
    assert got["usage"]["input_tokens"] == charged.prompt_tokens
    assert got["usage"]["cache_write_tokens"] == 0, "each context is sent once: nothing of it is worth a cache write"


def test_the_table_goes_to_stdout_and_the_estimate_before_it_to_stderr(tmp_path: Path) -> None:
    with narrow_lab(tmp_path / "home") as one:
        done = one.run("eval", "recall", "--lengths", "4000,9000000")
        assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 5
    assert "| 4,000 | cleared | 3/3 |" in done.stdout
    assert re.search(r"3 requests: about [\d,]+ tokens, about [\d.]+ USD", done.stderr)
    assert "left out" in done.stderr and "9,000,000" in done.stderr


def test_past_the_amount_a_script_is_refused_and_nothing_is_sent(tmp_path: Path) -> None:
    with narrow_lab(tmp_path / "home") as one:
        assert one.api is not None
        one.configure(limits="ask_above_cost = 0.001")
        refused = one.run(*LENGTHS)
        assert refused.returncode == 2
        assert "--yes" in refused.stderr
        assert one.api.created == []
        assert one.run(*LENGTHS, "--yes").returncode == 0


def test_a_limit_ends_it_with_what_there_is(tmp_path: Path) -> None:
    with narrow_lab(tmp_path / "home") as one:
        assert one.api is not None
        got = one.json(*LENGTHS, "--max-tokens", "30000", "--yes", code=5)
        spent = one.api.totals
        assert spent.prompt_tokens + spent.output_tokens <= 30_000
        assert got["complete"] is False
        assert {c["length_tokens"] for c in got["cells"]} == {8_000}
        priced = one.json(*LENGTHS, "--max-cost", "0.06", "--yes", code=5)
        assert priced["usage"]["cost_usd"] <= 0.06


def test_what_cannot_be_asked_is_one_clear_line(tmp_path: Path) -> None:
    with narrow_lab(tmp_path / "home") as one:
        assert one.api is not None
        for options in (("--lengths", "9000000"), ("--lengths", "many"), ("--model", "claude-nothing-1")):
            done = one.run("eval", "recall", *options)
            assert done.returncode == 2, (options, done.stderr)
            assert "Traceback" not in done.stderr
        assert one.api.created == []
