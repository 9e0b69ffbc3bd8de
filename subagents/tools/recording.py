"""Writing down: findings through the checked door, notes, open questions; and reading evidence again."""

from __future__ import annotations

import re
from typing import Literal

from scratch.findings import Finding
from scratch.recorder import CitationRejected
from subagents.tools.desk import Desk
from subagents.tools.output import ErrorCode, ToolError, ToolOutput, cut_line
from subagents.tools.schema import tool

_CITATION = re.compile(r"`?(?P<path>[^`]+?):L?(?P<first>\d+)(?:\s*-\s*L?(?P<last>\d+))?`?\Z")
NOTE_CHARS = 1_000
EVIDENCE_LINES = 120
SHORTEST_ID = 9
"""Characters of a finding's id that are enough."""

_CODES: dict[str, ErrorCode] = {
    "path_not_in_snapshot": "no_such_path",
    "range_outside_file": "range_outside_file",
    "range_too_large": "range_too_large",
    "quote_not_found": "quote_not_found",
    "not_shown": "not_shown",
    "empty_claim": "bad_claim",
    "claim_too_long": "bad_claim",
    "no_citation": "bad_citation",
    "bad_citation": "bad_citation",
    "unreadable": "not_readable",
}
"""What the recorder refuses, in the tools' own closed list; anything else is `rejected`."""


@tool(inline=True, remember=False)
def record_finding(
    desk: Desk,
    claim: str,
    citations: list[str],
    kind: Literal["structure", "flow", "behaviour", "decision", "risk"] = "behaviour",
    symbols: list[str] | None = None,
    confidence: Literal["low", "medium", "high"] = "high",
    relevance: Literal["low", "medium", "high"] = "medium",
    contradicts: list[str] | None = None,
) -> ToolOutput:
    """Record one confirmed finding. Only what is recorded reaches the answer. The citations are checked at once
    against the code; cite only lines you were shown, as tightly as possible.

    Args:
        claim: One sentence that stands alone, with the names and numbers that matter.
        citations: The lines it rests on, each as `path:line` or `path:first-last`.
        kind: What the claim is about.
        symbols: Names of the definitions concerned.
        confidence: How sure the cited lines make it.
        relevance: How much it matters to the task.
        contradicts: Ids of recorded findings that cannot be true if this one is.
    """
    if not citations:
        raise ToolError("bad_citation", "a finding needs a citation", "Cite the lines as path:first-last.")
    places = [_citation(desk, text) for text in citations]
    against = [_known_finding(desk, given) for given in contradicts or ()]
    before = len(desk.recorder.findings())
    try:
        finding = desk.recorder.record(
            claim,
            kind=kind,
            citations=places,
            symbols=symbols or (),
            confidence={"low": 0.4, "medium": 0.7, "high": 0.95}[confidence],
            relevance={"low": 0.3, "medium": 0.6, "high": 0.9}[relevance],
            evidence=_evidence_of(desk, places),
            data={"contradicts": sorted(set(against))} if against else None,
        )
    except CitationRejected as error:
        raise rejected(error) from error
    new = len(desk.recorder.findings()) > before
    said = f"{'' if new else 'already '}recorded as {finding.id[:9]}{_moved(finding, places)}"
    return ToolOutput(
        text=said, digest=said, log=f"record_finding {finding.id[:9]}: {cut_line(claim, 80)}", keep=True, news=int(new)
    )


def _moved(finding: Finding, places: list[tuple[str, int, int]]) -> str:
    """Where the quoted lines really stand, if that is not where the call says: it is read again at every step."""
    stands = [(citation.path, citation.start, citation.end) for citation in finding.citations]
    if stands == list(dict.fromkeys(places)):
        return ""
    return f" ({', '.join(citation.where for citation in finding.citations)})"


def _known_finding(desk: Desk, given: str) -> str:
    """The id of a finding that this subagent recorded or was told of; it may be cut, as in the state block."""
    name = given.strip().strip("[]")
    known = dict.fromkeys([*desk.told, *(finding.id for finding in desk.recorder.findings())])
    meant = [one for one in known if len(name) >= SHORTEST_ID and one.startswith(name)]
    if len(meant) != 1:
        raise ToolError(
            "invalid_argument",
            f"{given[:80]!r} names no recorded finding that you know",
            "Give an id from the state block or the phase summary, or leave `contradicts` out.",
        )
    return meant[0]


def _citation(desk: Desk, text: str) -> tuple[str, int, int]:
    match = _CITATION.match(text.strip())
    if match is None:
        raise ToolError("bad_citation", f"{text[:120]!r} is no citation", "Write path:line or path:first-last.")
    first = int(match["first"])
    last = int(match["last"] or first)
    if first < 1 or last < first:
        raise ToolError("bad_citation", f"{text[:120]!r} is no range of lines", "Lines count from 1; give first-last.")
    return desk.path(match["path"]), first, last


