"""The static engine: plans, investigates and answers with symbols, calls, imports, prose, tests and history. No model.

Three phases: survey the repository, locate what matters for the question, trace how it hangs together. What is
traced, and how, follows the kind of question and what locate found, read from its phase summary.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence

from manifests.tasks import Task, task_id
from scratch.findings import Finding
from subagents.engine import Answer, Coverage, Outcome, PhaseSummary, Plan, TaskContext, Workspace
from subagents.static.analysis import Analysis
from subagents.static.compose import compose
from subagents.static.question import Question, parse_question
from subagents.static.work import carry_out

VERSION = 2
"""Part of every task's settings: a session begun by another version of this engine is not continued as if equal."""

MAX_CHAINS = 2
MAX_TARGETS = 2

_TITLES = {1: "survey", 2: "locate", 3: "trace"}
_LOCATE = (
    ("locate.code", "Which definitions matter for the question?"),
    ("locate.docs", "What does the documentation say about it?"),
    ("locate.config", "Where is it configured?"),
    ("locate.tests", "Which tests are about it?"),
    ("locate.history", "What changed there lately?"),
)
_OF_CHAIN = (
    ("trace.calls", "Who calls whom from {name} downwards, and where is the straight line left?"),
    ("trace.setup", "Which tables does the chain from {name} read, and who fills them?"),
    ("trace.tests", "Which tests show the chain from {name}?"),
    ("trace.docs", "Which documentation explains the chain from {name}?"),
    ("trace.history", "What changed lately along the chain from {name}?"),
)
_USES = (
    ("trace.callers", "Who calls or mentions {name}?"),
    ("trace.importers", "Who imports {name}?"),
    ("trace.subclasses", "What extends {name}?"),
)
_IMPACT = (
    ("trace.transitive", "How far does a change of {name} travel along imports?"),
    ("trace.public", "Is {name} offered to the outside?"),
    ("trace.tests", "Which tests exercise {name}?"),
    ("trace.docs", "Which documentation mentions {name}?"),
    ("trace.history", "What changed lately in {name}?"),
)
_PLACE = (
    ("trace.callers", "Who uses {name}?"),
    ("trace.members", "What does {name} offer?"),
    ("trace.subclasses", "What extends {name}?"),
    ("trace.tests", "Which tests exercise {name}?"),
    ("trace.history", "What changed lately in {name}?"),
)


Wanted = tuple[str, str, dict[str, object]]
"""(role, question of the task, settings)"""


class StaticEngine:
    """Implements `Engine`. Keeps only caches of pure functions of (snapshot, question)."""

    def __init__(self) -> None:
        self._analyses: dict[tuple[str, tuple[str, ...], str], Analysis] = {}
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        return "static"

    @property
    def metered(self) -> bool:
        return False

    async def plan(self, workspace: Workspace, phase: int, summaries: Sequence[PhaseSummary]) -> Plan | None:
        """Phase 3 follows from the findings of phase 2; without roots or places there is nothing to trace."""
        wanted: list[Wanted]
        if phase == 1:
            wanted = [("survey", "What is in this repository?", {})]
        elif phase == 2:
            wanted = [(role, f"{text} {workspace.question}", {}) for role, text in _LOCATE]
        elif phase == 3 and summaries:
            wanted = _trace(parse_question(workspace.question), summaries[-1].findings)
        else:
            return None
        tasks = tuple(_task(workspace, role, text, settings) for role, text, settings in wanted)
        return Plan(title=_TITLES[phase], tasks=tasks) if tasks else None

    async def investigate(self, context: TaskContext) -> Outcome:
        from subagents.static.makers import MAKERS

        make = MAKERS.get(context.task.role)
        if make is None:
            return Outcome(status="failed", failure=f"the static engine has no role {context.task.role!r}")
        context.heartbeat()
        return await carry_out(context, self._analysis(context.workspace), make)

    async def answer(self, workspace: Workspace, findings: Sequence[Finding], coverage: Coverage) -> Answer:
        from subagents.static.unknown import absent_names

        def made() -> Answer:
            question = parse_question(workspace.question)
            return compose(question, findings, coverage, absent_names(question, workspace), workspace.index.paths())

        return await asyncio.to_thread(made)

    async def close(self) -> None:
        self._analyses.clear()

    def _analysis(self, workspace: Workspace) -> Analysis:
        snapshot = workspace.snapshot
        key = (snapshot.id.tree, snapshot.scope, workspace.question)
        with self._lock:
            if key not in self._analyses:
                self._analyses.clear()
                self._analyses[key] = Analysis(workspace)
            return self._analyses[key]


