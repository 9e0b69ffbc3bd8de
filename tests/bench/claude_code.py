"""What planning, summaries and answers take beside the model: all that code does for them, with many findings known.

python -m tests.bench.claude_code [--findings 500] [--rounds 9]
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from manifests.tasks import Task
from orchestrator.dag import PlanRefused, check_plan
from orchestrator.summaries import build_summary, summary_from_dict, summary_to_dict
from scratch.findings import Citation, Finding, quote_hash
from scratch.redaction import Redactor
from subagents.claude import answering, planning
from subagents.engine import Coverage, Workspace
from tests.subagents.claude.world import make_repository, modules, opened

AREAS = 24


def findings_in(count: int) -> list[Finding]:
    """Half of them of the first phase; every fiftieth contradicts the one before."""
    made: list[Finding] = []
    for n in range(count):
        quote = f"def handle_{n}(order, limit={n})"
        start = n % 300 + 1
        cited = [
            Citation(
                path=f"shop/part{(n + k) % AREAS}.py",
                start=start,
                end=start + 3,
                blob="0" * 40,
                quote=quote,
                quote_sha256=quote_hash(quote),
            )
            for k in range(2)
        ]
        made.append(
            Finding(
                claim=f"`handle_{n}` applies the limit {n} to an order before it is passed on to `handle_{n + 1}`.",
                kind=("structure", "flow", "behaviour", "decision", "risk")[n % 5],  # type: ignore[arg-type]
                symbols=(f"handle_{n}",),
                citations=tuple(cited),
                confidence=0.95,
                relevance=(n * 37 % 100) / 100,
                task=f"t{n % 12}",
                phase=1 + n * 2 // count,
                recorded_at="2026-01-01T00:00:00Z",
                status="verified",
                data={"contradicts": [made[-1].id]} if n % 50 == 49 else {},
                origins=(f"t{n % 12}",),
            )
        )
    return made


def plan_of(tasks: int) -> dict[str, Any]:
    one = {"deliverable": "the limits", "depends_on": [], "share": 1 / tasks}
    return {
        "enough": False,
        "reason": "broad",
        "tasks": [
            {"id": f"t{n}", "question": f"What does part {n} do?", "scope": [f"shop/part{n}.py"], **one}
            for n in range(tasks)
        ],
    }


def steps_of(workspace: Workspace, findings: list[Finding]) -> dict[str, Callable[[], object]]:
    """What code does between the requests, by name."""
    redactor, coverage = Redactor(), Coverage()
    by_id = {finding.id: finding for finding in findings}
    first = [f for f in findings if f.phase == 1]
    plan = json.dumps(plan_of(8))
    statements = [
        {"text": f"Part {n} of the answer.", "findings": [f.id for f in findings[n::60]][:8]} for n in range(60)
    ]
    said = json.dumps({"found": True, "statements": statements})
    summary = build_summary(1, "explore", first)

    def check(tasks: Sequence[Task]) -> Sequence[str]:
        try:
            check_plan(tasks, known_paths=workspace.snapshot.files().keys(), finished=(), most=8)
        except PlanRefused as refusal:
            return refusal.reasons
        return ()

    def planned() -> object:
        hits = workspace.finder.find(workspace.question, limit=planning.HITS)
        most = planning.most_tasks(workspace, phase=2, hits=hits)
        opening = redactor.text(planning.plan_opening(workspace, 2, [summary], most=most, hits=hits))
        reading = planning.read_plan(
            json.loads(plan),
            workspace,
            most=8,
            phase=2,
            known=True,
            check=check,
        )
        assert reading.value is not None and len(reading.value.tasks) == 8, reading.reasons
        return opening

    def summarised() -> object:
        body = summary_to_dict(build_summary(1, "explore", first))
        return summary_from_dict(body, by_id)

    def answered() -> object:
        opening = redactor.text(answering.answer_opening(workspace, findings, coverage, earlier="", most_tokens=40_000))
        reading = answering.read_answer(json.loads(said), findings)
        assert reading.value is not None
        return opening, answering.rendered(reading.value, findings, coverage, link=lambda _: "https://example.org/x")

    return {"planning": planned, "summary": summarised, "answer": answered}


def measure(count: int, rounds: int, folder: Path) -> dict[str, float]:
    """Median milliseconds of processor time."""
    (folder / "works").mkdir()
    make_repository(folder / "works", modules(AREAS, functions=40))
    with opened(folder / "works", folder / "cache") as workspace:
        spent: dict[str, list[float]] = {}
        for name, work in steps_of(workspace, findings_in(count)).items():
            for _ in range(rounds):
                started = time.process_time()
                work()
                spent.setdefault(name, []).append((time.process_time() - started) * 1e3)
    return {name: statistics.median(each) for name, each in spent.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--findings", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=9)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        made = measure(given.findings, given.rounds, Path(folder))
    for name, milliseconds in made.items():
        print(f"{name:>10} {milliseconds:7.1f} ms")
    print(f"{'together':>10} {sum(made.values()):7.1f} ms of processor time, {given.findings} findings")


if __name__ == "__main__":
    main()
