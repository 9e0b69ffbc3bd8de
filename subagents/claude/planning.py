"""Plans of a phase: proposed by a model from what code knows already, sized and checked by code.

How many subagents a question deserves is not the model's to decide: few on one warmed prefix beat many, so code says
how many at most, and with one there is nothing to plan and nothing is asked. A proposal that cannot be carried out is
returned once with the reasons, then replaced by a plan made from the ranked hits alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from manifests.tasks import Task, task_id
from scratch.findings import Finding
from subagents.claude.answering import usable
from subagents.claude.contradictions import Contradiction, contradictions
from subagents.claude.structured import Reading
from subagents.codebase.types import FileHit
from subagents.engine import PhaseSummary, Workspace
from subagents.prompts import as_data, render
from subagents.static.question import parse_question

VERSION = 1
"""Part of every task's settings: a session begun by another version is not continued as if it were equal."""
HITS = 24
SMALL_FILES = 12
MOST_TASKS = 6
LATER_TASKS = 3
CLAIMS_A_TASK = 6
MOST_PAIRS = 6
"""Contradictions that one task is asked to settle; the others wait for a later phase, or stand in the answer."""
_TEXT_LIMIT = 4_000
_EVERYWHERE = ("", ".", "/", "./")
_SUMMARY_CHARS = 30_000

PLAN_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "enough": {"type": "boolean", "description": "Whether what is known answers the question: then no tasks."},
        "reason": {"type": "string", "description": "Why these tasks, or why none."},
        "tasks": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "id": {"type": "string", "description": "A short name, for depends_on."},
                    "question": {"type": "string"},
                    "scope": {"type": "array", "items": {"type": "string"}, "description": "Folders or files."},
                    "deliverable": {"type": "string", "description": "What has to be known at its end."},
                    "depends_on": {"type": "array", "items": {"type": "string"}},
                    "share": {"type": "number", "description": "Of the effort of this phase, 0 to 1."},
                },
                "required": ["id", "question", "scope", "deliverable", "depends_on", "share"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["enough", "reason", "tasks"],
    "additionalProperties": False,
}

CheckTasks = Callable[[Sequence[Task]], Sequence[str]]
"""Why tasks cannot be carried out, one reason each; none for a good plan. Source: orchestrator.dag."""


# --- sizing ---


def most_tasks(workspace: Workspace, *, phase: int, hits: Sequence[FileHit]) -> int:
    """How many subagents the question deserves at most: one for a place, more the wider the hits are spread.

    A later phase only follows what is open, so it is small.
    """
    if len(workspace.snapshot.files()) <= SMALL_FILES:
        return 1
    kind = parse_question(workspace.question).kind
    if kind == "where":
        return 1
    wide = len(areas(hits))
    if phase > 1:
        return min(LATER_TASKS, max(1, wide))
    if kind in ("structure", "impact", "dependents"):
        return min(MOST_TASKS, max(2, wide))
    return min(4, max(1, wide))


def areas(hits: Sequence[FileHit]) -> list[str]:
    """Folders that hold a good share of what the hits weigh, heaviest first; none inside another."""
    weights: dict[str, float] = {}
    for hit in hits:
        folder = "/".join(hit.path.split("/")[:-1][:2])
        weights[folder] = weights.get(folder, 0.0) + max(0.0, hit.score)
    total = sum(weights.values()) or 1.0
    ranked = sorted(weights, key=lambda folder: (-weights[folder], folder))
    heavy = [folder for folder in ranked if folder and weights[folder] >= 0.08 * total]
    return [f for f in heavy if not any(f != other and f.startswith(f"{other}/") for other in heavy)]


# --- the request ---


def plan_opening(
    workspace: Workspace, phase: int, summaries: Sequence[PhaseSummary], *, most: int, hits: Sequence[FileHit]
) -> str:
    """Text of the request: question, limits, ranked hits, what earlier phases found. The brief stands in the system."""
    known = "\n\n".join(summary.markdown for summary in summaries)[-_SUMMARY_CHARS:]
    pairs = contradictions(usable([finding for summary in summaries for finding in summary.findings]))
    if pairs:
        known += "\n\n### Findings that contradict each other\n" + "\n".join(f"- {p.line}" for p in pairs[:MOST_PAIRS])
    return render(
        "plan_request",
        question=workspace.question,
        max_tasks=str(most),
        phase=str(phase),
        scope=f"Only these paths may be explored: {', '.join(workspace.snapshot.scope)}"
        if workspace.snapshot.scope
        else "",
        hits=as_data("ranked_hits", hit_lines(hits)),
        summaries=as_data("phase_summary", known),
    )


def hit_lines(hits: Sequence[FileHit]) -> str:
    """One line a file: path, the symbols to look at, why it is here."""
    lines = []
    for hit in hits:
        names = ", ".join(f"{s.symbol.qualified}:{s.symbol.start}" for s in hit.symbols[:3])
        lines.append(f"{hit.path}{f' ({names})' if names else ''}")
    return "\n".join(lines)


# --- reading a proposal ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """What the model proposes, as tasks. None of it means: enough is known."""

    tasks: tuple[Task, ...]
    reason: str