def _task(workspace: Workspace, role: str, text: str, settings: Mapping[str, object]) -> Task:
    snapshot = workspace.snapshot
    settings = {"engine": "static", "version": VERSION, "asked": workspace.question, **settings}
    scope = snapshot.scope
    return Task(
        id=task_id(
            role=role, question=text, scope=scope, deliverable="", snapshot_tree=snapshot.id.tree, settings=settings
        ),
        role=role,
        question=text,
        scope=scope,
        settings=settings,
    )


def _trace(question: Question, findings: Sequence[Finding]) -> list[Wanted]:
    """What to trace: chains for "how", uses for "where" and "what depends", reach for "what would break"."""
    if question.kind == "structure":
        return [("trace.layers", "Which folders import which, and where are cycles and hubs?", {})]
    wanted: list[Wanted] = []
    starts = _by_step(findings, "start")[:MAX_CHAINS]
    definitions = _by_step(findings, "definition")
    if question.kind == "what" and definitions and definitions[0].data.get("kind") not in ("function", "method"):
        starts = []
    if question.kind in ("how", "what", "other"):
        for number, start in enumerate(starts):
            settings = {"root": _symbol(start), "chain": number}
            roles_of_chain = _OF_CHAIN if number == 0 else _OF_CHAIN[:1]
            wanted += [(role, text.format(name=_name(start)), settings) for role, text in roles_of_chain]
    if question.kind in ("where", "what", "other"):
        for number, definition in enumerate(definitions[: MAX_TARGETS if question.kind == "where" else 1]):
            settings = {"symbol": _symbol(definition), "number": number}
            per_place = _PLACE if number == 0 else _PLACE[:1]
            known = {role for role, _, _ in wanted}
            wanted += [(r, text.format(name=_name(definition)), settings) for r, text in per_place if r not in known]
    if question.kind in ("dependents", "impact"):
        for number, target in enumerate(_by_step(findings, "target")[:MAX_TARGETS]):
            if target.data.get("target") == "symbol":
                settings = {"symbol": _symbol(target), "number": number}
            else:
                settings = {"target": target.data.get("symbol"), "number": number}
            kind = target.data.get("target")
            roles: tuple[tuple[str, str], ...] = (
                _USES if kind == "symbol" else _USES[:1] if kind == "name" else _USES[1:2]
            )
            roles += _IMPACT if question.kind == "impact" and number == 0 else _IMPACT[2:3] if number == 0 else ()
            wanted += [(role, text.format(name=_name(target)), settings) for role, text in roles]
    return wanted


def _by_step(findings: Sequence[Finding], step: str) -> list[Finding]:
    """Findings of one step in the order locate gave them."""

    def order(finding: Finding) -> tuple[int, str]:
        value = finding.data.get("order", finding.data.get("number", 0))
        return (value if isinstance(value, int) else 0, finding.id)

    return sorted((f for f in findings if f.data.get("step") == step), key=order)


def _symbol(finding: Finding) -> dict[str, object]:
    return {name: finding.data.get(name) for name in ("path", "line", "symbol")}


def _name(finding: Finding) -> str:
    return str(finding.data.get("symbol"))
