"""Answers from findings alone: a model writes statements, code binds each to findings and renders the citations.

The model sees claims and where they stand, no code. A statement that names no known finding is returned once with the
others that do not hold, then dropped and counted. When no model can be asked any more, code lists what was found.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scratch.findings import Citation, Finding
from subagents.claude.contradictions import contradictions, not_side_by_side
from subagents.claude.state_block import key_first
from subagents.claude.structured import Reading
from subagents.claude.tokens import text_tokens
from subagents.engine import Answer, Coverage, Statement, Workspace
from subagents.prompts import as_data, render

MOST_STATEMENTS = 60
ANSWER_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "found": {"type": "boolean", "description": "Whether the findings answer the question."},
        "statements": {
            "type": "array",
            "description": f"At most {MOST_STATEMENTS}, fewer if that says it.",
            "items": {
                "type": "object",
                "properties": {
                    "text": {"type": "string", "description": "One to three sentences."},
                    "findings": {"type": "array", "items": {"type": "string"}, "description": "Ids it rests on."},
                },
                "required": ["text", "findings"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["found", "statements"],
    "additionalProperties": False,
}
SHORTEST_ID = 9
"""Characters of an id that are enough when they name one finding."""
_TEXT_LIMIT = 4_000
_CITED = 4
"""Citations shown behind one statement."""
_VERDICT = re.compile(r"\s*(UPHELD|REFUTED)\s+(f[0-9a-f]{8,16})\b[:,.]?\s*", re.IGNORECASE)


# --- verdicts of refuting subagents ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a subagent that tried to refute a claim came to; it is itself a finding, with citations of its own."""

    finding: str
    upheld: bool
    reason: str


def verdict_of(finding: Finding) -> Verdict | None:
    """The verdict that a finding holds, or None for one that is no verdict."""
    match = _VERDICT.match(finding.claim)
    if match is None:
        return None
    return Verdict(finding=match[2], upheld=match[1].upper() == "UPHELD", reason=finding.claim[match.end() :])


def usable(findings: Sequence[Finding]) -> list[Finding]:
    """What may be stated as fact, most important first: checked, not refuted, no question and no verdict."""
    return key_first(
        [f for f in findings if f.status == "verified" and f.kind != "open_question" and verdict_of(f) is None]
    )


# --- the request ---


def answer_opening(
    workspace: Workspace, findings: Sequence[Finding], coverage: Coverage, *, earlier: str, most_tokens: int
) -> str:
    """Question, claims with their ids, open questions, what was covered; bounded, the most important first."""
    lines: list[str] = []
    room = most_tokens
    facts = usable(findings)
    for finding in facts:
        line = f"[{finding.id}] {' '.join(finding.claim.split())} ({', '.join(c.where for c in finding.citations)})"
        room -= text_tokens(line) + 1
        if room < 0:
            break
        lines.append(line)
    left_out = len(facts) - len(lines)
    shown = {finding.id for finding in facts[: len(lines)]}
    lines += [f"Contradiction: [{p.earlier.id}] and [{p.later.id}]" for p in contradictions(facts) if p.ids <= shown]
    if left_out:
        lines.append(f"({left_out} less important findings are left out)")
    questions = [f"Open: {' '.join(f.claim.split())}" for f in findings if f.kind == "open_question"][:20]
    return render(
        "answer_request",
        question=workspace.question,
        earlier=as_data("earlier_questions", earlier),
        findings=as_data("findings", "\n".join([*lines, *questions]) or "none"),
        coverage=as_data("coverage", coverage_line(coverage)),
    )


def coverage_line(coverage: Coverage) -> str:
    """What was looked at, in one line."""
    cut = [*coverage.truncated[:5], *(f"timed out: {what}" for what in coverage.timed_out[:5])]
    return (
        f"{len(coverage.files_read):,} files were read or searched, {len(coverage.skipped):,} were not, or not in full."
        + (f" Cut short: {'; '.join(cut)}." if cut else "")
    )


# --- reading the reply ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """Statements that hold, and how many were dropped."""

    found: bool
    statements: tuple[Statement, ...]
    dropped: int


