"""Opens what every command works on: snapshot, then index and finder of one repository, closed together."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.view import View

if TYPE_CHECKING:
    from subagents.codebase.types import Snapshot
    from subagents.engine import Workspace
    from subagents.index.code_index import StoredIndex


@contextmanager
def workspace_of(snapshot: Snapshot, *, question: str, cache_dir: Path, view: View) -> Iterator[Workspace]:
    """Index what changed and open ranked search. Raises EngineError when the index cannot be built."""
    from subagents.engine import Workspace
    from subagents.ranking import open_finder

    with indexed(snapshot, cache_dir=cache_dir, view=view) as index:
        finder = open_finder(snapshot, index, cache_dir)
        yield Workspace(snapshot=snapshot, index=index, finder=finder, question=question)


@contextmanager
def indexed(snapshot: Snapshot, *, cache_dir: Path, view: View) -> Iterator[StoredIndex]:
    """The index alone; says what had to be repaired."""
    from subagents.index.opening import open_index

    with open_index(snapshot, cache_dir, progress=view.progress) as index:
        for notice in index.notices:
            view.say(notice)
        yield index