def read_plan(
    body: Mapping[str, Any], workspace: Workspace, *, most: int, phase: int, known: bool, check: CheckTasks
) -> Reading[Proposal]:
    """Tasks out of untrusted JSON, with the reasons why they cannot be carried out, if any.

    `known`: something is known already, so that proposing nothing needs no second thought.
    """
    reasons: list[str] = []
    items = body.get("tasks")
    if not isinstance(items, list):
        return Reading(None, ("`tasks` is not a list",))
    if len(items) > most:
        return Reading(None, (f"{len(items):,} tasks are proposed, at most {most} are allowed: merge or drop some",))
    reason = str(body.get("reason") or "")[:_TEXT_LIMIT]
    if not items and not known and body.get("enough") is not True:
        reasons.append("no task is proposed although nothing is known yet; if code cannot answer this, set `enough`")
    raw = [_Raw.read(item, n, reasons) for n, item in enumerate(items)]
    names = [one.name for one in raw]
    reasons += [f"two tasks are called {name!r}" for name in sorted({n for n in names if names.count(n) > 1})]
    tasks = _tasks([one for one in raw if one.question], workspace, phase, reasons)
    reasons += check(tasks)
    return Reading(Proposal(tasks=tasks, reason=reason), tuple(reasons))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Raw:
    name: str
    question: str
    scope: tuple[str, ...]
    deliverable: str
    depends_on: tuple[str, ...]
    share: float

    @staticmethod
    def read(item: object, n: int, reasons: list[str]) -> _Raw:
        body = item if isinstance(item, Mapping) else {}
        name = str(body.get("id") or f"task {n + 1}")[:100]
        question = body.get("question")
        if not isinstance(question, str) or not question.strip():
            reasons.append(f"task {name!r} asks nothing")
            question = ""
        share = body.get("share")
        good = isinstance(share, int | float) and not isinstance(share, bool) and 0 < share <= 1
        return _Raw(
            name=name,
            question=question.strip()[:_TEXT_LIMIT],
            scope=tuple(
                dict.fromkeys(p.strip().strip("/") for p in _texts(body.get("scope")) if p.strip() not in _EVERYWHERE)
            ),
            deliverable=str(body.get("deliverable") or "").strip()[:_TEXT_LIMIT],
            depends_on=_texts(body.get("depends_on")),
            share=float(share) if good else 0.0,  # type: ignore[arg-type]
        )


def _texts(value: object) -> tuple[str, ...]:
    return tuple(v[:_TEXT_LIMIT] for v in value[:200] if isinstance(v, str)) if isinstance(value, list) else ()


def _tasks(raw: Sequence[_Raw], workspace: Workspace, phase: int, reasons: list[str]) -> tuple[Task, ...]:
    total = sum(one.share for one in raw)
    made: dict[str, Task] = {}
    for one in raw:
        share = one.share / total if total > 0 and one.share else 1 / len(raw)
        made[one.name] = explore_task(
            workspace, one.question, scope=one.scope, deliverable=one.deliverable, phase=phase, share=share
        )
    out = []
    for one in raw:
        unknown = [name for name in one.depends_on if name not in made]
        reasons += [f"task {one.name!r} depends on {name!r}, which is no task of this plan" for name in unknown[:3]]
        needs = tuple(made[name].id for name in one.depends_on if name in made)
        out.append(replace(made[one.name], depends_on=needs))
    return tuple(out)


def explore_task(
    workspace: Workspace,
    question: str,
    *,
    scope: tuple[str, ...] = (),
    deliverable: str = "",
    phase: int = 1,
    share: float = 1.0,
    role: str = "investigate",
    extra: Mapping[str, object] | None = None,
) -> Task:
    """A task of this engine, with the id that its content gives it."""
    settings: dict[str, object] = {
        "engine": "claude",
        "version": VERSION,
        "asked": workspace.question,
        "phase": phase,
        "share": round(share, 3),
        **(extra or {}),
    }
    return Task(
        id=task_id(
            role=role,
            question=question,
            scope=scope,
            deliverable=deliverable,
            snapshot_tree=workspace.snapshot.id.tree,
            settings=settings,
        ),
        role=role,
        question=question,
        scope=scope,
        deliverable=deliverable,
        settings=settings,
    )


# --- plans made by code ---


def plan_by_code(workspace: Workspace, *, phase: int, most: int, hits: Sequence[FileHit]) -> tuple[Task, ...]:
    """One task for an easy question, else the question once for each area that the hits are spread over."""
    folders = areas(hits)[:most]
    if most <= 1 or len(folders) <= 1:
        return (explore_task(workspace, workspace.question, scope=workspace.snapshot.scope, phase=phase),)
    return tuple(
        explore_task(workspace, workspace.question, scope=(folder,), phase=phase, share=1 / len(folders))
        for folder in folders
    )


def settling_task(workspace: Workspace, pairs: Sequence[Contradiction], *, phase: int) -> Task | None:
    """One task that finds out which of the contradicting findings hold; None when none contradict each other."""
    if not pairs:
        return None
    return explore_task(
        workspace,
        "These findings contradict each other. Read what each rests on and what decides between them, and record which "
        "holds, or under which condition each does.\n"
        + as_data("contradicting_findings", "\n".join(pair.line for pair in pairs[:MOST_PAIRS])),
        scope=workspace.snapshot.scope,
        deliverable="for each pair a finding that decides it, with the lines that do",
        phase=phase,
    )


def refutation_tasks(workspace: Workspace, findings: Sequence[Finding], *, phase: int) -> tuple[Task, ...]:
    """Claims and their citations for fresh subagents, which see neither reasoning nor author."""
    out = []
    for start in range(0, len(findings), CLAIMS_A_TASK):
        part = findings[start : start + CLAIMS_A_TASK]
        lines = [f"{f.id}: {' '.join(f.claim.split())} ({', '.join(c.where for c in f.citations)})" for f in part]
        out.append(
            explore_task(
                workspace,
                "Try to refute each of these claims.\n" + as_data("claims", "\n".join(lines)),
                deliverable="a verdict for each claim that can be decided",
                phase=phase,
                share=1.0,
                role="verify",
                extra={"claims": [f.id for f in part]},
            )
        )
    return tuple(out)
