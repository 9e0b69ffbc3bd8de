"""Recent commits of the places an answer names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from subagents.static.drafts import Draft
from subagents.static.work import Job


def history_drafts(job: Job, paths: Sequence[str]) -> Iterator[Draft]:
    yield from ()