def read_answer(body: Mapping[str, Any], findings: Sequence[Finding]) -> Reading[Draft]:
    """Statements out of untrusted JSON; each keeps only the findings that exist and may be used."""
    items = body.get("statements")
    if not isinstance(items, list):
        return Reading(None, ("`statements` is not a list",))
    known = [f.id for f in usable(findings)]
    reasons: list[str] = []
    kept: list[Statement] = []
    for n, item in enumerate(items[:MOST_STATEMENTS], 1):
        text = item.get("text") if isinstance(item, Mapping) else None
        given = item.get("findings") if isinstance(item, Mapping) else None
        if not isinstance(text, str) or not text.strip():
            reasons.append(f"statement {n} has no text")
            continue
        named = [i for i in given[:100] if isinstance(i, str)] if isinstance(given, list) else []
        ids = {i: _resolved(i, known) for i in named}
        unknown = [i for i, full in ids.items() if full is None]
        good = tuple(dict.fromkeys(full for full in ids.values() if full is not None))
        if unknown:
            reasons.append(f"statement {n} names findings that are not among those given: {', '.join(unknown[:5])}")
        elif not good:
            reasons.append(f"statement {n} names no finding")
        if good and not unknown:
            kept.append(Statement(text=" ".join(text.split())[:_TEXT_LIMIT], findings=good))
    if len(items) > MOST_STATEMENTS:
        reasons.append(f"{len(items)} statements, at most {MOST_STATEMENTS} are read")
    if not items and known and body.get("found") is True:
        reasons.append("there is no statement although findings are there")
    for pair in not_side_by_side(contradictions(usable(findings)), [s.findings for s in kept]):
        one, other = pair.earlier.id, pair.later.id
        reasons.append(f"findings {one} and {other} contradict each other: one statement has to say both, side by side")
    draft = Draft(found=body.get("found") is True, statements=tuple(kept), dropped=len(items) - len(kept))
    return Reading(draft, tuple(reasons))


def _resolved(given: str, known: Sequence[str]) -> str | None:
    given = given.strip().strip("[]")
    if given in known:
        return given
    matching = [i for i in known if len(given) >= SHORTEST_ID and i.startswith(given)]
    return matching[0] if len(matching) == 1 else None


def draft_by_code(findings: Sequence[Finding]) -> Draft:
    """What was found, as it was recorded: for when no model may or can write it."""
    kept = tuple(Statement(text=f.claim, findings=(f.id,)) for f in usable(findings)[:MOST_STATEMENTS])
    return Draft(found=bool(kept), statements=kept, dropped=0)


# --- rendering ---


Link = Callable[[Citation], str]


def _no_link(_: Citation) -> str:
    return ""


def rendered(
    draft: Draft,
    findings: Sequence[Finding],
    coverage: Coverage,
    *,
    remarks: Sequence[str] = (),
    link: Link = _no_link,
) -> Answer:
    """The answer with its citations as `path:line`, put there by code; linked where there is a page to link to.

    That something is not there is said only together with what was searched.
    """
    by_id = {f.id: f for f in findings}
    found = draft.found and bool(draft.statements)
    statements = (*draft.statements, *_disagreements(draft, findings))
    parts = [f"{s.text} ({_places([by_id[i] for i in s.findings], link)})" for s in statements]
    if not found:
        parts.insert(0, f"The question could not be answered from this snapshot. {coverage_line(coverage)}")
    elif (coverage.truncated or coverage.timed_out) and any(_absence(s.text) for s in draft.statements):
        parts.append(f"What is said to be missing was not found within what was searched. {coverage_line(coverage)}")
    notes = list(remarks)
    if draft.dropped:
        what = "statements of the answer were" if draft.dropped > 1 else "statement of the answer was"
        notes.append(f"{draft.dropped} {what} dropped because no finding proves it.")
    refuted = sum(1 for f in findings if f.status == "refuted")
    stale = sum(1 for f in findings if f.status == "stale")
    if refuted:
        notes.append(f"{refuted} finding{'s' if refuted > 1 else ''} refuted on a second look, and left out.")
    if stale:
        notes.append(f"{stale} finding{'s' if stale > 1 else ''} whose lines changed, left out.")
    parts += [f"*{' '.join(notes)}*"] if notes else []
    return Answer(markdown="\n\n".join(parts), statements=statements, found=found)


def _disagreements(draft: Draft, findings: Sequence[Finding]) -> list[Statement]:
    """What the statements leave one-sided, said by code: both claims as they were recorded."""
    pairs = not_side_by_side(contradictions(usable(findings)), [s.findings for s in draft.statements])
    return [
        Statement(
            text=f"Findings contradict each other: “{p.earlier.claim}” against “{p.later.claim}”.",
            findings=(p.earlier.id, p.later.id),
        )
        for p in pairs
    ]


_ABSENCE = re.compile(r"\b(no|not|none|never|nowhere|without|absent|missing|lacks?)\b", re.IGNORECASE)


def _absence(text: str) -> bool:
    return _ABSENCE.search(text) is not None


def _places(findings: Sequence[Finding], link: Link) -> str:
    cited: dict[str, Citation] = {c.where: c for f in findings for c in f.citations}
    shown = [_place(citation, link(citation)) for citation in list(cited.values())[:_CITED]]
    return ", ".join(shown) + (f" and {len(cited) - _CITED} more" if len(cited) > _CITED else "")


def _place(citation: Citation, url: str) -> str:
    where = f"`{citation.where.replace('`', chr(39))}`"
    return f"[{where}]({url})" if url else where
