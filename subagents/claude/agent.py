"""One subagent's parts, and what the loop asks of them: the request that fits, the reply, the closed step.

The loop itself is `loop.run`; here is everything that would hide its shape.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from manifests.errors import LeadlineError
from manifests.tasks import Task
from scratch.findings import Finding
from subagents.claude.assemble import FixedPart, assemble
from subagents.claude.attempts import until_answered
from subagents.claude.brake import Brake
from subagents.claude.budget import Spending, TaskLimits, limit_near, limit_reached
from subagents.claude.clearing import clear_tool_results
from subagents.claude.context import ContextKeeper, Pressure
from subagents.claude.diagnose import first_change, prints_of
from subagents.claude.history import Edits, History
from subagents.claude.ledger import Entry, EntryKind, limited_equivalents, never_reads
from subagents.claude.messages import AssistantTurn, Pair, Reply, Request, ToolResult, Usage
from subagents.claude.progress import Progress, Verdict
from subagents.claude.protocol import check_request
from subagents.claude.replies import StreamReader, reply_of, usage_of
from subagents.claude.server_side import DIAGNOSIS_BETA
from subagents.claude.state_block import StateBlock, finding_line, key_first
from subagents.claude.stops import Trouble, as_error
from subagents.claude.tokens import TokenMeter, raw_tokens
from subagents.claude.transcript import Transcript
from subagents.engine import Outcome
from subagents.prompts import defused
from subagents.tools.toolbox import Toolbox

ASK_COUNT_AT = 0.75
"""From this share of the budget on the endpoint's own count is asked for."""
PRESSURES: tuple[Pressure, ...] = ("clear", "compact", "compact_hard", "clear_newest")


_SUMMARY_REF = re.compile(r"read_evidence (sha256:[0-9a-f]+)")


class Sender(Protocol):
    """What the loop needs of an endpoint. Source: client.Endpoint."""

    async def send(
        self, request: Request, reader: StreamReader, on_event: Callable[[], None], on_begin: Callable[[], None]
    ) -> tuple[dict[str, Any], Mapping[str, str]]: ...
    async def count(self, request: Request) -> int | None: ...


class Warming(Protocol):
    """Lets one request of a prefix go ahead. Source: warm.Warmth."""

    def entering(self, prefix: str, alive: Callable[[], None]) -> AbstractAsyncContextManager[Callable[[], None]]: ...


class DoesNotFit(Exception):
    """Even shrunk to the newest step, the request is over the budget."""


