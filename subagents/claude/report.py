"""What a subagent's context is made of, and what it has cost: read from its transcript alone, with no endpoint.

`leadline show SESSION --context TASK [--turn N]` and `--cost` print these values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from manifests.errors import UsageError
from subagents.claude.assemble import FixedPart, assemble
from subagents.claude.ledger import Entry, Totals, never_reads, totals
from subagents.claude.messages import Request
from subagents.claude.prices import Prices
from subagents.claude.tokens import raw_tokens, text_tokens
from subagents.claude.transcript import FetchEvidence, Transcript, no_evidence

_TAGGED = re.compile(r"<(ranked_hits|phase_summary|recovered_findings|state|earlier_steps)\b.*?</\1>", re.DOTALL)
_NAMES = {
    "ranked_hits": "hints",
    "phase_summary": "phase summary",
    "recovered_findings": "recovered findings",
    "state": "state block",
    "earlier_steps": "summary of earlier steps",
}


def setting_of(fixed: FixedPart, *, window_tokens: int, budget_tokens: int) -> dict[str, object]:
    """What the transcript keeps of the fixed part, so that a request can be shown as it was sent."""
    return {
        "tools": list(fixed.tools),
        "role": fixed.role_prompt,
        "brief": fixed.brief,
        "max_tokens": fixed.max_tokens,
        "extra": dict(fixed.extra),
        "cache": fixed.cache,
        "ttl": fixed.ttl,
        "window": window_tokens,
        "budget": budget_tokens,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextPart:
    """Tokens of one kind of content. `share` is that of the window."""

    name: str
    tokens: int
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextReport:
    """The request of one turn: what was sent, or what would be sent next."""

    task: str
    turn: int
    sent: bool
    model: str
    window_tokens: int
    budget_tokens: int
    total_tokens: int
    calibrated: bool
    """Whether the figures follow what the endpoint reported, rather than a local estimate."""
    parts: tuple[ContextPart, ...]
    clearing: str
    request: Request


def context_report(
    task: str, records: Iterable[Mapping[str, Any]], *, turn: int | None = None, evidence: FetchEvidence = no_evidence
) -> ContextReport:
    """The request of turn `turn` (from 1), or the one that would come next.

    Raises UsageError for a task without a transcript and for a turn that there was not.
    """
    bodies = list(records)
    setting = next((b.get("setting") for b in reversed(bodies) if b.get("k") == "open"), None)
    if not setting:
        raise UsageError(f"task {task} has no conversation to show", hint="see `leadline show SESSION` for its tasks")
    transcript = Transcript(log=_Nowhere(), evidence=evidence)
    entry: Entry | None = None
    for body in bodies:
        if turn is not None and body.get("k") == "reply" and int(body["n"]) == turn - 1:
            entry = Transcript.entry_of(body)
            break
        transcript.load([body])
    history = transcript.history
    if turn is not None and entry is None and turn != history.next_number + 1:
        raise UsageError(
            f"task {task} has no turn {turn}", hint=f"it has {len(history.pairs)}; give 1 to that, or none"
        )
    fixed = FixedPart(
        model=transcript.model,
        max_tokens=int(setting["max_tokens"]),
        tools=setting["tools"],
        role_prompt=str(setting["role"]),
        brief=str(setting["brief"]),
        extra=setting["extra"],
        cache=bool(setting["cache"]),
        ttl=str(setting["ttl"]),
    )
    request = assemble(fixed, history)
    sizes: dict[str, int] = {}
    for name, size in _sizes(request, fixed):
        sizes[name] = sizes.get(name, 0) + size
    raw = sum(sizes.values())
    reported = entry.usage.input_total if entry else None
    factor = reported / raw if reported and raw else 1.0
    window = int(setting["window"])
    parts = tuple(
        ContextPart(name=name, tokens=round(size * factor), share=size * factor / window)
        for name, size in sizes.items()
        if size
    )
    return ContextReport(
        task=task,
        turn=turn or history.next_number + 1,
        sent=entry is not None,
        model=transcript.model,
        window_tokens=window,
        budget_tokens=int(setting["budget"]),
        total_tokens=sum(part.tokens for part in parts),
        calibrated=reported is not None,
        parts=parts,
        clearing=history.edits.mode,
        request=request,
    )


class _Nowhere:
    """A log that reports write to by no chance."""

    def append(self, body: Mapping[str, object], *, sync: bool = True) -> int:
        raise AssertionError("a report does not write")


def _sizes(request: Request, fixed: FixedPart) -> Iterator[tuple[str, int]]:
    yield "tools", raw_tokens(request.body.get("tools", []))
    yield "system", text_tokens(fixed.role_prompt)
    yield "brief", text_tokens(fixed.brief)
    for number, message in enumerate(request.messages):
        for block in message["content"]:
            yield from _block_sizes(block, first=number == 0, role=message["role"])


def _block_sizes(block: Mapping[str, Any], *, first: bool, role: str) -> Iterator[tuple[str, int]]:
    match block["type"]:
        case "text" if role == "assistant":
            yield "history: replies", text_tokens(block["text"])
        case "text":
            rest = block["text"]
            for match in _TAGGED.finditer(block["text"]):
                yield _NAMES[match[1]], text_tokens(match[0])
                rest = rest.replace(match[0], "")
            yield ("task" if first else "history: notices"), text_tokens(rest) if rest.strip() else 0
        case "tool_use":
            yield "history: calls", raw_tokens(block["input"]) + 8
        case "tool_result":
            cleared = str(block["content"]).startswith("[result cleared]")
            yield ("history: digests" if cleared else "history: results"), text_tokens(str(block["content"]))
        case "thinking" | "redacted_thinking":
            yield "history: thinking", raw_tokens(dict(block))
        case _:
            yield "history: other", raw_tokens(dict(block))


# --- cost -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class CostRow:
    """One request, as billed."""

    task: str
    turn: int
    kind: str
    uncached: int | None
    write: int | None
    read: int | None
    output: int | None
    equivalents: float
    cleared: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CostReport:
    """The ledger of a session. `money` is None without prices; unknown requests stand in `totals` with their bounds."""

    rows: tuple[CostRow, ...]
    by_task: Mapping[str, Totals]
    totals: Totals
    money: float | None
    currency: str
    warnings: tuple[str, ...]


def cost_report(transcripts: Mapping[str, Iterable[Mapping[str, Any]]], prices: Prices) -> CostReport:
    """Add up what the transcripts of a session's tasks recorded. Each request is counted once."""
    rows: list[CostRow] = []
    by_task: dict[str, Totals] = {}
    everything: list[Entry] = []
    warnings: list[str] = []
    for task, records in transcripts.items():
        entries = entries_of(records)
        by_task[task] = totals(entries, prices)
        everything += entries
        rows += [_row(entry, prices) for entry in entries]
        if never_reads(entries):
            warnings.append(f"task {task}: the prompt cache is written and never read; see --context for its prefix")
    total = totals(everything, prices)
    if total.unknown_requests:
        warnings.append(
            f"{total.unknown_requests} requests did not report all they cost: at most {total.bound_input:,} input and "
            f"{total.bound_output:,} output tokens more"
        )
    return CostReport(
        rows=tuple(rows),
        by_task=by_task,
        totals=total,
        money=prices.money(total.equivalents),
        currency=prices.currency,
        warnings=tuple(warnings),
    )


def entries_of(records: Iterable[Mapping[str, Any]]) -> Sequence[Entry]:
    """All ledger entries of one transcript, earlier attempts included; last a request whose reply was lost, if any."""
    entries: list[Entry] = []
    lost: Entry | None = None
    for body in records:
        match body.get("k"):
            case "sent":
                lost = Transcript.entry_of(body)
            case "reply" | "cost":
                entries.append(Transcript.entry_of(body))
                lost = None
            case "refused" | "end":
                lost = None
    return [*entries, lost] if lost is not None else entries


def _row(entry: Entry, prices: Prices) -> CostRow:
    usage = entry.usage
    write = None if usage.write_5m is None else usage.write_5m + (usage.write_1h or 0)
    return CostRow(
        task=entry.task,
        turn=entry.turn + 1,
        kind=entry.kind,
        uncached=usage.uncached,
        write=write,
        read=usage.read,
        output=usage.output,
        equivalents=prices.equivalents(usage),
        cleared=entry.cleared,
    )
