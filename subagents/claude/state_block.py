"""The state block: the authoritative state of a run, rendered by code and sent at the end of the newest user turn.

It stands outside the history, so no clearing and no compaction can touch it. It is sent whole when the context was
rebuilt or enough has changed, and as a short delta otherwise; what was sent stays where it was sent, because a
conversation with signed thinking in it must not change, and because standing text is read from the cache.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from scratch.findings import Finding
from subagents.claude.tokens import text_tokens
from subagents.prompts import defused

OPEN, CLOSE = "<state>", "</state>"
WHOLE_SHARE = 0.7
"""Of the room for findings, where not all fit: for those that matter most, word for word."""
SHORT_WORDS = 9
"""Id and first words of the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateBlock:
    """Lines are rendered verbatim and in this order; `findings` come key ones first."""

    goal: str
    constraints: tuple[str, ...] = ()
    deliverable: str = ""
    findings: tuple[str, ...] = ()
    open_questions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    searched: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    budget: str = ""
    step: int = 0

    def render(self, *, max_tokens: int = 4_000) -> str:
        """The whole block. Goal, constraints and deliverable always; then findings and questions, up to the bound."""
        head = [f"{OPEN} (after step {self.step}; this overrides anything older)", f"Goal: {self.goal}"]
        head += [f"Constraint: {line}" for line in self.constraints]
        if self.deliverable:
            head.append(f"Deliverable: {self.deliverable}")
        room = max_tokens - sum(text_tokens(line) for line in head)
        body: list[str] = []
        for title, lines, share in (
            ("Findings recorded so far:", self.findings, 0.7),
            ("Open questions:", self.open_questions, 0.5),
            ("Notes:", self.notes, 0.5),
            ("Files read:", self.read, 0.5),
            ("Searches made:", self.searched, 1.0),
        ):
            part, used = _bounded(title, lines, int(room * share), shorten=lines is self.findings)
            room -= used
            body += part
        if not self.findings:
            body.insert(0, "Findings recorded so far: none")
        tail = [f"Budget: {self.budget}"] if self.budget else []
        return "\n".join([*head, *body, *tail, CLOSE])

    def delta_from(self, sent: StateBlock, *, said: Collection[str] = ()) -> str:
        """What changed since `sent`, or empty. Never what was read and searched: the calls themselves say that.

        `said` holds short ids of findings whose call and answer stand in this very step, claim and all.
        """
        new = [line for line in _added(sent.findings, self.findings) if line[1:10] not in said]
        lines = [f"New finding: {line}" for line in new]
        lines += [f"Withdrawn finding: {line}" for line in _added(self.findings, sent.findings)]
        lines += [f"New question: {line}" for line in _added(sent.open_questions, self.open_questions)]
        lines += [f"Settled question: {line}" for line in _added(self.open_questions, sent.open_questions)]
        if self.budget and self.budget != sent.budget and (lines or self.step - sent.step >= 5):
            lines.append(f"Budget: {self.budget}")
        return "\n".join([f"{OPEN} (changes, after step {self.step})", *lines, CLOSE]) if lines else ""


def _added(before: Sequence[str], after: Sequence[str]) -> list[str]:
    known = set(before)
    return [line for line in after if line not in known]


def _bounded(title: str, lines: Sequence[str], room: int, *, shorten: bool = False) -> tuple[list[str], int]:
    """As many lines as there is room for. `shorten`: where not all fit, the later ones by their first words."""
    if not lines:
        return [], 0
    used = text_tokens(title)
    kept = [f"- {line}" for line in _fitting(lines, room - used)]
    if shorten and len(kept) < len(lines):
        kept = [f"- {line}" for line in _fitting(lines, int((room - used) * WHOLE_SHARE))]
        rest = room - used - sum(text_tokens(line) + 2 for line in kept)
        kept += [f"- {line}" for line in _fitting([_short(line) for line in lines[len(kept) :]], rest)]
    used += sum(text_tokens(line) + 2 for line in kept)
    if len(kept) < len(lines):
        kept.append(f"- ({len(lines) - len(kept)} more, all on record)")
    return [title, *kept], used


def _fitting(lines: Sequence[str], room: int) -> list[str]:
    kept: list[str] = []
    for line in lines:
        room -= text_tokens(line) + 2
        if room < 0:
            break
        kept.append(line)
    return kept


def _short(line: str) -> str:
    words = line.split(" ")
    return line if len(words) <= SHORT_WORDS else f"{' '.join(words[:SHORT_WORDS])} ..."


def finding_line(finding: Finding) -> str:
    """One line: id, claim verbatim, citations."""
    where = ", ".join(citation.where for citation in finding.citations)
    mark = "" if finding.status == "verified" else f" ({finding.status})"
    return defused(f"[{finding.id[:9]}]{mark} {' '.join(finding.claim.split())}" + (f" ({where})" if where else ""))


def key_first(findings: Sequence[Finding]) -> list[Finding]:
    """Order of importance: relevance, then confidence; recording order breaks ties."""
    return sorted(findings, key=lambda f: (-f.relevance, -f.confidence))
