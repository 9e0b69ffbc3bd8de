"""The task DAG of one phase: plans are refused here, before anything is spent (design, section 3.3)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import islice

from manifests.tasks import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRefused(Exception):
    """Why a plan cannot be carried out; one reason a line, in words the one who planned can act on."""

    reasons: tuple[str, ...]

    def __str__(self) -> str:
        return "; ".join(self.reasons)


def check_plan(tasks: Sequence[Task], *, known_paths: Collection[str], finished: Collection[str], most: int) -> None:
    """Unique ids, dependencies that exist and do not circle, scopes that exist, none overlapping, at most `most` tasks.

    `known_paths` are the path keys of the snapshot. Scopes are compared between tasks of the same role and settings,
    since these would explore the same thing twice; not where one waits for the other and starts from what that found.
    Raises PlanRefused with all reasons.
    """
    reasons: list[str] = []
    ids = [task.id for task in tasks]
    if len(tasks) > most:
        reasons.append(f"{len(tasks)} tasks, at most {most} are allowed")
    reasons += [f"two tasks are the same: {i}" for i in sorted({i for i in ids if ids.count(i) > 1})]
    reasons += [f"task {task.id} asks nothing" for task in tasks if not task.question.strip()]
    known = set(ids) | set(finished)
    reasons += [f"task {t.id} depends on {d}, which is no task" for t in tasks for d in t.depends_on if d not in known]
    folders = _folders(known_paths)
    reasons += [f"scope {s!r} is not in the snapshot" for t in tasks for s in t.scope if s.strip("/") not in folders]
    reasons += _overlaps(tasks)
    if not reasons:
        reasons += _cycles(tasks)
    if reasons:
        raise PlanRefused(reasons=tuple(reasons))


def waves(tasks: Sequence[Task]) -> list[list[str]]:
    """Ids in generations: every task stands after all it depends on; the given order is kept within one."""
    depth: dict[str, int] = {}
    by_id = {task.id: task for task in tasks}

    def visit(start: str) -> int:
        stack = [start]
        while stack:
            task = by_id[stack[-1]]
            waiting = [d for d in task.depends_on if d in by_id and d not in depth]
            if waiting:
                stack.extend(waiting)
                continue
            depth[task.id] = 1 + max((depth[d] for d in task.depends_on if d in by_id), default=-1)
            stack.pop()
        return depth[start]

    out: list[list[str]] = []
    for task in tasks:
        level = visit(task.id)
        while len(out) <= level:
            out.append([])
        out[level].append(task.id)
    return out


def _folders(paths: Collection[str]) -> set[str]:
    out = {""}
    for path in paths:
        out.add(path)
        while "/" in path:
            path = path.rpartition("/")[0]
            if path in out:
                break
            out.add(path)
    return out


def _about(task: Task) -> tuple[object, ...]:
    """What two tasks must have in common to explore the same thing, if their scopes overlap. What they deliver and what
    they may spend does not set them apart: the same code is read twice all the same."""
    return (task.role, sorted((name, repr(value)) for name, value in task.settings.items() if name != "share"))


def _overlaps(tasks: Sequence[Task]) -> list[str]:
    out = []
    about = {task.id: _about(task) for task in tasks}
    for n, one in enumerate(tasks):
        for other in tasks[n + 1 :]:
            if about[one.id] != about[other.id] or other.id in one.depends_on or one.id in other.depends_on:
                continue
            if one.question != other.question and not (one.scope and other.scope):
                continue
            for a in one.scope or ("",):
                for b in other.scope or ("",):
                    a_, b_ = a.strip("/"), b.strip("/")
                    if a_ == b_ or not a_ or not b_ or a_.startswith(b_ + "/") or b_.startswith(a_ + "/"):
                        out.append(f"tasks {one.id} and {other.id} overlap: {a or '/'} and {b or '/'}")
    return out


def _cycles(tasks: Sequence[Task]) -> list[str]:
    if not any(task.depends_on for task in tasks):
        return []
    import networkx

    graph = networkx.DiGraph((d, task.id) for task in tasks for d in task.depends_on)
    few = islice(networkx.simple_cycles(graph), 3)  # there can be more than anybody could list
    return [f"tasks depend on each other in a circle: {' -> '.join(circle)}" for circle in few]
