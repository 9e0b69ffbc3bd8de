"""Phase summaries: code, not a model, digests what a phase found for the next subagents (design, section 3.5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scratch.findings import Finding
from subagents.engine import PhaseSummary

_HEADERS = {
    "flow": "Flow",
    "behaviour": "Behaviour",
    "structure": "Structure",
    "decision": "Decisions",
    "risk": "Risks",
}
CHARACTERS_PER_TOKEN = 3.6
"""Measured on English and code with the tokenizers at hand; only used to bound, never to bill."""


def build_summary(phase: int, title: str, findings: Sequence[Finding], *, most_tokens: int = 4000) -> PhaseSummary:
    """Key findings first (relevance x confidence), verbatim with citations, grouped under headers, bounded in tokens.

    Only verified findings enter. What does not fit is counted in `left_out`, and the text says so. The same findings
    in any order give the same summary.
    """
    usable = sorted(
        {f.id: f for f in findings if f.status == "verified" and f.kind != "open_question"}.values(),
        key=lambda f: (-f.relevance * f.confidence, f.id),
    )
    budget = most_tokens * CHARACTERS_PER_TOKEN
    kept: list[Finding] = []
    for finding in usable:
        budget -= len(_line(finding)) + 1
        if budget < 0:
            break
        kept.append(finding)
    questions = tuple(dict.fromkeys(f.claim for f in findings if f.kind == "open_question"))[:20]
    left_out = len(usable) - len(kept)
    return PhaseSummary(
        phase=phase,
        title=title,
        findings=tuple(kept),
        open_questions=questions,
        left_out=left_out,
        markdown=_markdown(title, kept, questions, left_out),
    )


def summary_to_dict(summary: PhaseSummary) -> dict[str, object]:
    """What phases/<n>.json holds: ids only, since the findings themselves stand in the scratchpads."""
    return {
        "phase": summary.phase,
        "title": summary.title,
        "findings": [f.id for f in summary.findings],
        "open_questions": list(summary.open_questions),
        "left_out": summary.left_out,
        "markdown": summary.markdown,
    }


def summary_from_dict(body: Mapping[str, object], findings: Mapping[str, Finding]) -> PhaseSummary | None:
    """The stored summary, or None when one of its findings is gone or no longer verified (then it is built anew)."""
    ids = body.get("findings")
    phase, title, left_out = body.get("phase"), body.get("title"), body.get("left_out")
    questions, markdown = body.get("open_questions"), body.get("markdown")
    if not (isinstance(ids, list) and isinstance(phase, int) and isinstance(title, str) and isinstance(left_out, int)):
        return None
    if not (isinstance(questions, list) and isinstance(markdown, str)):
        return None
    if any(not isinstance(i, str) or i not in findings or findings[i].status != "verified" for i in ids):
        return None
    return PhaseSummary(
        phase=phase,
        title=title,
        findings=tuple(findings[i] for i in ids),
        open_questions=tuple(str(q) for q in questions),
        left_out=left_out,
        markdown=markdown,
    )


def _line(finding: Finding) -> str:
    where = ", ".join(c.where for c in finding.citations)
    return f"- {' '.join(finding.claim.split())} [{where}] ({finding.id})"


def _markdown(title: str, kept: Sequence[Finding], questions: Sequence[str], left_out: int) -> str:
    parts = [f"## What phase “{title}” found"]
    if kept:
        parts += ["", "### Key findings", *(_line(f) for f in kept[:5])]
    for kind, header in _HEADERS.items():
        rest = [f for f in kept[5:] if f.kind == kind]
        if rest:
            parts += ["", f"### {header}", *(_line(f) for f in rest)]
    if questions:
        parts += ["", "### Open questions", *(f"- {' '.join(q.split())}" for q in questions)]
    if left_out:
        parts += ["", f"{left_out} further findings did not fit; they stand in the scratchpads."]
    if not kept and not questions:
        parts += ["", "Nothing."]
    return "\n".join(parts)
