"""Reports as they are kept in a session and read back: what `show` prints without touching the repository."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from manifests.envelope import DOCTOR, Schema
from manifests.errors import StateError, UsageError
from manifests.fields import Fields, Malformed
from manifests.manifest import Manifest
from manifests.sessions import TRANSCRIPT_SCHEMA, Session
from orchestrator import coverage as coverages
from orchestrator.coverage import CoverageReport, SkippedGroup
from orchestrator.outcomes import check_scratchpad, outcome_name, read_outcome
from orchestrator.pads import in_order
from orchestrator.report import Report, TaskLine, finding_document
from scratch.evidence import EvidenceStore
from scratch.findings import Finding
from scratch.scratchpad import all_findings
from subagents.codebase.types import SnapshotId
from subagents.engine import Answer, Statement

if TYPE_CHECKING:
    from subagents.claude.report import ContextReport

ANSWER_SCHEMA = Schema(name="leadline/answer", version=1)
COMPACTED_SCHEMA = Schema(name="leadline/compacted", version=1)
ANSWER = "answer.json"
ANSWER_TEXT = "answer.md"

ReportStatus = Literal["answered", "not_found", "partial", "interrupted", "failed"]


def basis_of(findings: tuple[Finding, ...]) -> str:
    """What an answer rests on: a hash over ids and statuses. The same basis needs no second answer."""
    return hashlib.sha256("\n".join(f"{f.id} {f.status}" for f in findings).encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptAnswer:
    """answer.json: the answer, what it rests on, what was covered. `reason` says why it is partial, if it is."""

    answer: Answer
    question: str
    basis: str
    reason: str
    coverage: CoverageReport
    redacted: Mapping[str, int]

    def to_dict(self) -> dict[str, object]:
        return {
            "markdown": self.answer.markdown,
            "found": self.answer.found,
            "statements": [{"text": s.text, "findings": list(s.findings)} for s in self.answer.statements],
            "question": self.question,
            "basis": self.basis,
            "reason": self.reason,
            "coverage": {
                "files_total": self.coverage.files_total,
                "files_read": self.coverage.files_read,
                "skipped": [[g.path, g.reason, g.count] for g in self.coverage.skipped],
                "truncated": list(self.coverage.truncated),
                "timed_out": list(self.coverage.timed_out),
            },
            "redacted": dict(self.redacted),
        }

    @staticmethod
    def from_dict(body: object) -> KeptAnswer:
        """Raises Malformed."""
        fields = Fields(body, ANSWER)
        coverage = Fields(fields.raw("coverage"), "coverage")
        return KeptAnswer(
            answer=Answer(
                markdown=fields.text("markdown", limit=5_000_000),
                found=fields.flag("found"),
                statements=tuple(_statement(one) for one in fields.items("statements", limit=10_000)),
            ),
            question=fields.text("question", limit=100_000, default=""),
            basis=fields.text("basis", limit=64),
            reason=fields.text("reason", limit=100_000),
            coverage=CoverageReport(
                files_total=coverage.integer("files_total", low=0, high=1 << 40),
                files_read=coverage.integer("files_read", low=0, high=1 << 40),
                skipped=tuple(_group(one) for one in coverage.items("skipped", limit=100_000)),
                truncated=coverage.texts("truncated", limit=100_000, each=10_000),
                timed_out=coverage.texts("timed_out", limit=100_000, each=10_000),
            ),
            redacted=fields.counts("redacted", limit=1_000),
        )


def _statement(value: object) -> Statement:
    fields = Fields(value, "statement")
    return Statement(text=fields.text("text", limit=100_000), findings=fields.texts("findings", limit=10_000, each=100))


def _group(value: object) -> SkippedGroup:
    match value:
        case [str(path), str(reason), int(count)]:
            return SkippedGroup(path=path, reason=reason, count=count)
    raise Malformed("skipped holds something else than path, reason and count")


def read_answer(session: Session) -> KeptAnswer | None:
    """The kept answer, or None before there is one. Raises StateError for a damaged one."""
    return read_earlier_answer(session, ANSWER) if session.has(ANSWER) else None


def read_earlier_answer(session: Session, name: str) -> KeptAnswer:
    """The answer of that name. Raises StateError for a missing or damaged one."""
    try:
        return KeptAnswer.from_dict(session.read_document(name, ANSWER_SCHEMA))
    except Malformed as problem:
        raise StateError(f"{str(session.path_of(name))!r} cannot be used: {problem}", hint=DOCTOR) from problem


# --- whether the parts belong together ---


def check_answer(session: Session, manifest: Manifest, findings: tuple[Finding, ...]) -> None:
    """StateError if the answer of a finished session is missing, or rests on other findings than those that are there.

    Each file may be sound in itself: one that is gone, or an older copy of it, shows only here.
    """
    kept = read_answer(session)
    if kept is None:
        if manifest.answer != "none":
            raise StateError(f"{str(session.path_of(ANSWER))!r} is missing", hint=DOCTOR)
        return
    if manifest.status == "finished" and kept.basis != basis_of(findings):
        raise StateError(f"the findings of session {session.id} are not those that its answer was made of", hint=DOCTOR)


def check_tasks(session: Session, manifest: Manifest) -> None:
    """StateError if what a finished task left is missing."""
    for record in manifest.tasks:
        if record.status == "finished":
            if not session.has(outcome_name(record.id)):
                raise StateError(f"{str(session.path_of(outcome_name(record.id)))!r} is missing", hint=DOCTOR)
            check_scratchpad(session, record.id)


# --- answers of earlier rounds ---

_EARLIER_CHARS = 1_200


def set_answer_aside(session: Session, number: int) -> None:
    """Keep the answer of round `number` (from 0) under its own name, before another question takes its place."""
    if session.has(ANSWER):
        session.write_document(f"answers/{number}.json", ANSWER_SCHEMA, session.read_document(ANSWER, ANSWER_SCHEMA))


def forget_earlier(session: Session) -> int:
    """No longer send earlier answers along with further questions; returns how many. They stay on disk."""
    answers = len(session.read_manifest().rounds) + session.has(ANSWER)
    forgotten = answers - _first_sent(session)
    session.write_document("compacted.json", COMPACTED_SCHEMA, {"answers": answers})
    return forgotten


def _first_sent(session: Session) -> int:
    """Number of the first round whose answer is still sent along."""
    if not session.has("compacted.json"):
        return 0
    fields = Fields(session.read_document("compacted.json", COMPACTED_SCHEMA), "compacted.json")
    try:
        return fields.integer("answers", low=0, high=1 << 30)
    except Malformed as problem:
        raise StateError(
            f"{str(session.path_of('compacted.json'))!r} cannot be used: {problem}", hint=DOCTOR
        ) from problem


def earlier_answers(session: Session, manifest: Manifest) -> str:
    """Questions asked before in this session and how they were answered, each cut short; for a further question."""
    parts = []
    for number in range(_first_sent(session), len(manifest.rounds)):
        name = f"answers/{number}.json"
        if session.has(name):
            kept = read_earlier_answer(session, name)
            said = " ".join(statement.text for statement in kept.answer.statements)[:_EARLIER_CHARS]
            parts.append(f"Asked: {kept.question}\nAnswered: {said or 'not answered'}")
    return "\n\n".join(parts)


def load_report(session: Session) -> Report:
    """What is known of a session, finished or not, from its folder alone."""
    manifest = session.read_manifest()
    check_tasks(session, manifest)
    findings = in_order(list(all_findings(session).values()))
    check_answer(session, manifest, findings)
    kept = read_answer(session)
    outcomes = (read_outcome(session, record.id) for record in manifest.tasks)
    seen = coverages.merge(found[1].coverage for found in outcomes if found is not None)
    return make_report(
        manifest,
        findings,
        answer=kept.answer if kept else None,
        coverage=kept.coverage if kept else coverages.report(0, seen),
        redacted=kept.redacted if kept else {},
    )


def make_report(
    manifest: Manifest,
    findings: tuple[Finding, ...],
    *,
    answer: Answer | None,
    coverage: CoverageReport,
    redacted: Mapping[str, int],
) -> Report:
    """The report that a manifest and its findings add up to."""
    snapshot = manifest.snapshot
    return Report(
        session=manifest.session,
        status=_status(manifest, answer),
        engine=manifest.engine,
        repository=manifest.root,
        snapshot=SnapshotId(kind=snapshot.kind, commit=snapshot.commit, tree=snapshot.tree, dirty=snapshot.dirty),
        question=manifest.asked,
        answer=answer,
        findings=findings,
        tasks=tuple(
            TaskLine(
                id=record.id,
                role=record.task.role,
                phase=record.phase,
                status=record.status,
                question=record.task.question,
                attempts=record.attempts,
                failure=record.failure,
            )
            for record in manifest.tasks
        ),
        coverage=coverage,
        usage=manifest.usage,
        redacted=redacted,
        stopped_by=manifest.failure if manifest.status == "stopped" else "",
    )


def _status(manifest: Manifest, answer: Answer | None) -> ReportStatus:
    match manifest.status:
        case "finished":
            return "answered" if answer is not None and answer.found else "not_found"
        case "stopped":
            return "partial"
        case "failed":
            return "failed"
        case _:
            return "interrupted"


# --- parts of a report, for `show` ---


def findings_document(report: Report) -> dict[str, object]:
    return {"session": report.session, "findings": [finding_document(f) for f in report.findings]}


def findings_text(report: Report) -> str:
    """A finding a paragraph: claim, status, where."""
    parts = []
    for f in report.findings:
        where = "\n".join(f"    {c.where}" for c in f.citations)
        parts.append(f"{f.id}  {f.status}  {f.kind}  {f.relevance:.2f}\n  {f.claim}" + (f"\n{where}" if where else ""))
    return "\n".join(parts) or "no findings"


def tasks_document(report: Report) -> dict[str, object]:
    rows = [
        {"id": t.id, "role": t.role, "phase": t.phase, "status": t.status, "attempts": t.attempts, "failure": t.failure}
        for t in report.tasks
    ]
    return {"session": report.session, "tasks": rows}


def tasks_text(report: Report) -> str:
    """One line a task."""
    lines = [
        f"{t.id}  phase {t.phase}  {t.role:<16} {t.status:<10} {t.attempts} attempt{'s' if t.attempts != 1 else ' '}"
        f"  {t.failure or t.question[:60]}"
        for t in report.tasks
    ]
    return "\n".join(lines) or "no tasks"


# --- cost ---


def cost_document(session: Session) -> dict[str, object]:
    """What each task, plan and answer took, read off the manifest; `lines` adds up to `total`."""
    manifest = session.read_manifest()
    lines: list[dict[str, object]] = [
        {"name": r.id, "role": r.task.role, "phase": r.phase, "attempts": r.attempts, "usage": dict(r.usage)}
        for r in manifest.tasks
    ]
    lines.append({"name": "coordinator", "role": "", "phase": 0, "attempts": 1, "usage": dict(manifest.overhead)})
    return {"session": manifest.session, "lines": lines, "total": manifest.usage}


_COLUMNS = ("requests", "input_tokens", "cache_write_tokens", "cache_read_tokens", "output_tokens")


def cost_text(session: Session) -> str:
    """A table: requests, input by how it was billed, output, and money where a price is configured."""
    manifest = session.read_manifest()
    rows = [(r.id, r.usage) for r in manifest.tasks]
    rows += [("coordinator", manifest.overhead), ("total", manifest.usage)]
    head = f"{'':18} {'requests':>9} {'uncached':>10} {'written':>10} {'read':>10} {'output':>10}  money"
    return "\n".join([head, *(_cost_line(name, usage) for name, usage in rows), *_unknown(manifest.usage)])


def _cost_line(name: str, usage: Mapping[str, float]) -> str:
    numbers = [f"{usage.get(column, 0):{9 if column == 'requests' else 10},.0f}" for column in _COLUMNS]
    money = [f"{amount:,.4f} {key[5:].upper()}" for key, amount in usage.items() if key.startswith("cost_")]
    none = "no price" if usage.get("requests") else "-"
    return f"{name:18} {' '.join(numbers)}  {''.join(money) or none}"


def _unknown(usage: Mapping[str, float]) -> list[str]:
    count = usage.get("unknown_requests", 0)
    if not count:
        return []
    most = f"{usage['unknown_input_bound']:,.0f} tokens in and {usage['unknown_output_bound']:,.0f} out"
    return [f"{count:,.0f} requests whose usage was not reported or was lost: at most {most} on top"]


# --- context ---


def context_of(session: Session, task: str, turn: int | None) -> ContextReport:
    """The request of one turn of a task, or the one that would come next.

    `task`: its id or the beginning of it; plans and answers have names too. Raises UsageError for none or several.
    """
    from subagents.claude.report import context_report

    names = [name for name in session.names_of("transcripts", ".jsonl") if name.startswith(task)]
    if len(names) != 1:
        raise UsageError(
            f"{len(names)} conversations begin with {task!r}",
            hint=f"there are {', '.join(session.names_of('transcripts', '.jsonl')[:12]) or 'none'}",
        )
    records = (record.body for record in session.read_log(f"transcripts/{names[0]}.jsonl", TRANSCRIPT_SCHEMA))
    return context_report(names[0], records, turn=turn, evidence=EvidenceStore(session, redact=lambda data: data).get)


def context_document(context: ContextReport) -> dict[str, object]:
    return {
        "task": context.task,
        "turn": context.turn,
        "sent": context.sent,
        "model": context.model,
        "window_tokens": context.window_tokens,
        "budget_tokens": context.budget_tokens,
        "total_tokens": context.total_tokens,
        "calibrated": context.calibrated,
        "clearing": context.clearing,
        "parts": [{"name": p.name, "tokens": p.tokens, "share": round(p.share, 6)} for p in context.parts],
        "request": dict(context.request.body),
    }


def context_text(context: ContextReport) -> str:
    """What the request is made of, a line a part."""
    how = "as the endpoint counted" if context.calibrated else "estimated"
    head = (
        f"{context.task}, turn {context.turn} ({'sent' if context.sent else 'next'}), {context.model}: "
        f"{context.total_tokens:,} of {context.window_tokens:,} tokens, {how}; clearing {context.clearing}"
    )
    return "\n".join([head, *(f"{p.name:24} {p.tokens:>9,}  {p.share:6.2%}" for p in context.parts)])


# --- evidence ---


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundEvidence:
    """Raw bytes and where they came from."""

    reference: str
    data: bytes
    origins: tuple[Mapping[str, object], ...]

    def document(self) -> dict[str, object]:
        return {
            "ref": self.reference,
            "origins": list(self.origins),
            "text": self.data.decode("utf-8", "backslashreplace"),
        }


def open_evidence(session: Session, reference: str) -> FoundEvidence | None:
    """The evidence, or None when this session has none by that reference. Ambiguity and damage are raised."""
    store = EvidenceStore(session, redact=lambda data: data)
    try:
        full = store.resolve(reference)
        data = store.get(full)
    except UsageError as error:
        if "there is no evidence" in str(error):
            return None
        raise
    return FoundEvidence(reference=full, data=data, origins=tuple(r.to_dict() for r in store.described(full)))
