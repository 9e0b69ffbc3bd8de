"""The coordinator: phases of subagents, each step durable before the next, the answer from findings alone.

It only ever sees structured results: findings, summaries, counts. Killed at any instant, `run` goes on from what is
on disk: outcomes say which tasks are done, scratchpads what was found, the manifest which phases were planned.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from manifests.envelope import Schema
from manifests.errors import EngineError
from manifests.manifest import Manifest
from manifests.sessions import Session
from manifests.tasks import Task
from orchestrator import coverage as coverages
from orchestrator.dag import PlanRefused, check_plan
from orchestrator.dispatch import DEADLINE, Heartbeat, Limits, dispatch
from orchestrator.outcomes import read_outcome, write_outcome
from orchestrator.summaries import build_summary, summary_from_dict, summary_to_dict
from orchestrator.view import View
from orchestrator.watched import WatchedRecorder
from scratch.findings import Finding
from subagents.engine import (
    Answer,
    Coverage,
    Engine,
    Outcome,
    PhaseSummary,
    Recorder,
    TaskContext,
    Workspace,
)

SUMMARY_SCHEMA = Schema(name="leadline/phase-summary", version=1)
ANSWER_SCHEMA = Schema(name="leadline/answer", version=1)
MOST_PHASES = 12
_AGENTS = "the limit on subagents was reached"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLimits:
    """Limits over the whole session, resumed runs included."""

    parallel: int
    max_agents: int
    max_minutes: float
    silence_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How a run ended. `complete`: every planned task ended and no limit cut the plan short."""

    answer: Answer
    findings: tuple[Finding, ...]
    coverage: Coverage
    complete: bool
    reason: str
    """Why it is not complete; for people."""


class Pads(Protocol):
    """The scratchpads of one session as the coordinator needs them."""

    def recorder(self, task: Task, phase: int) -> Recorder: ...
    def findings(self) -> Sequence[Finding]:
        """Every finding of the session, once each, in the order of recording."""
        ...

    def recheck(self) -> Mapping[str, int]:
        """Check all citations against the snapshot again; durable marks for those that fail; counts by status."""
        ...


