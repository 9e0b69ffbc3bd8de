"""Findings that contradict each other are asked again, and else stand side by side; never one of them alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from orchestrator.summaries import build_summary
from scratch.findings import Citation, Finding, quote_hash
from subagents.claude import answering, planning
from subagents.claude.contradictions import contradictions, not_side_by_side
from subagents.engine import Coverage, Workspace
from tests.fake_api import reply
from tests.fake_api.models.scripted import Scripted
from tests.fake_api.models.unruly import Disagreeing
from tests.fake_api.thread import FakeApi
from tests.subagents.claude.world import World, settings_for


def finding(claim: str, line: int, *, against: Sequence[Finding] = (), status: Any = "verified") -> Finding:
    quote = f"line {line}"
    citation = Citation(
        path="shop/part1.py", start=line, end=line, blob="0" * 40, quote=quote, quote_sha256=quote_hash(quote)
    )
    return Finding(
        claim=claim,
        kind="behaviour",
        symbols=(),
        citations=(citation,),
        confidence=0.9,
        relevance=0.9,
        task="t1",
        phase=1,
        recorded_at="2026-01-01T00:00:00.000000Z",
        status=status,
        data={"contradicts": [one.id for one in against]} if against else {},
        origins=("t1",),
    )


THREE = finding("It retries three times.", 3)
FIVE = finding("It retries five times.", 5, against=[THREE])
OTHER = finding("It logs each retry.", 7)


def test_a_pair_is_known_once_and_only_while_both_may_be_stated() -> None:
    back = finding("It retries thrice.", 9, against=[FIVE, THREE])
    (pair,) = contradictions([THREE, FIVE, OTHER])
    assert (pair.earlier, pair.later) == (THREE, FIVE)
    assert [p.ids for p in contradictions([FIVE, back, THREE])] == [
        {THREE.id, FIVE.id},
        {FIVE.id, back.id},
        {THREE.id, back.id},
    ]
    refuted = finding("It retries three times.", 3, status="refuted")
    assert contradictions(answering.usable([refuted, FIVE, OTHER])) == []


def test_side_by_side_means_in_one_statement() -> None:
    pairs = contradictions([THREE, FIVE, OTHER])
    assert not_side_by_side(pairs, [[OTHER.id]]) == []
    assert not_side_by_side(pairs, [[OTHER.id], [THREE.id, FIVE.id]]) == []
    assert not_side_by_side(pairs, [[THREE.id], [FIVE.id]]) == pairs
    assert not_side_by_side(pairs, [[FIVE.id, OTHER.id]]) == pairs


def test_an_answer_with_one_side_is_returned_once_and_then_completed_by_code() -> None:
    findings = [THREE, FIVE, OTHER]
    one_sided = {"found": True, "statements": [{"text": "It retries five times.", "findings": [FIVE.id]}]}
    reading = answering.read_answer(one_sided, findings)
    assert any("contradict" in reason and THREE.id in reason for reason in reading.reasons)
    assert reading.value is not None
    answer = answering.rendered(reading.value, findings, Coverage())
    assert "“It retries three times.” against “It retries five times.”" in answer.markdown
    assert set(answer.statements[-1].findings) == {THREE.id, FIVE.id}
    both = {"found": True, "statements": [{"text": "One says 3, one 5.", "findings": [THREE.id, FIVE.id]}]}
    reading = answering.read_answer(both, findings)
    assert reading.reasons == () and reading.value is not None
    assert len(answering.rendered(reading.value, findings, Coverage()).statements) == 1


def test_a_contradiction_stands_in_both_requests_of_the_coordinator(workspace: Workspace) -> None:
    findings = [THREE, FIVE, OTHER]
    summary = build_summary(1, "explore", findings)
    asked = planning.plan_opening(workspace, 2, [summary], most=3, hits=[])
    assert f"[{THREE.id}] It retries three times." in asked.split("contradict each other")[1]
    opening = answering.answer_opening(workspace, findings, Coverage(), earlier="", most_tokens=2_000)
    assert f"Contradiction: [{THREE.id}] and [{FIVE.id}]" in opening


async def test_when_the_model_plans_no_more_a_contradiction_is_asked_again(here: World, workspace: Workspace) -> None:
    enough = '{"enough": true, "reason": "known", "tasks": []}'
    with FakeApi(model=Scripted([reply.say(enough)], repeat_last=True)) as api:
        engine = here.engine(settings_for(api))
        try:
            settled = await engine.plan(workspace, 2, [build_summary(1, "explore", [THREE, OTHER])])
            asked = await engine.plan(workspace, 2, [build_summary(1, "explore", [THREE, FIVE, OTHER])])
        finally:
            await engine.close()
    assert settled is None
    assert asked is not None
    (task,) = asked.tasks
    assert THREE.claim in task.question and FIVE.claim in task.question


async def test_a_subagent_names_what_its_finding_contradicts(here: World) -> None:
    with FakeApi(model=Disagreeing(path="shop/part1.py")) as api:
        outcome = await here.run(settings_for(api))
        refused = api.created[3].json["messages"][-1]["content"][0]
    assert outcome.status == "finished"
    assert refused["is_error"] and "names no recorded finding" in refused["content"]
    one, two = here.recorder(here.task()).findings()
    assert two.data == {"contradicts": [one.id]}
    (pair,) = contradictions([one, two])
    assert (pair.earlier, pair.later) == (one, two)
