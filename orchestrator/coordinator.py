"""The coordinator: phases of subagents, each step durable before the next, the answer from findings alone.

It only ever sees structured results: findings, summaries, counts. Killed at any instant, `run` goes on from what is
on disk: outcomes say which tasks are done, scratchpads what was found, the manifest which phases were planned.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Protocol

from manifests.envelope import Schema
from manifests.errors import EngineError
from manifests.manifest import Manifest, add_usage
from manifests.sessions import Session
from manifests.tasks import Task
from orchestrator import coverage as coverages
from orchestrator.cut_short import not_yet
from orchestrator.dag import PlanRefused, check_plan
from orchestrator.dispatch import DEADLINE, Heartbeat, Limits, dispatch
from orchestrator.outcomes import read_outcome, write_outcome
from orchestrator.pads import CarriedOver
from orchestrator.rebase import retaken
from orchestrator.spend import Estimate, Spend
from orchestrator.stored import KeptAnswer, basis_of
from orchestrator.summaries import build_summary, summary_from_dict, summary_to_dict
from orchestrator.view import View
from orchestrator.watched import WatchedRecorder
from scratch.findings import Finding, FindingStatus
from subagents.engine import (
    Answer,
    Coverage,
    Engine,
    Outcome,
    PhaseSummary,
    Recorder,
    Refuter,
    TaskContext,
    Workspace,
)

SUMMARY_SCHEMA = Schema(name="leadline/phase-summary", version=1)
ANSWER_SCHEMA = Schema(name="leadline/answer", version=1)
MOST_PHASES = 12
MOST_CLAIMS = 30
"""So many claims at most are put to fresh subagents: those that an answer leans on most."""
MOST_TASKS = 1_000
VERIFY_ROLE = "verify"
_AGENTS = "the limit on subagents was reached"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLimits:
    """Limits over the whole session, resumed runs included."""

    parallel: int
    max_agents: int
    max_minutes: float
    silence_s: float
    verify: bool = False
    """Put the claims that matter most to fresh subagents, which try to refute them."""
    only_failed: bool = False
    """Run again what did not finish, and plan nothing new."""


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

    def mark(self, finding: str, status: FindingStatus, reason: str) -> None:
        """Change the status of a finding, durably."""
        ...

    def carry_over(self) -> CarriedOver:
        """Follow all findings to this snapshot, durably; those whose lines changed are stale."""
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
        spend: Spend | None = None,
        refuter: Refuter | None = None,
        approve: Callable[[Estimate], None] = lambda _: None,
        earlier_answer: Callable[[], KeptAnswer | None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`approve` raises UsageError when nobody agrees to what is about to be spent."""
        self._session = session
        self._workspace = workspace
        self._engine = engine
        self._limits = limits
        self._pads = pads
        self._view = view
        self._spend = spend
        self._refuter = refuter
        self._approve = approve
        self._earlier_answer = earlier_answer
        self._clock = clock
        self._started = clock()
        self._charged_s = 0.0
        self.manifest = manifest

    # --- the flow ---

    async def run(self) -> Result:
        """Plan, investigate and summarise phase by phase, then verify and answer. Findings survive any exit."""
        self._bring_in_line()
        self._carry_over()
        before = self.manifest.phases_before
        summaries = [self._known()] if before else []
        reason, news = "", False
        for phase in range(before + 1, before + MOST_PHASES + 1):
            reason = self._near_limit()
            closed = bool(reason) or self._limits.only_failed or self._follows_changes
            if not await self._plan(phase, summaries, again=news, closed=closed):
                break
            attempts = self._attempts
            reason = await self._investigate(phase)
            news = self._attempts > attempts
            summaries.append(self._summarise(phase))
            if reason:
                break
        if not reason and self._limits.verify:
            reason = await self._try_to_refute()
        return await self._answer(reason)

    def save(self, change: Manifest) -> None:
        """The next manifest, with the time spent so far charged to it."""
        spent = self._clock() - self._started
        change = change.with_overhead({"seconds": round(spent - self._charged_s, 3)})
        self.manifest = change if self._spend is None else _charged(change, self._spend)
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

    # --- a later snapshot ---

    @property
    def _follows_changes(self) -> bool:
        """Whether this round only asks again what a newer snapshot changed. Where asking is free, all is asked."""
        rounds = self.manifest.rounds
        return self._engine.metered and bool(rounds) and rounds[-1].kind == "rebase"

    def _carry_over(self) -> None:
        """Begin a round at a newer snapshot: follow findings to where their lines are now, ask again the others."""
        rounds = self.manifest.rounds
        if not rounds or rounds[-1].kind != "rebase" or self.manifest.last_phase >= rounds[-1].first_phase:
            return
        carried = self._pads.carry_over()
        stale = {origin for finding in carried.stale for origin in finding.origins}
        changed = [r for r in self.manifest.tasks if r.id in stale or r.status != "finished"]
        again = [retaken(r.task, self._workspace.snapshot) for r in changed if r.task.role != VERIFY_ROLE]
        self._view.say(
            f"{carried.moved} findings were followed to where their lines are now, {len(carried.stale)} are stale, "
            f"{len(again)} questions are asked again"
        )
        self._session.journal.append("rebased", moved=carried.moved, stale=[f.id for f in carried.stale])
        if again and self._engine.metered:
            self._planned(rounds[-1].first_phase, "ask again", tuple({task.id: task for task in again}.values()))

    @property
    def _attempts(self) -> int:
        return sum(record.attempts for record in self.manifest.tasks)

    @property
    def agents_left(self) -> int:
        """How many more subagents may be started."""
        return max(0, self._limits.max_agents - self._attempts)

    async def _plan(self, phase: int, summaries: Sequence[PhaseSummary], *, again: bool, closed: bool) -> bool:
        """Whether there is a phase to work on: one already planned, or a new one that passed the check.

        `again`: the phase before brought news since this one was planned, so that tasks may be added to it, where
        planning costs nothing. `closed`: nothing new may be planned.
        """
        old = self.manifest.tasks_of(phase)
        if old and all(record.task.role == VERIFY_ROLE for record in old):
            return False
        if closed or (old and (self._engine.metered or not again)):
            return bool(old)
        plan = await self._engine.plan(self._workspace, phase - self.manifest.phases_before, summaries)
        known = {record.id for record in self.manifest.tasks}
        tasks = tuple(task for task in plan.tasks if task.id not in known) if plan else ()
        if plan is None or not tasks:
            return bool(old)
        if reasons := self.check_tasks(tasks):
            raise EngineError(
                f"the plan of phase {phase} cannot be carried out: {'; '.join(reasons)}",
                hint="ask again, or narrow the question",
            )
        self._planned(phase, plan.title, (*(record.task for record in old), *tasks))
        return True

    def _planned(self, phase: int, title: str, tasks: Sequence[Task]) -> None:
        self._session.journal.append("phase_planned", phase=phase, title=title, tasks=[t.id for t in tasks])
        self.save(self.manifest.with_phase(phase, title, tasks))

    def check_tasks(self, tasks: Sequence[Task]) -> Sequence[str]:
        """Why these tasks cannot be carried out, one reason each; none for a good plan."""
        known = {record.id for record in self.manifest.tasks}
        try:
            check_plan(tasks, known_paths=self._workspace.snapshot.files().keys(), finished=known, most=MOST_TASKS)
        except PlanRefused as refusal:
            return refusal.reasons
        return ()

    # --- investigating ---

    async def _investigate(self, phase: int) -> str:
        """Run what has not finished; returns the limit that kept something from running, or an empty text."""
        title = next(one.title for one in self.manifest.phases if one.n == phase)
        todo = [r.task for r in self.manifest.tasks_of(phase) if r.status != "finished"]
        allowed = self._affordable(todo[: self.agents_left])
        self._view.phase(phase, title, len(self.manifest.tasks_of(phase)))
        summary = None if self._is_refuting(phase) else self._summary_before(phase)
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
        if limit := self._near_limit(short=len(allowed) < min(len(todo), self.agents_left)):
            return limit
        return _AGENTS if len(allowed) < len(todo) else ""

    def _affordable(self, todo: Sequence[Task]) -> Sequence[Task]:
        """Those of the tasks that the limits in tokens and money leave room for; what they will take is said first."""
        if self._spend is None or not todo:
            return todo
        allowed = self._spend.fitting(todo)
        if allowed:
            finished = [r.id for r in self.manifest.tasks if r.status == "finished" and r.task.role == allowed[0].role]
            estimate = self._spend.estimate(allowed, finished)
            self._view.say(estimate.line)
            if self._spend.must_ask(estimate):
                with self._view.paused():
                    self._approve(estimate)
                self._spend.agree(estimate)
        return allowed

    def _near_limit(self, *, short: bool = False) -> str:
        """The limit on spending that leaves no room for more work, or an empty text. `short`: some did not fit."""
        if self._spend is None:
            return ""
        name = self._spend.near()
        if name or short:
            return f"the limit on {name or self._spend.tightest} was reached"
        return ""

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
        with self._running():
            outcome = await self._engine.investigate(context)
        if outcome.status == "finished" and not recorder.findings() and not outcome.deliverable:
            return replace(outcome, status="incomplete", failure=outcome.failure or "ended with nothing recorded")
        return outcome

    @contextmanager
    def _running(self) -> Iterator[None]:
        """Limits on spending allow for a request of each subagent that runs."""
        if self._spend is not None:
            self._spend.running += 1
        try:
            yield
        finally:
            if self._spend is not None:
                self._spend.running -= 1

    async def _task_ended(self, task: Task, outcome: Outcome) -> None:
        """Outcome first, then journal, then manifest: whatever is missing later is brought in line from the first."""
        record = self.manifest.task(task.id)
        attempts = max(1, record.attempts if record else 1)
        if outcome.status == "stopped" and self._pads.recorder(task, record.phase if record else 1).findings():
            outcome = replace(outcome, status="partial")
        write_outcome(self._session, task.id, attempts, outcome)
        self._session.journal.append("task_ended", task=task.id, status=outcome.status, attempt=attempts)
        self.save(_ended(self.manifest, task.id, outcome))
        found = sum(1 for f in self._pads.findings() if task.id in f.origins)
        self._view.ended(task, outcome, found)

    # --- refuting ---

    async def _try_to_refute(self) -> str:
        """Put the claims that matter most to fresh subagents; what they refute is marked and never used as fact."""
        if self._refuter is None:
            return ""
        phase = next((p.n for p in self.manifest.phases if self._is_refuting(p.n)), 0)
        if not phase:
            phase = self.manifest.last_phase + 1
            plan = await self._refuter.refute(self._workspace, self._load_bearing(), phase)
            if plan is None:
                return ""
            self._planned(phase, plan.title, plan.tasks)
        reason = await self._investigate(phase)
        verdicts = [f for f in self._pads.findings() if f.phase == phase]
        known = [f.id for f in self._pads.findings()]
        for named, why in self._refuter.refuted(verdicts).items():
            meant = [i for i in known if i.startswith(named)]
            if len(meant) == 1:
                self._pads.mark(meant[0], "refuted", why)
        self._summarise(phase)
        return reason

    def _is_refuting(self, phase: int) -> bool:
        tasks = self.manifest.tasks_of(phase)
        return phase > self.manifest.phases_before and bool(tasks) and tasks[0].task.role == VERIFY_ROLE

    def _load_bearing(self) -> list[Finding]:
        """Checked claims of this round, those that matter most first."""
        own = [f for f in self._pads.findings() if f.phase > self.manifest.phases_before]
        usable = [f for f in own if f.status == "verified" and f.kind != "open_question"]
        return sorted(usable, key=lambda f: (-f.relevance * f.confidence, f.id))[:MOST_CLAIMS]

    # --- summaries, answer ---

    def _known(self) -> PhaseSummary:
        """What earlier rounds found, as one summary: what a further question starts from."""
        before = self.manifest.phases_before
        known = [f for f in self._pads.findings() if f.phase <= before]
        return build_summary(before, "known from before", known)

    def _summary_before(self, phase: int) -> PhaseSummary | None:
        if phase == 1:
            return None
        if phase == self.manifest.phases_before + 1:
            return self._known()
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
        answer = self._reusable(findings) or await self._engine.answer(self._workspace, findings, coverage)
        before = self.manifest.phases_before
        unfinished = [r for r in self.manifest.tasks if r.status != "finished" and r.phase > before]
        if not reason and unfinished:
            reason = "; ".join(dict.fromkeys(f"{r.task.role}: {r.failure or r.status}" for r in unfinished))
        cut_short = any(r.status in ("pending", "running", "partial", "stopped") for r in unfinished)
        if reason and not answer.found and (cut_short or not unfinished):
            finished = self.manifest.counts["finished"]
            answer = not_yet(reason, finished, len(self.manifest.tasks), findings)
        return Result(
            answer=answer, findings=findings, coverage=coverage, complete=not reason and not unfinished, reason=reason
        )

    def _reusable(self, findings: tuple[Finding, ...]) -> Answer | None:
        """The answer on disk when it was paid for and nothing it rests on has changed since."""
        kept = self._earlier_answer() if self._engine.metered else None
        if kept is None or (kept.basis, kept.question) != (basis_of(findings), self.manifest.asked):
            return None
        return kept.answer if kept.answer.found and not kept.reason else None

    def _coverage(self) -> Coverage:
        """Over all tasks, and what the index itself read and skipped."""
        outcomes = (read_outcome(self._session, record.id) for record in self.manifest.tasks)
        index = self._workspace.index
        own = Coverage(
            files_read=frozenset(index.paths()),
            skipped=(*self._workspace.snapshot.excluded(), *index.skipped()),
        )
        return coverages.merge([own, *(found[1].coverage for found in outcomes if found is not None)])


def _charged(manifest: Manifest, spend: Spend) -> Manifest:
    """The manifest with what the transcripts say was spent: on each task, and outside of all tasks."""
    names = spend.names
    for record in manifest.tasks:
        if record.id in names and (spent := spend.usage(record.id)) != record.usage:
            manifest = manifest.with_task_record(replace(record, usage=spent))
    known = {record.id for record in manifest.tasks}
    outside = add_usage(*(spend.usage(name) for name in names if name not in known))
    return manifest.with_overhead({n: outside[n] - manifest.overhead.get(n, 0) for n in outside})


def _ended(manifest: Manifest, task: str, outcome: Outcome) -> Manifest:
    counts = {
        "files_read": len(outcome.coverage.files_read),
        "skipped": len(outcome.coverage.skipped),
        "truncated": len(outcome.coverage.truncated),
        "timed_out": len(outcome.coverage.timed_out),
    }
    return manifest.with_task_ended(task, outcome.status, failure=outcome.failure, usage=outcome.usage, coverage=counts)
