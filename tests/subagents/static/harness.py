"""Runs the static engine over a folder with real snapshot, index, finder and scratchpads: phases, then the answer."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from manifests.sessions import SessionStore
from manifests.tasks import Task
from orchestrator.pads import SessionPads
from orchestrator.summaries import build_summary
from scratch.findings import Finding
from scratch.redaction import Redactor
from subagents.codebase.snapshot import open_snapshot
from subagents.engine import Answer, Coverage, Outcome, PhaseSummary, TaskContext, Workspace
from subagents.index.opening import open_index
from subagents.ranking import open_finder
from subagents.static import StaticEngine


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    answer: Answer
    findings: tuple[Finding, ...]
    tasks: tuple[tuple[Task, Outcome], ...]

    def data(self, step: str) -> list[dict[str, object]]:
        return [dict(f.data) for f in self.findings if f.data.get("step") == step]


def short(run: Run) -> str:
    """The first paragraph of the answer."""
    return run.answer.markdown.partition("**Short answer.**")[2].partition("\n\n")[0]


async def explore(
    folder: Path,
    question: str,
    cache: Path,
    *,
    order: Callable[[list[Task]], list[Task]] = list,
    side_by_side: bool = True,
) -> Run:
    """One exploration. `order` and `side_by_side` vary how tasks of a phase are started; the answer must not."""
    redactor = Redactor()
    snapshot = open_snapshot(folder)
    index = open_index(snapshot, cache)
    try:
        workspace = Workspace(
            snapshot=snapshot, index=index, finder=open_finder(snapshot, index, cache), question=question
        )
        with tempfile.TemporaryDirectory() as state:
            store = SessionStore(Path(state) / "state", redact=redactor.json)
            with store.create(snapshot.repository_key) as session:
                return await _phases(workspace, SessionPads(session, snapshot, redactor), order, side_by_side)
    finally:
        index.close()
        snapshot.close()


async def _phases(
    workspace: Workspace, pads: SessionPads, order: Callable[[list[Task]], list[Task]], side_by_side: bool
) -> Run:
    engine = StaticEngine()
    summaries: list[PhaseSummary] = []
    done: list[tuple[Task, Outcome]] = []
    for phase in range(1, 6):
        plan = await engine.plan(workspace, phase, summaries)
        if plan is None:
            break
        summary = summaries[-1] if summaries else None

        async def one(task: Task, phase: int = phase, summary: PhaseSummary | None = summary) -> tuple[Task, Outcome]:
            context = TaskContext(
                task=task,
                phase=phase,
                workspace=workspace,
                summary=summary,
                recorder=pads.recorder(task, phase),
                heartbeat=lambda: None,
            )
            return task, await engine.investigate(context)

        tasks = order(list(plan.tasks))
        done += await asyncio.gather(*map(one, tasks)) if side_by_side else [await one(task) for task in tasks]
        summaries.append(build_summary(phase, plan.title, [f for f in pads.findings() if f.phase == phase]))
    findings = tuple(pads.findings())
    coverage = Coverage(files_read=frozenset(workspace.index.paths()))
    answer = await engine.answer(workspace, findings, coverage)
    await engine.close()
    return Run(answer=answer, findings=findings, tasks=tuple(done))