def _evidence_of(desk: Desk, places: list[tuple[str, int, int]]) -> list[str]:
    """The newest evidence: what the subagent was just looking at. Bounded; the citation is what is checked."""
    return list(dict.fromkeys(desk.evidence_refs[-2:]))


def rejected(error: CitationRejected) -> ToolError:
    """What the recorder refused, with its code and the nearest match."""
    way_out = "Correct the citation, or read the lines and cite what you were shown."
    if error.nearest:
        way_out = "Nearest:\n" + "\n".join(error.nearest)
    return ToolError(_CODES.get(error.code, "rejected"), error.message, way_out)


@tool(inline=True, remember=False)
def note(desk: Desk, text: str) -> ToolOutput:
    """Keep a thought for yourself: a plan, a dead end, something to look at later. Notes survive when older parts of
    the conversation are removed. Not for findings.

    Args:
        text: The note, a few sentences at most.
    """
    kept = text.strip()[:NOTE_CHARS]
    if not kept:
        raise ToolError("invalid_argument", "an empty note", "Give a text.")
    new = kept not in desk.notes
    if new:
        desk.recorder.note(kept)
        desk.notes.append(kept)
    return ToolOutput(text="noted", digest="noted", log="note", keep=True, news=int(new))


@tool(inline=True, remember=False)
def update_open_questions(desk: Desk, add: list[str] | None = None, settle: list[str] | None = None) -> ToolOutput:
    """Say what stays open, for yourself and for whoever goes on. Settle a question once a finding answers it.

    Args:
        add: New open questions, one sentence each.
        settle: Questions that are answered, by their text.
    """
    before = set(desk.open_questions())
    for text in add or ():
        if text.strip():
            try:
                desk.recorder.question(" ".join(text.split()))
            except CitationRejected as error:
                raise rejected(error) from error
    unknown = []
    for text in settle or ():
        match = _question_like(desk, text)
        if match is None:
            unknown.append(text)
        else:
            desk.settled.add(match.claim)
            desk.recorder.note(f"settled: {match.claim}")
    now = desk.open_questions()
    lines = [f"open questions: {len(now)}", *(f"- {q}" for q in now)]
    lines += [f"[no such question: {text[:100]!r}]" for text in unknown]
    return ToolOutput(
        text="\n".join(lines),
        digest=f"{len(now)} open questions",
        log=f"update_open_questions: {len(now)} open",
        keep=True,
        news=len(set(now) - before),
    )


def _question_like(desk: Desk, text: str) -> Finding | None:
    wanted = " ".join(text.split()).rstrip("?.").lower()
    for finding in desk.recorder.findings():
        if finding.kind == "open_question" and (
            finding.claim.rstrip("?.").lower() == wanted or (len(wanted) > 5 and finding.id.startswith(wanted))
        ):
            return finding
    return None


@tool
def read_evidence(desk: Desk, ref: str, start: int = 1) -> ToolOutput:
    """Read the full output of an earlier call again, by the evidence reference in its result or digest.

    Args:
        ref: The reference, `sha256:` and at least 8 hex digits.
        start: First line of the output to show.
    """
    full = _full_ref(desk, ref)
    if desk.fetch_evidence is None:
        raise ToolError("unavailable", "evidence cannot be read here", "Repeat the call it came from.")
    text = desk.fetch_evidence(full).decode("utf-8", "replace")
    lines = text.split("\n")
    if not 1 <= start <= len(lines):
        raise ToolError("range_outside_file", f"line {start} of {len(lines)}", f"Give 1 <= start <= {len(lines)}.")
    part = [cut_line(line) for line in lines[start - 1 : start - 1 + EVIDENCE_LINES]]
    last = start - 1 + len(part)
    rest = f"\n[{len(lines) - last} more lines: start {last + 1}]" if last < len(lines) else ""
    return ToolOutput(
        text="\n".join([f"evidence {full[:19]} lines {start}-{last} of {len(lines)}", *part]) + rest,
        digest=f"read_evidence {full[:19]} lines {start}-{last}",
        log=f"read_evidence {full[:19]}",
        raw=text,
    )


def _full_ref(desk: Desk, ref: str) -> str:
    wanted = ref.strip().strip("[]").removeprefix("evidence ")
    if not wanted.startswith("sha256:"):
        wanted = f"sha256:{wanted}"
    known = [known for known in dict.fromkeys(desk.evidence_refs) if known.startswith(wanted)]
    if len(known) != 1 or len(wanted) < len("sha256:") + 8:
        raise ToolError(
            "no_such_evidence", f"{ref[:90]!r} names no evidence of this task", "Give the reference as it stands there."
        )
    return known[0]
