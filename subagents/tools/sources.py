"""Ties the tools to the snapshot's own search and history, where it has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from subagents.codebase.types import Snapshot
from subagents.tools.desk import Change, ChangeLog, TextSearch


def text_search(snapshot: Snapshot) -> TextSearch | None:
    """Search over this snapshot, or None for one that is not a frozen repository."""
    from subagents.codebase.ripgrep import search_text
    from subagents.codebase.snapshot import FrozenSnapshot

    return partial(search_text, snapshot) if isinstance(snapshot, FrozenSnapshot) else None


def change_log(snapshot: Snapshot) -> ChangeLog | None:
    """History of this snapshot, or None where there are no commits."""
    from subagents.codebase.snapshot import FrozenSnapshot

    if not isinstance(snapshot, FrozenSnapshot) or snapshot.id.commit is None:
        return None
    return GitChanges(snapshot)


@dataclass(frozen=True, slots=True)
class GitChanges:
    """`ChangeLog` by git."""

    snapshot: Snapshot

    def log(self, path: str, *, limit: int) -> Sequence[Change]:
        from subagents.codebase.history import Commit, file_history

        def change(commit: Commit) -> Change:
            return Change(commit=commit.id, date=commit.date.isoformat(), author=commit.author, summary=commit.subject)

        return [change(c) for c in file_history(self.snapshot, path, limit).commits]  # type: ignore[arg-type]

    def blame(self, path: str, start: int, end: int) -> Sequence[Change]:
        from subagents.codebase.history import line_history

        return [
            Change(
                commit=origin.commit.id,
                date=origin.commit.date.isoformat(),
                author=origin.commit.author,
                summary=origin.commit.subject,
                lines=(origin.start, origin.end),
            )
            for origin in line_history(self.snapshot, path, start, end)  # type: ignore[arg-type]
        ]
