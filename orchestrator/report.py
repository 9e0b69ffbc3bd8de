"""The finished answer for people (Markdown) and for programs (one JSON document, docs/schemas/explore.schema.json)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator.coverage import CoverageReport
from orchestrator.output import snapshot_document
from scratch.findings import Finding
from subagents.codebase.types import SnapshotId
from subagents.engine import Answer

_REASONS = {
    "binary": "binary",
    "too_large": "too large",
    "minified": "minified",
    "generated": "generated",
    "vendored": "vendored",
    "lfs_pointer": "LFS pointer without its content",
    "link": "symbolic link",
    "submodule": "submodule",
    "unreadable": "unreadable",
    "changed_while_reading": "changed while it was read",
    "no_grammar": "words only, no grammar",
    "parse_timeout": "parsing took too long",
    "parse_error": "could not be parsed",
    "time_limit": "no time left",
    "out_of_scope": "out of scope",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskLine:
    """One task as reports show it."""

    id: str
    role: str
    phase: int
    status: str
    question: str
    attempts: int
    failure: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All that an exploration reports. `status`: answered, not_found, partial, interrupted, failed."""

    session: str
    status: str
    engine: str
    repository: str
    snapshot: SnapshotId
    question: str
    answer: Answer | None
    findings: tuple[Finding, ...]
    tasks: tuple[TaskLine, ...]
    coverage: CoverageReport
    usage: Mapping[str, float]
    redacted: Mapping[str, int]
    stopped_by: str = ""
    """The limit, or the subagents that did not finish, for which a partial answer is partial."""


def to_document(report: Report) -> dict[str, object]:
    """The contract of `explore --json`; `usage.seconds` is wall time over all runs of the session."""
    answer = report.answer
    return {
        "session": report.session,
        "status": report.status,
        "engine": report.engine,
        "repository": report.repository,
        "snapshot": snapshot_document(report.snapshot),
        "question": report.question,
        "answer": None
        if answer is None
        else {
            "markdown": answer.markdown,
            "found": answer.found,
            "statements": [{"text": s.text, "findings": list(s.findings)} for s in answer.statements],
        },
        "findings": [finding_document(f) for f in report.findings],
        "tasks": [
            {
                "id": t.id,
                "role": t.role,
                "phase": t.phase,
                "status": t.status,
                "question": t.question,
                "attempts": t.attempts,
                "failure": t.failure,
            }
            for t in report.tasks
        ],
        "coverage": {
            "files_total": report.coverage.files_total,
            "files_read": report.coverage.files_read,
            "skipped": [{"path": g.path, "reason": g.reason, "count": g.count} for g in report.coverage.skipped],
            "truncated": list(report.coverage.truncated),
            "timed_out": list(report.coverage.timed_out),
        },
        "usage": dict(report.usage),
        "redacted": dict(report.redacted),
    }


def finding_document(finding: Finding) -> dict[str, object]:
    """One finding as `--json` shows it."""
    return {
        "id": finding.id,
        "claim": finding.claim,
        "kind": finding.kind,
        "status": finding.status,
        "confidence": finding.confidence,
        "relevance": finding.relevance,
        "symbols": list(finding.symbols),
        "citations": [
            {"path": c.path, "start": c.start, "end": c.end, "blob": c.blob, "quote": c.quote}
            for c in finding.citations
        ],
        "task": finding.task,
        "phase": finding.phase,
        "origins": list(finding.origins),
        "evidence": list(finding.evidence),
        "data": dict(finding.data),
    }


def to_markdown(report: Report) -> str:
    """Answer, then coverage, then one line with snapshot, engine, cost and session."""
    parts = []
    if report.status == "partial":
        parts.append(f"> **Partial answer.** {_why_partial(report)} {_goes_on(report)}\n")
    if report.answer is not None:
        parts.append(report.answer.markdown.strip())
        parts.append(_coverage_paragraph(report))
    else:
        ended = sum(task.status not in ("pending", "running") for task in report.tasks)
        parts.append(
            f"**No answer yet.** {ended} of {len(report.tasks)} subagents ended; {len(report.findings)} findings."
        )
    parts.append(_footer(report))
    return "\n\n".join(parts) + "\n"


