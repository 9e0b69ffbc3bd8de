"""A question asked again at a newer snapshot is another task: its id holds the tree it is about."""

from __future__ import annotations

from dataclasses import replace

from manifests.tasks import Task, task_id
from subagents.codebase.types import Snapshot


def retaken(task: Task, snapshot: Snapshot) -> Task:
    """The same question about this snapshot. Of its scope, what is still there; dependencies had their turn."""
    scope = tuple(path for path in task.scope if _is_there(path.strip("/"), snapshot))
    return replace(
        task,
        id=task_id(
            role=task.role,
            question=task.question,
            scope=scope,
            deliverable=task.deliverable,
            snapshot_tree=snapshot.id.tree,
            settings=task.settings,
        ),
        scope=scope,
        depends_on=(),
    )


def _is_there(path: str, snapshot: Snapshot) -> bool:
    files = snapshot.files()
    return path in files or any(name.startswith(f"{path}/") for name in files)
