"""How each task ended, one document a task: written before anything else hears of it, so a result exists exactly once.

`outcomes/<task id>.json` is what resume trusts; journal and manifest follow it and are brought in line with it.
"""

from __future__ import annotations

from typing import Literal

from manifests.envelope import DOCTOR, Schema
from manifests.errors import StateError
from manifests.fields import Fields, Malformed
from manifests.sessions import SCRATCH_SCHEMA, Session
from orchestrator import coverage
from subagents.engine import Outcome

_ENDS: tuple[Literal["finished", "partial", "incomplete", "failed", "stopped"], ...] = (
    "finished",
    "partial",
    "incomplete",
    "failed",
    "stopped",
)
OUTCOME_SCHEMA = Schema(name="leadline/outcome", version=1)


def outcome_name(task: str) -> str:
    """Name of the document inside the session."""
    return f"outcomes/{task}.json"


def write_outcome(session: Session, task: str, attempt: int, outcome: Outcome) -> None:
    """Durable when it returns."""
    body = {
        "task": task,
        "attempt": attempt,
        "status": outcome.status,
        "failure": outcome.failure,
        "deliverable": outcome.deliverable,
        "usage": dict(outcome.usage),
        "coverage": coverage.to_dict(outcome.coverage),
        "scratchpad": _head(session, task),
    }
    session.write_document(outcome_name(task), OUTCOME_SCHEMA, body)


def _head(session: Session, task: str) -> dict[str, object] | None:
    """How far the task's scratchpad had come: records cut off at its end, or all of it gone, show by this."""
    head = session.head_of(_scratchpad(task), SCRATCH_SCHEMA)
    return None if head is None else {"records": head[0], "sum": head[1]}


def _scratchpad(task: str) -> str:
    return f"scratch/{task}.jsonl"


def check_scratchpad(session: Session, task: str) -> None:
    """StateError unless the scratchpad holds all that it held when the task ended."""
    name = outcome_name(task)
    body = session.read_document(name, OUTCOME_SCHEMA)
    if body.get("scratchpad") is None:
        return
    try:
        fields = Fields(body["scratchpad"], name)
        records, total = fields.integer("records", low=0, high=1 << 40), fields.text("sum", limit=16)
    except Malformed as problem:
        raise StateError(f"{str(session.path_of(name))!r} cannot be used: {problem}", hint=DOCTOR) from problem
    path = str(session.path_of(_scratchpad(task)))
    try:
        found = session.read_log(_scratchpad(task), SCRATCH_SCHEMA, bodies=False).sum_at(records)
    except FileNotFoundError:
        raise StateError(f"{path!r} is missing", hint=DOCTOR) from None
    if found != total:
        raise StateError(f"{path!r} ends before record {records}, or is another: records are missing", hint=DOCTOR)


def read_outcome(session: Session, task: str) -> tuple[int, Outcome] | None:
    """(attempt, outcome), or None when the task has not ended yet. Raises StateError for a damaged document."""
    name = outcome_name(task)
    if not session.has(name):
        return None
    body = session.read_document(name, OUTCOME_SCHEMA)
    fields = Fields(body, name)
    try:
        if fields.text("task", limit=100) != task:
            raise Malformed(f"{name} is about another task")
        outcome = Outcome(
            status=fields.choice("status", _ENDS),
            coverage=coverage.from_dict(fields.mapping("coverage", limit=10)),
            usage=fields.numbers("usage", limit=100),
            failure=fields.text("failure", limit=100_000),
            deliverable=fields.text("deliverable", limit=100_000, default=""),
        )
        return fields.integer("attempt", low=1, high=1_000_000), outcome
    except ValueError as problem:
        raise StateError(f"{str(session.path_of(name))!r} cannot be used: {problem}", hint=DOCTOR) from problem
