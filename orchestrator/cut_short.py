"""The answer of a run that ended before it could answer: what there is, and no claim that anything is absent."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.terminal import printable_line
from scratch.findings import Finding
from subagents.engine import Answer, Statement

SHOWN = 5


def not_yet(reason: str, finished: int, planned: int, findings: Sequence[Finding]) -> Answer:
    """`reason`: why it ended. The findings that matter most are listed, as they stand."""
    first = f"Not answered yet: {reason}. Nothing is called absent: {finished} of {planned} subagents had finished."
    best = sorted(
        (one for one in findings if one.status == "verified"), key=lambda one: (-one.relevance, one.phase, one.id)
    )[:SHOWN]
    statements = [Statement(text=first, findings=())]
    lines = [f"**Short answer.** {first}"]
    if best:
        lines.append("**Found until then.**")
        lines.append("\n".join(f"- {printable_line(one.claim)}" for one in best))
        statements += [Statement(text=one.claim, findings=(one.id,)) for one in best]
    return Answer(markdown="\n\n".join(lines) + "\n", statements=tuple(statements), found=False)