class Coordinator:
    """One session's run. Not reusable."""

    def __init__(
        self,
        *,
        session: Session,
        manifest: Manifest,
        workspace: Workspace,
        engine: Engine,
        limits: RunLimits,
        pads: Pads,
        view: View,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._session = session
        self._workspace = workspace
        self._engine = engine
        self._limits = limits
        self._pads = pads
        self._view = view
        self._clock = clock
        self._started = clock()
        self._charged_s = 0.0
        self.manifest = manifest

    # --- the flow ---

    async def run(self) -> Result:
        """Plan, investigate and summarise phase by phase, then verify and answer. Findings survive any exit."""
        self._bring_in_line()
        summaries: list[PhaseSummary] = []
        reason, news = "", False
        for phase in range(1, MOST_PHASES + 1):
            if not await self._plan(phase, summaries, again=news):
                break
            attempts = self._attempts
            reason = await self._investigate(phase)
            news = self._attempts > attempts
            summaries.append(self._summarise(phase))
            if reason:
                break
        return await self._answer(reason)

    def save(self, change: Manifest) -> None:
        """The next manifest, with the time spent so far charged to it."""
        spent = self._clock() - self._started
        self.manifest = change.with_overhead({"seconds": round(spent - self._charged_s, 3)})
        self._charged_s = spent
        self._session.write_manifest(self.manifest)

    def _bring_in_line(self) -> None:
        """Apply outcomes that were written before the manifest heard of them; what ran then is pending again."""
        manifest = self.manifest
        for record in manifest.tasks:
            found = read_outcome(self._session, record.id)
            if found is not None and record.status in ("pending", "running") and found[0] >= record.attempts:
                manifest = _ended(manifest, record.id, found[1])
            elif record.status == "running":
                manifest = manifest.with_task_record(replace(record, status="pending"))
        if manifest is not self.manifest:
            self.save(manifest)

    @property
    def _attempts(self) -> int:
        return sum(record.attempts for record in self.manifest.tasks)

    async def _plan(self, phase: int, summaries: Sequence[PhaseSummary], *, again: bool) -> bool:
        """Whether there is a phase to work on: one already planned, or a new one that passed the check.

        `again`: the phase before brought news since this one was planned, so that tasks may be added to it.
        """
        old = self.manifest.tasks_of(phase)
        if old and not again:
            return True
        plan = await self._engine.plan(self._workspace, phase, summaries)
        known = {record.id for record in self.manifest.tasks}
        tasks = tuple(task for task in plan.tasks if task.id not in known) if plan else ()
        if plan is None or not tasks:
            return bool(old)
        try:
            check_plan(tasks, known_paths=self._workspace.snapshot.files().keys(), finished=known, most=1000)
        except PlanRefused as refusal:
            raise EngineError(
                f"the plan of phase {phase} cannot be carried out: {refusal}", hint="ask again, or narrow the question"
            ) from refusal
        self._session.journal.append("phase_planned", phase=phase, title=plan.title, tasks=[t.id for t in tasks])
        self.save(self.manifest.with_phase(phase, plan.title, (*(record.task for record in old), *tasks)))
        return True

    # --- investigating ---

    async def _investigate(self, phase: int) -> str:
        """Run what has not finished; returns the limit that kept something from running, or an empty text."""
        title = next(one.title for one in self.manifest.phases if one.n == phase)
        todo = [r.task for r in self.manifest.tasks_of(phase) if r.status != "finished"]
        allowed = todo[: max(0, self._limits.max_agents - self._attempts)]
        self._view.phase(phase, title, len(self.manifest.tasks_of(phase)))
        summary = self._summary_before(phase)
        minutes_left = self._limits.max_minutes - self.manifest.usage.get("seconds", 0.0) / 60
        limits = Limits(
            parallel=self._limits.parallel,
            silence_s=self._limits.silence_s,
            deadline=time.monotonic() + minutes_left * 60,
        )

        async def run(task: Task, heartbeat: Heartbeat) -> Outcome:
            return await self._one(task, phase, summary, heartbeat)

        complete = await dispatch(allowed, limits, run, self._task_ended)
        self.save(self.manifest.with_phase_finished(phase))
        if not complete:
            return DEADLINE
        return _AGENTS if len(allowed) < len(todo) else ""

    async def _one(self, task: Task, phase: int, summary: PhaseSummary | None, heartbeat: Heartbeat) -> Outcome:
        self.save(self.manifest.with_task_started(task.id))
        self._session.journal.append("task_started", task=task.id)
        self._view.started(task)
        recorder = WatchedRecorder(self._pads.recorder(task, phase), heartbeat, self._view)
        context = TaskContext(
            task=task,
            phase=phase,
            workspace=self._workspace,
            summary=summary,
            recorder=recorder,
            heartbeat=heartbeat,
        )
        outcome = await self._engine.investigate(context)
        if outcome.status == "finished" and not recorder.findings() and not outcome.deliverable:
            return replace(outcome, status="incomplete", failure=outcome.failure or "ended with nothing recorded")
        return outcome

    async def _task_ended(self, task: Task, outcome: Outcome) -> None:
        """Outcome first, then journal, then manifest: whatever is missing later is brought in line from the first."""
        record = self.manifest.task(task.id)
        attempts = max(1, record.attempts if record else 1)
        if outcome.status == "stopped" and self._pads.recorder(task, record.phase if record else 1).findings():
            outcome = replace(outcome, status="partial")
        write_outcome(self._session, task.id, attempts, outcome)
        self._session.journal.append("task_ended", task=task.id, status=outcome.status, attempt=attempts)
        self.save(_ended(self.manifest, task.id, outcome))
        found = sum(1 for f in self._pads.findings() if f.task == task.id)
        self._view.ended(task, outcome, found)

    # --- summaries, answer ---

    def _summary_before(self, phase: int) -> PhaseSummary | None:
        if phase == 1:
            return None
        name = f"phases/{phase - 1}.json"
        known = {f.id: f for f in self._pads.findings()}
        if self._session.has(name):
            stored = summary_from_dict(self._session.read_document(name, SUMMARY_SCHEMA), known)
            if stored is not None:
                return stored
        return self._summarise(phase - 1)

    def _summarise(self, phase: int) -> PhaseSummary:
        title = next(one.title for one in self.manifest.phases if one.n == phase)
        summary = build_summary(phase, title, [f for f in self._pads.findings() if f.phase == phase])
        self._session.write_document(f"phases/{phase}.json", SUMMARY_SCHEMA, summary_to_dict(summary))
        return summary

    async def _answer(self, reason: str) -> Result:
        self._view.say("verifying citations")
        await asyncio.to_thread(self._pads.recheck)
        findings = tuple(self._pads.findings())
        coverage = self._coverage()
        answer = await self._engine.answer(self._workspace, findings, coverage)
        unfinished = [r for r in self.manifest.tasks if r.status != "finished"]
        if not reason and unfinished:
            reason = "; ".join(dict.fromkeys(f"{r.task.role}: {r.failure or r.status}" for r in unfinished))
        return Result(
            answer=answer, findings=findings, coverage=coverage, complete=not reason and not unfinished, reason=reason
        )

    def _coverage(self) -> Coverage:
        """Over all tasks, and what the index itself read and skipped."""
        outcomes = (read_outcome(self._session, record.id) for record in self.manifest.tasks)
        index = self._workspace.index
        own = Coverage(files_read=frozenset(index.paths()), skipped=tuple(index.skipped()))
        return coverages.merge([own, *(found[1].coverage for found in outcomes if found is not None)])


def _ended(manifest: Manifest, task: str, outcome: Outcome) -> Manifest:
    counts = {
        "files_read": len(outcome.coverage.files_read),
        "skipped": len(outcome.coverage.skipped),
        "truncated": len(outcome.coverage.truncated),
        "timed_out": len(outcome.coverage.timed_out),
    }
    return manifest.with_task_ended(task, outcome.status, failure=outcome.failure, usage=outcome.usage, coverage=counts)
