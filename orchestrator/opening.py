"""Opens what every command works on: snapshot, index and finder of one repository, closed together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from orchestrator.view import View
from subagents.codebase.types import Snapshot, SnapshotId
from subagents.engine import Workspace


@contextmanager
def opened(
    root: Path,
    *,
    question: str,
    scope: Sequence[str],
    cache_dir: Path,
    view: View,
    store: Path | None = None,
    pinned: SnapshotId | None = None,
) -> Iterator[Workspace]:
    """The workspace of one repository. `store` is where a working tree that is no commit is frozen to.

    Raises UsageError when `root` cannot be explored, EngineError when git or the index fails.
    """
    from subagents.codebase.snapshot import open_snapshot

    with ExitStack() as stack:
        snapshot = open_snapshot(root, scope=tuple(scope), store=store, pinned=pinned)
        stack.callback(snapshot.close)
        yield _indexed(stack, snapshot, question=question, cache_dir=cache_dir, view=view)


def _indexed(stack: ExitStack, snapshot: Snapshot, *, question: str, cache_dir: Path, view: View) -> Workspace:
    from subagents.index import open_index
    from subagents.ranking import open_finder

    index = stack.enter_context(open_index(snapshot, cache_dir, progress=view.progress))
    finder = open_finder(snapshot, index, cache_dir)
    return Workspace(snapshot=snapshot, index=index, finder=finder, question=question)
