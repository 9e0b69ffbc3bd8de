"""Plans and answers are read as untrusted input: whatever a model proposes, code decides what is done with it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifests.tasks import Task
from orchestrator.dag import PlanRefused, check_plan
from orchestrator.summaries import build_summary
from scratch.findings import Citation, Finding, quote_hash
from subagents.claude import answering, planning
from subagents.claude.structured import json_object
from subagents.codebase.types import Skipped
from subagents.engine import Coverage, Workspace
from tests.orchestrator.claude.lab import make_works
from tests.subagents.claude.world import opened


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    folder = tmp_path_factory.mktemp("reading")
    with opened(make_works(folder / "works"), folder / "cache") as made:
        yield made


def task(name: str = "a", **fields: Any) -> dict[str, Any]:
    plain = {"question": f"What is {name}?", "scope": [], "deliverable": "", "depends_on": [], "share": 0.5}
    return {"id": name, **plain, **fields}


def plan(workspace: Workspace, *tasks: Any, most: int = 4) -> Any:
    def check(made: Sequence[Task]) -> Sequence[str]:
        try:
            check_plan(made, known_paths=workspace.snapshot.files().keys(), finished=(), most=1000)
        except PlanRefused as refusal:
            return refusal.reasons
        return ()

    body = {"enough": False, "reason": "", "tasks": list(tasks)}
    return planning.read_plan(body, workspace, most=most, phase=1, known=False, check=check)


def test_a_good_plan_becomes_tasks_known_by_their_content(workspace: Workspace) -> None:
    reading = plan(workspace, task("a", scope=["orders/"]), task("b", scope=["payment"], depends_on=["a"]))
    assert reading.reasons == ()
    one, two = reading.value.tasks
    assert one.scope == ("orders",)
    assert two.depends_on == (one.id,)
    assert reading == plan(workspace, task("a", scope=["orders/"]), task("b", scope=["payment"], depends_on=["a"]))


@pytest.mark.parametrize(
    ("tasks", "reason"),
    [
        ([], "no task is proposed"),
        ([task(str(n)) for n in range(1000)], "1,000 tasks are proposed, at most 4"),
        ([task("a", question=" ")], "asks nothing"),
        ([task("a", depends_on=["b"]), task("b", depends_on=["a"])], "circle"),
        ([task("a", depends_on=["zzz"])], "which is no task"),
        ([task("a", scope=["nowhere"])], "not in the snapshot"),
        ([task("a", scope=["orders"]), task("b", scope=["orders/orders_0.py"])], "overlap"),
        (
            [
                task("a", scope=["orders"], deliverable="the limits", share=0.7),
                task("b", scope=["orders"], deliverable="the callers", share=0.3),
            ],
            "overlap",
        ),
        ([task("a"), task("a")], "two tasks are called"),
        ([task("a", scope=["../.."])], "not in the snapshot"),
        (["nonsense", 3, None], "asks nothing"),
    ],
)
def test_a_plan_that_cannot_be_carried_out_comes_with_reasons(
    workspace: Workspace, tasks: list[Any], reason: str
) -> None:
    assert any(reason in said for said in plan(workspace, *tasks).reasons)


@given(
    body=st.recursive(
        st.none() | st.booleans() | st.floats(allow_nan=True) | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(
                st.sampled_from(
                    ["tasks", "statements", "id", "question", "scope", "depends_on", "share", "findings", "text"]
                ),
                inner,
                max_size=6,
            )
        ),
        max_leaves=20,
    ).filter(lambda value: isinstance(value, dict))
)
def test_no_json_at_all_raises(workspace: Workspace, body: Any) -> None:
    planning.read_plan(body, workspace, most=3, phase=1, known=False, check=lambda _: ())
    answering.read_answer(body, [])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": 1}', {"a": 1}),
        ('Here it is:\n```json\n{"a": {"b": "}"}}\n```\nDone {x}', {"a": {"b": "}"}}),
        ('{"a": 1', None),
        ("[1, 2]", None),
        ("", None),
    ],
)
def test_json_is_found_in_whatever_stands_around_it(text: str, found: Any) -> None:
    assert json_object(text) == found


# --- answers ---


def finding(n: int, *, claim: str = "", status: Any = "verified") -> Finding:
    quote = f"line {n}"
    return Finding(
        claim=claim or f"Function f{n} handles part {n} of the order.",
        kind="behaviour",
        symbols=(f"f{n}",),
        citations=(
            Citation(
                path=f"a/b{n % 7}.py",
                start=n + 1,
                end=n + 3,
                blob="0" * 40,
                quote=quote,
                quote_sha256=quote_hash(quote),
            ),
        ),
        confidence=0.9,
        relevance=0.5,
        task="t1",
        phase=1,
        recorded_at="2026-01-01T00:00:00Z",
        status=status,
        origins=("t1",),
    )


def read(findings: list[Finding], *statements: Any, found: bool = True) -> Any:
    return answering.read_answer({"found": found, "statements": list(statements)}, findings)


def test_statements_keep_only_findings_that_may_be_used() -> None:
    good, stale, refuted = finding(1), finding(2, status="stale"), finding(3, status="refuted")
    verdict = finding(4, claim=f"UPHELD {good.id}: it does")
    reading = read(
        [good, stale, refuted, verdict],
        {"text": "Good.", "findings": [good.id[:9]]},
        *({"text": "Bad.", "findings": [f.id]} for f in (stale, refuted, verdict)),
        {"text": "Bare.", "findings": []},
        {"text": "", "findings": [good.id]},
        "nonsense",
    )
    assert [s.text for s in reading.value.statements] == ["Good."]
    assert reading.value.statements[0].findings == (good.id,)
    assert reading.value.dropped == 6
    assert len(reading.reasons) == 6
    answer = answering.rendered(reading.value, [good, stale, refuted], Coverage())
    assert "`a/b1.py:2-4`" in answer.markdown
    assert "6 statements of the answer were dropped" in answer.markdown


def test_absence_is_claimed_only_with_what_was_searched() -> None:
    cut = Coverage(files_read=frozenset({"a", "b"}), truncated=("search 'x': 200 of more",), timed_out=("search 'y'",))
    one = finding(1)
    draft = read([one], {"text": "There is no retry.", "findings": [one.id]}).value
    markdown = answering.rendered(draft, [one], cut).markdown
    assert "within what was searched" in markdown
    assert "timed out: search 'y'" in markdown
    nothing = answering.Draft(found=False, statements=(), dropped=0)
    assert "2 files were read or searched" in answering.rendered(nothing, [], cut).markdown


def test_a_file_that_was_read_in_part_is_not_said_to_be_unreadable() -> None:
    partly = Coverage(files_read=frozenset({"a"}), skipped=(Skipped("a", "no_grammar"),))
    assert "1 files were read or searched, 1 were not, or not in full." in answering.coverage_line(partly)


def test_verdicts_are_read_off_findings() -> None:
    verdict = answering.verdict_of(finding(1, claim="REFUTED f0123456789abcdef: it is called twice"))
    assert verdict is not None
    assert (verdict.finding, verdict.upheld, verdict.reason) == ("f0123456789abcdef", False, "it is called twice")
    assert answering.verdict_of(finding(1, claim="This was REFUTED f0123456789abcdef")) is None


def test_all_but_the_model_takes_a_fifth_of_a_second_for_five_hundred_findings(workspace: Workspace) -> None:
    findings = [finding(n) for n in range(500)]
    statements = [{"text": f"Statement {n}.", "findings": [f.id]} for n, f in enumerate(findings[:60])]
    spent = []
    for _ in range(3):
        started = time.process_time()
        summary = build_summary(1, "explore", findings)
        planning.plan_opening(workspace, 2, [summary], most=4, hits=workspace.finder.find("orders", limit=24))
        answering.answer_opening(workspace, findings, Coverage(), earlier="", most_tokens=40_000)
        reading = read(findings, *statements)
        answering.rendered(reading.value, findings, Coverage())
        spent.append(time.process_time() - started)
    assert min(spent) < 0.2


def test_an_easy_question_gets_one_subagent_and_a_broad_one_several(workspace: Workspace) -> None:
    hits = workspace.finder.find("order payment shipping", limit=24)
    where = replace(workspace, question="Where is order_step defined?")
    broad = replace(workspace, question="What would break if orders were removed?")
    assert planning.most_tasks(where, phase=1, hits=hits) == 1
    assert 2 <= planning.most_tasks(broad, phase=1, hits=hits) <= planning.MOST_TASKS
    made = planning.plan_by_code(broad, phase=1, most=3, hits=hits)
    assert len({task.scope for task in made}) == len(made) > 1
