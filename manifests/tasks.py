"""Tasks as the manifest stores them: described by content, so that a result is found again in any order."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import orjson

TaskStatus = Literal["pending", "running", "finished", "partial", "incomplete", "failed", "stopped"]
"""`finished`: delivered. `partial`: has findings, cut off by a limit. `incomplete`: ended with nothing delivered.
`failed`: an error. `stopped`: silence limit or the person. Only `finished` is never run again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One delegated question. `id` is a hash of all that decides its result; see `task_id`."""

    id: str
    role: str
    """Which method of the engine carries it out, e.g. `survey`, `locate.code`, `trace`, `investigate`."""
    question: str
    scope: tuple[str, ...] = ()
    """Paths in the snapshot (folders or files) that the task may look at; empty means everywhere."""
    deliverable: str = ""
    depends_on: tuple[str, ...] = ()
    settings: Mapping[str, object] = field(default_factory=dict)
    """JSON values only. Whatever else decides the result (limits, seeds, model, ...)."""


def task_id(
    *,
    role: str,
    question: str,
    scope: tuple[str, ...],
    deliverable: str,
    snapshot_tree: str,
    settings: Mapping[str, object],
) -> str:
    """`t` and 16 hex digits: SHA-256 over the canonical JSON of everything that decides the task's result."""
    body = {
        "role": role,
        "question": question,
        "scope": sorted(scope),
        "deliverable": deliverable,
        "tree": snapshot_tree,
        "settings": dict(settings),
    }
    return "t" + hashlib.sha256(orjson.dumps(body, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]
