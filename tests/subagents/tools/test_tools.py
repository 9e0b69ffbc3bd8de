"""Each tool over a real repository: bounded, numbered, honest about what it left out, and never an exception."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from subagents.claude.messages import ToolResult, ToolUse
from subagents.engine import Workspace
from subagents.tools.desk import Desk
from subagents.tools.roles import EXPLORE, tools_for
from subagents.tools.sources import change_log, text_search
from subagents.tools.toolbox import MAX_CALLS, Toolbox, still_shown
from tests.subagents.claude.world import World, make_repository, modules, opened, session_on

FILES = {
    **modules(4),
    "latin.py": "# caf\xe9\nNAME = 1\n",
    "wide.js": "var a = 1;" + "x" * 5_000 + "\n",
    "empty.txt": "",
    "many.txt": "\n".join(f"needle {n}" for n in range(900)) + "\n",
}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    folder = tmp_path_factory.mktemp("tools")
    repository = folder / "repository"
    repository.mkdir()
    make_repository(repository, FILES)
    with opened(repository, folder / "cache") as made:
        yield made


@pytest.fixture
def here(tmp_path: Path, workspace: Workspace) -> Iterator[World]:
    with session_on(workspace, tmp_path / "state") as made:
        yield made


class Bench:
    """A toolbox and a way to call it."""

    def __init__(self, here: World, **desk: Any) -> None:
        snapshot = here.workspace.snapshot
        self.desk = Desk(
            workspace=here.workspace,
            recorder=here.recorder(here.task()),
            search=text_search(snapshot),
            changes=change_log(snapshot),
            fetch_evidence=here.evidence.get,
            redact=here.redactor.text,
            **desk,
        )
        self.box = Toolbox(self.desk, EXPLORE)
        self.calls = 0
        self.step = 0

    def all(self, *calls: tuple[str, dict[str, Any]], visible_from: int = 0) -> list[ToolResult]:
        uses = [ToolUse(id=f"c{self.calls + n}", name=name, input=given) for n, (name, given) in enumerate(calls)]
        self.calls += len(calls)
        self.step += 1
        return asyncio.run(self.box.run_all(uses, step=self.step, visible_from=visible_from, done=lambda _: None))

    def __call__(self, name: str, /, **given: Any) -> ToolResult:
        return self.all((name, given))[0]


@pytest.fixture
def call(here: World) -> Bench:
    return Bench(here)


def test_a_short_file_comes_whole_with_numbers_and_can_be_cited(call: Bench) -> None:
    shown = call("read_file", path="latin.py")
    assert shown.text.splitlines()[1:] == ["1|# café", "2|NAME = 1"]
    assert shown.shown == (("latin.py", 1, 2),)
    recorded = call("record_finding", claim="NAME is 1", citations=["latin.py:2"])
    assert not recorded.is_error, recorded.text
    assert recorded.keep


def test_a_long_file_gives_an_outline_first_and_then_ranges(call: Bench) -> None:
    outline = call("read_file", path="many.txt")
    assert "outline" in outline.text and len(outline.text) < 2_000
    part = call("read_file", path="many.txt", start=100, end=800)
    lines = part.text.splitlines()
    assert lines[0] == "many.txt 100-339 of 900"
    assert "left out: read_file many.txt from 340" in lines[-1]
    outside = call("read_file", path="many.txt", start=901, end=950)
    assert outside.is_error and "range_outside_file" in outside.text and "900" in outside.text


def test_a_huge_line_is_bounded_and_says_so(call: Bench) -> None:
    shown = call("read_file", path="wide.js")
    assert len(shown.text) < 400
    assert "more characters" in shown.text or shown.is_error


def test_an_empty_file_is_said_to_be_empty(call: Bench) -> None:
    assert "is empty" in call("read_file", path="empty.txt").text


@pytest.mark.parametrize("path", ["../etc/passwd", "/etc/passwd", "shop/../../x", "a/../../b"])
@pytest.mark.parametrize("tool", ["read_file", "list_files", "imports", "history"])
def test_no_tool_leaves_the_repository(call: Bench, tool: str, path: str) -> None:
    result = call(tool, path=path)
    assert result.is_error
    assert "outside_scope" in result.text


def test_a_wrong_path_is_answered_with_the_nearest(call: Bench) -> None:
    wrong = call("read_file", path="shopp/part1.py")
    assert wrong.is_error
    assert "no_such_path" in wrong.text and "shop/part1.py" in wrong.text
    folder = call("read_file", path="shop")
    assert "not_a_file" in folder.text and "list_files" in folder.text


def test_a_scope_confines_reading_searching_and_listing(here: World) -> None:
    call = Bench(here, scope=("shop",))
    assert call("read_file", path="latin.py").is_error
    assert "many.txt" not in call("search_text", pattern="needle").text
    assert "latin.py" not in call("list_files").text
    assert not call("read_file", path="shop/part1.py").is_error


def test_a_search_is_bounded_keeps_the_rest_and_never_claims_absence_when_cut(call: Bench) -> None:
    found = call("search_text", pattern="needle")
    assert len(found.text.splitlines()) < 60
    assert "more than 200 matches" in found.text
    assert "nothing can be said to be absent" in found.text
    whole = call("read_evidence", ref=found.evidence[:19])
    assert "many.txt:41: needle 40" in whole.text
    assert call.desk.truncated


def test_a_search_spreads_over_files(call: Bench) -> None:
    found = call("search_text", pattern="def handle")
    assert {f"shop/part{n}.py" for n in range(4)} <= set(found.text.splitlines())


def test_a_bad_pattern_is_the_models_to_correct(call: Bench) -> None:
    wrong = call("search_text", pattern="(")
    assert wrong.is_error
    assert not call("search_text", pattern="(", fixed=True).is_error


def test_find_names_places_and_shows_no_lines_to_cite(call: Bench) -> None:
    found = call("find", query="part2")
    assert "shop/part2.py" in found.text
    assert found.shown == ()


def test_symbols_are_defined_used_and_called(call: Bench) -> None:
    assert "2_3" in call("symbol", name="handle_2_3").text
    uses = call("symbol", name="handle_0_0", want="references")
    assert "shop/part1.py" in uses.text and uses.shown
    assert "shop/part1.py" in call("symbol", name="handle_0_0", want="callers").text
    assert "handle_0_0" in call("symbol", name="handle_1_2", want="callees").text
    missing = call("symbol", name="no_such_thing_at_all")
    assert "no_such_symbol" in missing.text


def test_imports_go_both_ways_and_in_chains(call: Bench) -> None:
    both = call("imports", path="shop/part1.py")
    assert "shop/part0.py" in both.text and "shop/part2.py" in both.text
    chain = call("imports", path="shop/part3.py", to="shop/part0.py")
    assert chain.text == "shop/part3.py -> shop/part2.py -> shop/part1.py -> shop/part0.py"
    assert "no chain" in call("imports", path="shop/part0.py", to="shop/part3.py").text


def test_history_names_the_commits_of_files_and_lines(call: Bench) -> None:
    assert "All of it" in call("history", path="latin.py").text
    assert "All of it" in call("history", path="latin.py", start=1, end=2).text


@pytest.mark.parametrize(
    ("citation", "code"),
    [
        ("latin.py:0", "bad_citation"),
        ("latin.py", "bad_citation"),
        ("line 3 of latin.py", "bad_citation"),
        ("latin.py:9-3", "bad_citation"),
        ("latin.py:1-99", "range_outside_file"),
        ("latn.py:1", "no_such_path"),
        ("shop/part1.py:3", "not_shown"),
        ("../latin.py:1", "outside_scope"),
    ],
)
def test_a_wrong_citation_never_enters_and_is_answered_with_a_way_out(call: Bench, citation: str, code: str) -> None:
    call("read_file", path="latin.py")
    result = call("record_finding", claim="NAME is 1", citations=[citation])
    assert result.is_error
    assert result.text.startswith(f"error {code}:")
    assert len(result.text.splitlines()) >= 2
    assert not call.desk.recorder.findings()


def test_the_same_finding_twice_is_stored_once_and_says_so(call: Bench) -> None:
    call("read_file", path="latin.py")
    for word in ("recorded as", "already recorded as"):
        assert call("record_finding", claim="NAME is 1", citations=["`latin.py:2`"]).text.startswith(word)
    assert len(call.desk.recorder.findings()) == 1


def test_questions_are_opened_and_settled_by_their_text(call: Bench) -> None:
    assert "open questions: 2" in call("update_open_questions", add=["Who calls it?", "Why?"]).text
    after = call("update_open_questions", settle=["who calls it", "What?"])
    assert "open questions: 1" in after.text and "no such question" in after.text
    assert call.desk.open_questions() == ("Why?",)


def test_notes_are_kept_once(call: Bench) -> None:
    call("note", text="look at part 3")
    call("note", text="look at part 3")
    assert call.desk.notes == ["look at part 3"]


def test_an_identical_call_is_cheap_while_its_result_stands_and_answered_when_it_was_cleared(call: Bench) -> None:
    first = call("read_file", path="shop/part1.py", start=1, end=60)
    again = call.all(("read_file", {"path": "shop/part1.py", "start": 1, "end": 60}), visible_from=0)[0]
    assert "Same call as in step" in again.text and len(again.text) < 80
    cleared = call.all(("read_file", {"path": "shop/part1.py", "start": 1, "end": 60}), visible_from=99)[0]
    assert first.text in cleared.text
    worn = [call.all(("read_file", {"path": "shop/part1.py", "start": 1, "end": 60}), visible_from=99)[0] for _ in "ab"]
    assert len(worn[-1].text) < 400


def test_parallel_calls_come_back_in_order_and_a_failing_one_hurts_nobody(call: Bench) -> None:
    results = call.all(
        ("read_file", {"path": "latin.py"}),
        ("no_such_tool", {}),
        ("read_file", {"path": 7}),
        ("search_text", {"pattern": "NAME", "unasked": True}),
        ("list_files", {}),
    )
    assert [r.is_error for r in results] == [False, True, True, True, False]
    assert [r.text.split(":")[0] for r in results if r.is_error] == [
        "error unknown_tool",
        "error invalid_argument",
        "error invalid_argument",
    ]
    assert [r.tool_use_id for r in results] == [f"c{n}" for n in range(5)]


def test_more_calls_than_a_turn_may_make_are_refused_one_by_one(call: Bench) -> None:
    results = call.all(*[("note", {"text": f"note {n}"}) for n in range(MAX_CALLS + 3)])
    assert [r.is_error for r in results] == [False] * MAX_CALLS + [True] * 3


def test_digests_say_what_was_asked_what_came_and_where_it_is(call: Bench) -> None:
    for name, given in (
        ("read_file", {"path": "shop/part1.py", "start": 1, "end": 60}),
        ("search_text", {"pattern": "handle"}),
        ("find", {"query": "part1"}),
        ("symbol", {"name": "handle_1_1"}),
        ("imports", {"path": "shop/part1.py"}),
        ("list_files", {}),
    ):
        result = call(name, **given)
        asked = "1-60 of 135; defines handle_1_0" if name == "read_file" else name
        assert result.digest.startswith(f"[result cleared] {asked}"), result.digest
        assert result.evidence[:19] in result.digest
        assert len(result.digest) < 700
        assert here_evidence(call, result)


def here_evidence(call: Bench, result: ToolResult) -> bytes:
    assert call.desk.fetch_evidence is not None
    return call.desk.fetch_evidence(result.evidence)


def test_lines_cut_from_an_answer_cannot_be_cited() -> None:
    text = "a.py 1-9 of 9\n1|x\n2|y\n[... cut]"
    assert still_shown([("a.py", 1, 9), ("b.py", 40, 41)], text) == [("a.py", 1, 2)]


def test_an_answer_larger_than_the_turn_allows_is_cut_and_kept_whole_as_evidence(call: Bench) -> None:
    call.box.max_turn_chars = 2_000
    shown = call("read_file", path="shop/part1.py", start=1, end=130)
    assert len(shown.text) < 2_100 and "more characters in evidence" in shown.text
    assert max(last for _, _, last in shown.shown) < 130
    assert len(here_evidence(call, shown)) > 4_000


def test_roles_have_only_the_tools_they_use() -> None:
    assert {t.name for t in tools_for("verify", has_history=True)} < {t.name for t in EXPLORE}
    assert "history" not in {t.name for t in tools_for("investigate", has_history=False)}