@dataclass(slots=True, kw_only=True)
class Agent:
    """All that one run of one task needs. `keeper.policy` holds the input budget."""

    task: Task
    phase: int
    fixed: FixedPart
    sender: Sender
    brake: Brake
    warmth: Warming
    meter: TokenMeter
    keeper: ContextKeeper
    toolbox: Toolbox
    transcript: Transcript
    limits: TaskLimits
    heartbeat: Callable[[], None]
    spent: Spending = field(default_factory=Spending)
    progress: Progress = field(default_factory=Progress)
    goal: str = ""
    constraints: tuple[str, ...] = ()
    on_entry: Callable[[Entry], None] = lambda _: None
    session_limit: Callable[[], str] = lambda: ""
    """Name of a limit of the whole session that is reached, or empty."""
    server_edits: Callable[[int], tuple[dict[str, Any], tuple[str, ...]]] | None = None
    """Arguments and betas of the API's own context management, by the number of calls to keep."""
    ask_diagnostics: bool = False
    diagnosed: list[str] = field(default_factory=list)
    """What was noticed about the cache; for reports."""
    _last_request: Request | None = None
    _fixed_size: int = 0
    _measured: tuple[Request, int] | None = None
    """The request that was measured last, and its size: it is asked for more than once."""
    _cached_tokens: int = 0
    """What the last request read from the cache or wrote to it: as much has to be there for the next one."""
    _lines: dict[int, tuple[Finding, str]] = field(default_factory=dict)
    """Rendered findings by the object's identity; a finding that changes is another object."""
    _edited: str = ""
    """Name of the last edit, for the message about a request that is refused after it."""
    _told: set[str] = field(default_factory=set)
    shrink_now: bool = False
    """The last reply met the end of the window: compact before the next request."""

    # --- state ---

    @property
    def history(self) -> History:
        return self.transcript.history

    @property
    def fixed_size(self) -> int:
        """Uncalibrated tokens of tools and system, which no request changes."""
        if not self._fixed_size:
            fixed = assemble(self.fixed, History(opening="")).body
            self._fixed_size = raw_tokens(fixed.get("tools", [])) + raw_tokens(fixed.get("system", []))
        return self._fixed_size

    @property
    def budget_tokens(self) -> int:
        return self.keeper.policy.budget_tokens

    def state(self) -> StateBlock:
        desk = self.toolbox.desk
        findings = desk.recorder.findings()
        return StateBlock(
            goal=self.goal or self.task.question,
            constraints=self.constraints,
            deliverable=self.task.deliverable,
            findings=tuple(self._line(f) for f in key_first([f for f in findings if f.kind != "open_question"])),
            open_questions=tuple(defused(q) for q in desk.open_questions()),
            notes=tuple(defused(note) for note in desk.notes[-12:]),
            searched=tuple(defused(line) for line in desk.searched[-30:][::-1]),
            read=desk.read_lines(),
            budget=self._budget_line(),
            step=self.history.next_number,
        )

    def _line(self, finding: Finding) -> str:
        known = self._lines.get(id(finding))
        if known is None or known[0] is not finding:
            known = self._lines[id(finding)] = (finding, finding_line(finding))
        return known[1]

    def _budget_line(self) -> str:
        left = max(0, self.limits.max_turns - self.spent.turns)
        parts = [f"{left} of {self.limits.max_turns} turns left"]
        if self.limits.max_tokens is not None:
            parts.append(f"{max(0, self.limits.max_tokens - self.spent.tokens):,} tokens left")
        if self.limits.max_cost is not None:
            parts.append(f"{max(0.0, 1 - self.spent.cost / self.limits.max_cost):.0%} of its money left")
        return ", ".join(parts)

    def delivered(self) -> bool:
        """Whether a finding other than an open question was recorded."""
        return any(f.kind != "open_question" for f in self.toolbox.desk.recorder.findings())

    def limit(self) -> str:
        return self.session_limit() or limit_reached(self.limits, self.spent)

    # --- the request ---

    async def next_request(self) -> Request:
        """The next request, shrunk until it fits the input budget. Raises DoesNotFit."""
        if self.shrink_now:
            self.shrink_now = False
            return await self.shrunk_request("compact")
        request = self._request()
        if await self._fits(request):
            return request
        return await self.shrunk_request("clear")

    async def shrunk_request(self, least: Pressure) -> Request:
        """The next request after shrinking by at least so much. Raises DoesNotFit."""
        for pressure in PRESSURES[PRESSURES.index(least) :]:
            if not self._shrink(pressure):
                continue
            request = self._request()
            if await self._fits(request):
                return request
        raise DoesNotFit

    def _request(self) -> Request:
        history = self.history
        fixed = self.fixed
        if self.server_edits is not None and history.edits.mode == "server":
            user = history.pairs[-1].user if history.pairs else None
            extra, betas = self.server_edits(max(1, len(user.results) if user else 1))
            fixed = replace(fixed, extra={**fixed.extra, **extra}, betas=tuple(dict.fromkeys((*fixed.betas, *betas))))
        if self.ask_diagnostics:
            last = history.pairs[-1].assistant.message_id if history.pairs else None
            extra = {**fixed.extra, "diagnostics": {"previous_message_id": last or None}}
            fixed = replace(fixed, extra=extra, betas=(*fixed.betas, DIAGNOSIS_BETA))
        return assemble(fixed, history)

    async def _fits(self, request: Request) -> bool:
        tokens = self.meter.calibrated(self.raw_size(request))
        if tokens > ASK_COUNT_AT * self.budget_tokens:
            counted = await self.sender.count(request)
            if counted is not None:
                self.meter.learn(raw=self.raw_size(request), reported=counted)
                tokens = counted
        return tokens <= self.budget_tokens

    def raw_size(self, request: Request) -> int:
        """Uncalibrated tokens of what the model will be shown: with the API's own clearing, without what it clears."""
        if self._measured is None or self._measured[0] is not request:
            self._measured = (request, self._raw_size(request))
        return self._measured[1]

    def _raw_size(self, request: Request) -> int:
        body = request.body
        total = self.fixed_size
        if self.history.edits.mode == "server":
            newest = self.history.next_number - 1
            pairs = tuple(clear_tool_results(self.history.pairs, before=newest))
            return total + raw_tokens(assemble(self.fixed, replace(self.history, pairs=pairs)).body["messages"])
        return total + raw_tokens(body["messages"])

    def _shrink(self, pressure: Pressure) -> bool:
        if not self.history.pairs or self.transcript.open_pair is not None:
            return False
        before = self.history.edits
        edits, state = self.keeper.shrink(self.history, self.state(), pressure)
        if edits == before:
            return False
        self.transcript.edit(edits, state)
        self._edited = f"{pressure} up to step {max(edits.cleared, edits.compacted)}"
        return True

    def check(self, request: Request) -> None:
        paused = self.transcript.open_pair is not None
        check_request(request, signed=self.transcript.signed, may_end_with_assistant=paused)

    # --- the reply ---

    async def ask(self, request: Request) -> Reply:
        """Send until there is a complete reply. What failed is accounted for.

        Raises Trouble for what shrinking may cure, LeadlineError for what ends the task or the session.
        """
        size = self.raw_size(request)

        async def attempt(reader: StreamReader) -> Reply:
            self.heartbeat()
            return await self._attempt(request, reader, size)

        def failed(trouble: Trouble, reader: StreamReader) -> None:
            self._account_failure(trouble, reader, size)

        try:
            return await until_answered(attempt, brake=self.brake, failed=failed)
        except Trouble as trouble:
            if trouble.kind in ("too_long", "too_large"):
                raise
            raise as_error(trouble, after_edit=self._edited) from trouble

    async def _attempt(self, request: Request, reader: StreamReader, size: int) -> Reply:
        prefix = f"{self.fixed.model} {hash((self.fixed.role_prompt, self.fixed.brief, len(self.fixed.tools)))}"
        async with (
            self.warmth.entering(prefix, self.heartbeat) as begun,
            self.brake.passing(self.heartbeat),
        ):
            self.transcript.sent(self._entry(Usage(), "cut", size))
            message, headers = await self.sender.send(request, reader, self.heartbeat, begun)
        self.brake.succeeded(headers)
        reply = reply_of(message, reader.usage, number=self.history.next_number, used_ids=self.transcript.used_ids)
        self.meter.learn(raw=size, reported=reply.usage.input_total)
        return replace(
            reply,
            applied_edits=reader.applied_edits,
            cache_miss=reader.cache_miss,
            counted_input=self.meter.calibrated(size),
        )

    def _account_failure(self, trouble: Trouble, reader: StreamReader, size: int) -> None:
        """A request that broke may have been charged: what it reported, else unknown up to a bound."""
        if not reader.started and not trouble.may_be_charged:
            self.transcript.refused()
            return
        usage = replace(usage_of(reader.usage), output=None) if reader.started else Usage()
        entry = self._entry(usage, "cut", size)
        self.transcript.cost(entry)
        self._account(entry)

    def abandon(self) -> None:
        """The task is cancelled: a request that was out may have been charged."""
        pending = self.transcript.pending
        if pending is not None:
            self.transcript.settle()
            self._account(pending)

    def _entry(self, usage: Usage, kind: EntryKind, size: int | None, bound: int | None = None) -> Entry:
        return Entry(
            task=self.task.id,
            turn=self.history.next_number,
            kind=kind,
            usage=usage,
            bound_input=bound if bound is not None else self.meter.bound(size or 0),
            bound_output=self.fixed.max_tokens,
            cleared=bool(self._edited),
        )

    def record(self, reply: Reply) -> AssistantTurn:
        """Make a reply durable, with its cost, before anything acts on it.

        Returns the turn it completes: what pauses cut into several replies is one turn.
        """
        entry = self._entry(reply.usage, "message", None, bound=reply.counted_input)
        self.transcript.reply(reply, entry)
        self._account(entry)
        self._edited = ""
        self.spent.turns += 1
        return self.history.pairs[-1].assistant

    def _account(self, entry: Entry) -> None:
        self._spend(entry)
        self.on_entry(entry)

    def _spend(self, entry: Entry) -> None:
        usage = entry.usage
        known = usage.input_total
        self.spent.tokens += known if known is not None else entry.bound_input
        self.spent.tokens += usage.output if usage.output is not None else entry.bound_output
        prices = self.keeper.policy.prices
        self.spent.cost += prices.money(limited_equivalents(entry, prices)) or 0.0

    def diagnose(self, request: Request, reply: Reply) -> None:
        """Say why the cache gave less than the last request left in it, or that it is written and never read.

        Only then are the two requests compared, block by block: a cache that works costs no comparison.
        """
        usage, step = reply.usage, self.history.next_number
        if reply.cache_miss:
            self.diagnosed.append(f"step {step}: the endpoint says {reply.cache_miss}")
        if usage.read is not None and usage.read < self._cached_tokens and not self._edited:
            change = first_change(prints_of(self._last_request), prints_of(request)) if self._last_request else None
            if change is None:
                self.diagnosed.append(f"step {step}: the prefix is unchanged, its cache entry has expired")
            elif not self._expected(change.where):
                self.diagnosed.append(f"step {step}: {change.line}")
        if not usage.read and never_reads(self.transcript.entries) and NEVER_READ not in self.diagnosed:
            self.diagnosed.append(NEVER_READ)
        self._cached_tokens = (usage.read or 0) + (usage.write_5m or 0) + (usage.write_1h or 0)
        self._last_request = request

    def _expected(self, where: str) -> bool:
        """Edits of this step's end (clearing, a summary) change messages; tools and system never may."""
        return where.startswith("messages.") and self.history.edits != Edits(mode=self.history.edits.mode)

    # --- the step's end ---

    def unanswered(self) -> AssistantTurn | None:
        """A reply on disk that a crash kept from being acted on; a paused one is continued by asking."""
        pair = self.transcript.open_pair
        return None if pair is None or pair.assistant.stop_reason == "pause_turn" else pair.assistant

    async def finish_step(self, notice: str = "") -> Verdict:
        """Run what the reply asked for and has no result yet, then close the step. Says whether there is progress."""
        pair = self.transcript.open_pair
        assert pair is not None
        results = await self._results(pair)
        calls = pair.assistant.calls
        verdict = self.progress.step(calls, text=pair.assistant.text, news=self.toolbox.news if calls else 0)
        self.close_step(results, notice, NO_PROGRESS if verdict == "warn" else "")
        return verdict

    async def _results(self, pair: Pair) -> list[ToolResult]:
        known = self.transcript.results
        calls = [call for call in pair.assistant.calls if call.id not in known]
        edits = self.history.edits
        visible_from = max(edits.compacted, pair.number if edits.mode in ("behind", "server") else edits.cleared)
        several = len(pair.assistant.calls) > 1

        def done(result: ToolResult) -> None:
            self.heartbeat()
            if several:
                self.transcript.result(result)

        fresh = await self.toolbox.run_all(calls, step=pair.number, visible_from=visible_from, done=done)
        by_id = {**known, **{result.tool_use_id: result for result in fresh}}
        return [by_id[call.id] for call in pair.assistant.calls]

    def close_step(self, results: list[ToolResult], *notices: str) -> None:
        """Close the open step: results, notices that are not empty, state block, edits."""
        said = [notice for notice in (*notices, self._near_limit()) if notice]
        user, edits = self.keeper.close(self.history, results, said, self.state())
        if (edits.cleared, edits.compacted) != (self.history.edits.cleared, self.history.edits.compacted):
            self._edited = f"{edits.mode} up to step {max(edits.cleared, edits.compacted)}"
        self.transcript.close(user, edits, seconds=self.spent.seconds)

    def _near_limit(self) -> str:
        near = limit_near(self.limits, self.spent)
        if not near or near in self._told:
            return ""
        self._told.add(near)
        return NEAR_LIMIT.format(limit=near)

    def restore_costs(self) -> None:
        """What an earlier attempt at this task has cost counts on, though its conversation begins anew."""
        for entry in self.transcript.entries:
            self._spend(entry)

    def restore(self) -> None:
        """Take in what an earlier process did: spending, and what the tools showed.

        What ended at a limit goes on as another attempt: with turns and minutes of its own, as if it began anew.
        """
        self.restore_costs()
        if not self.transcript.at_limit:
            self.spent.turns = len(self.history.pairs)
            self.spent.seconds_before = self.transcript.seconds
        for pair in self.history.pairs:
            self._restore_results(pair, pair.user.results if pair.user else ())
        self.toolbox.desk.evidence_refs += _SUMMARY_REF.findall(self.history.edits.summary)
        open_pair = self.transcript.open_pair
        if open_pair is not None:
            self._restore_results(open_pair, tuple(self.transcript.results.values()))

    def _restore_results(self, pair: Pair, results: tuple[ToolResult, ...]) -> None:
        calls = {call.id: call for call in pair.assistant.calls}
        for result in results:
            self.toolbox.restore(pair.number, calls[result.tool_use_id], result)

    # --- the end ---

    def outcome(self, status: str, failure: str = "", *, at_limit: bool = False) -> Outcome:
        """End the task. Findings are in the result whatever the last message was; without any, nothing is finished.

        `at_limit`: the conversation is whole, and a later process may go on with it.
        """
        has = self.delivered()
        if status == "finished" and not has:
            status = "incomplete"
        elif status in ("partial", "failed") and not has:
            status = "incomplete" if status == "partial" else "failed"
        elif status == "failed" and has:
            status = "partial"
        self.transcript.end(status, failure, at_limit=at_limit)
        return self.on_record(status, failure)

    def on_record(self, status: str, failure: str = "") -> Outcome:
        """The outcome of what the transcript holds; also of a task that had ended before a crash."""
        text = "\n\n".join(p.assistant.text for p in self.history.pairs if p.assistant.text)
        if text:
            self.toolbox.desk.recorder.note(f"closing words: {text[-2_000:]}")
        return Outcome(
            status=status,  # type: ignore[arg-type]
            coverage=self.toolbox.desk.coverage(),
            usage=self.usage(),
            failure=failure,
        )

    def usage(self) -> dict[str, float]:
        """Sums for the coordinator: tokens by kind, equivalents, money if priced, what is unknown and its bound."""
        from subagents.claude.ledger import totals

        prices = self.keeper.policy.prices
        sums = totals(self.transcript.entries, prices)
        usage: dict[str, float] = {
            "requests": sums.requests,
            "input_tokens": sums.uncached,
            "cache_write_tokens": sums.write,
            "cache_read_tokens": sums.read,
            "output_tokens": sums.output,
            "input_equivalents": round(sums.equivalents, 1),
            "unknown_requests": sums.unknown_requests,
            "unknown_input_bound": sums.bound_input,
            "unknown_output_bound": sums.bound_output,
        }
        money = prices.money(sums.equivalents)
        return usage if money is None else {**usage, "cost": money}


NEVER_READ = "the prompt cache is written and never read: its prefix changes, or it is too short"
NO_PROGRESS = (
    "The last steps brought nothing new: the same calls, or lines you had already seen. Record what you have "
    "confirmed, then look somewhere else or finish."
)
NEAR_LIMIT = (
    "Four fifths of the {limit} of this task are used. Record now what you have confirmed, then look only for what the "
    "deliverable still lacks."
)


def is_fatal(error: LeadlineError) -> bool:
    """Whether an error ends the session and not just this task."""
    from manifests.errors import StateError, UsageError
    from subagents.claude.brake import Outage
    from subagents.claude.stops import SessionClosed

    return isinstance(error, StateError | UsageError | Outage | SessionClosed)