_OPTIONS = {
    "the limit on subagents ": "--max-agents",
    "the time limit ": "--max-minutes",
    "the limit on cost ": "--max-cost",
    "the limit on tokens ": "--max-tokens",
}
"""Which limit is meant, by how a reason of ours begins; what an endpoint said may stand further on in any."""


def _goes_on(report: Report) -> str:
    told = [report.stopped_by, *(task.failure for task in report.tasks if task.status != "finished")]
    option = next((option for text in told for said, option in _OPTIONS.items() if text.startswith(said)), "")
    resume = f"leadline resume {report.session}"
    return f"`{resume} {option} N` with a higher limit goes on." if option else f"`{resume}` goes on."


def _why_partial(report: Report) -> str:
    unfinished = [t for t in report.tasks if t.status != "finished"]
    if not unfinished:
        return "A limit was reached before the last phase."
    reasons = dict.fromkeys(t.failure for t in unfinished if t.failure)
    limit = f"{report.stopped_by[:1].upper()}{report.stopped_by[1:]}: " if report.stopped_by.startswith("the ") else ""
    rest = f"{len(unfinished)} of {len(report.tasks)} subagents did not finish ({'; '.join(reasons) or 'not started'})."
    return limit + rest


def _coverage_paragraph(report: Report) -> str:
    coverage = report.coverage
    text = [f"**Coverage.** {coverage.files_read:,} of {coverage.files_total:,} files read."]
    skipped = [
        f"{_name(g.path)} ({_REASONS.get(g.reason, g.reason)}{f', {g.count:,} files' if g.count > 1 else ''})"
        for g in sorted(coverage.skipped, key=lambda g: -g.count)[:12]
    ]
    if skipped:
        more = len(coverage.skipped) - len(skipped)
        text.append(
            "Not read, or not in full: " + ", ".join(skipped) + (f", and {more} more" if more > 0 else "") + "."
        )
    if coverage.truncated:
        text.append("Cut short: " + "; ".join(coverage.truncated[:6]) + ".")
    if coverage.timed_out:
        text.append("Timed out: " + "; ".join(coverage.timed_out[:6]) + ".")
    text.append(_task_counts(report.tasks))
    checked = sum(len(f.citations) for f in report.findings)
    good = sum(len(f.citations) for f in report.findings if f.status == "verified")
    text.append(
        f"{good} of {checked} citations checked against the snapshot and found right."
        if checked
        else "No citation was checked: nothing was recorded that cites code."
    )
    if report.redacted:
        kinds = ", ".join(f"{n} {kind}" for kind, n in sorted(report.redacted.items()))
        text.append(f"Redacted where written: {kinds}.")
    return " ".join(text)


def _task_counts(tasks: Sequence[TaskLine]) -> str:
    counts: dict[str, int] = {}
    for task in tasks:
        counts[task.status] = counts.get(task.status, 0) + 1
    detail = ", ".join(f"{n} {status}" for status, n in sorted(counts.items(), key=lambda x: (-x[1], x[0])))
    return f"{len(tasks)} subagent{'s' if len(tasks) != 1 else ''}: {detail}." if tasks else "No subagent ran."


def _footer(report: Report) -> str:
    snapshot = report.snapshot
    if snapshot.commit is None:
        what = f"tree {snapshot.tree[:12]} ({'folder' if snapshot.kind == 'folder' else 'no commit yet'})"
    else:
        what = f"commit {snapshot.commit[:12]}" + (" with uncommitted changes" if snapshot.dirty else "")
    model = "no model took part" if report.engine == "static" else f"engine {report.engine}"
    cost = report.usage.get("cost_usd")
    money = "" if cost is None else f", ${cost:,.2f}"
    seconds = report.usage.get("seconds", 0.0)
    return f"*{what}; {model}; {seconds:.1f} s{money}; session `{report.session}`*"


def _name(path: str) -> str:
    return "`" + path.replace("`", "'") + "`"
