"""Recent commits of the places an answer names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from subagents.static.drafts import Draft, where
from subagents.static.source import shorten
from subagents.static.work import Job

PER_FILE = 3
TIMEOUT_S = 2.0
COMMITS = 400


def history_drafts(job: Job, places: Sequence[tuple[str, int]]) -> Iterator[Draft]:
    """The last commits of each file, cited at the place the answer is about. Nothing without a git history."""
    from subagents.codebase.frozen import FrozenSnapshot
    from subagents.codebase.history import recent_commits

    snapshot = job.workspace.snapshot
    if not isinstance(snapshot, FrozenSnapshot) or snapshot.id.commit is None or not places:
        return
    history = recent_commits(snapshot, COMMITS, timeout_s=TIMEOUT_S)
    if not history.complete:
        job.truncated.append(f"history: the last {len(history.commits)} commits")
    for path, line in places:
        job.tick()
        given = 0
        for commit in history.commits:
            if path not in commit.paths or commit.many:
                continue
            day = commit.date.date().isoformat()
            yield Draft(
                claim=f"{path} changed on {day} in {commit.id[:8]}: {shorten(commit.subject, 120)}",
                kind="structure",
                citations=((path, line, line),),
                relevance=0.3,
                confidence=0.95,
                data={
                    "step": "commit",
                    "commit": commit.id,
                    "date": day,
                    "subject": shorten(commit.subject, 120),
                    "path": path,
                    "line": line,
                    "place": where(path, line),
                },
            )
            given += 1
            if given >= PER_FILE:
                break
