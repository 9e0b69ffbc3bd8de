"""What a session has spent and may spend: read off its transcripts, so that no crash, retry or resume forgets a token.

Every request that reached the endpoint stands in a transcript, with what it was charged or, where that is unknown, the
most it can have been. The sums of a session are the sums over these records and nothing else. Limits compare with the
sums plus what is on its way; a reserve is kept for the answer, so that a limit never leaves findings without one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from manifests.envelope import DOCTOR
from manifests.errors import StateError, UsageError
from manifests.fields import Malformed
from manifests.sessions import TRANSCRIPT_SCHEMA, Session
from manifests.tasks import Task
from subagents.claude.ledger import LOST_OUTPUT_TOKENS, Entry, limited_equivalents, totals
from subagents.claude.messages import Usage
from subagents.claude.prices import Prices
from subagents.claude.report import entries_of as ledger_of

EXPECTED_TURNS = 12
TURN_TOKENS = 2_500
"""Growth of a subagent's context in one turn, until the session has figures of its own. Measured in tests/bench."""
REPLY_TOKENS = 400
ANSWER_TOKENS = 12_000
"""Of plan and answer together: findings in, statements out."""
LEAST_REQUESTS = 3
"""A subagent that cannot make so many requests is not started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendLimits:
    """Over the whole session. None: no limit."""

    max_cost: float | None = None
    max_tokens: int | None = None
    """Input and output together, as billed: cached tokens count in full."""
    ask_above_cost: float = 5.0
    ask_above_tokens: int = 3_000_000
    """In uncached input tokens; used when no price is configured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What is about to be spent. `equivalents` are uncached input tokens; money follows from them, if a price is
    configured."""

    subagents: int
    tokens: int
    equivalents: float
    money: float | None
    currency: str
    basis: str
    work: str = ""
    """What it is for, where that is not subagents."""

    @property
    def line(self) -> str:
        """For people, before anything is launched."""
        work = self.work or f"{self.subagents} subagent{'s' if self.subagents != 1 else ''}"
        money = f"about {self.money:,.2f} {self.currency}" if self.money is not None else "cost unknown (no price set)"
        return f"{work}: about {self.tokens:,} tokens, {money}; {self.basis}"


def approve(estimate: Estimate, *, yes: bool, agreed: Callable[[Estimate], bool] | None) -> None:
    """Raises UsageError unless somebody agrees to spend this much. `agreed` asks a person; None: nobody is there."""
    if yes:
        return
    if agreed is None:
        raise UsageError(
            f"this needs your word: {estimate.line}",
            hint="give --yes, or less room: --max-agents, --max-tokens, --max-cost "
            "(limits.ask_above_cost and ask_above_tokens say from where on it asks)",
        )
    if not agreed(estimate):
        raise UsageError("not agreed to; nothing more was spent", hint="resume with other limits, or leave it")


@dataclass(slots=True)
class _Sum:
    """Added up as it comes, so that one more request costs the same however many there were."""

    requests: int = 0
    input: int = 0
    write: int = 0
    read: int = 0
    output: int = 0
    equivalents: float = 0.0
    unknown: int = 0
    bound_input: int = 0
    bound_output: int = 0
    tokens: int = 0
    """With bounds for what is unknown."""
    cost: float = 0.0

    def add(self, entry: Entry, tokens: int, cost: float, prices: Prices) -> None:
        one = totals([entry], prices)
        self.requests += 1
        self.input += one.uncached
        self.write += one.write
        self.read += one.read
        self.output += one.output
        self.equivalents += one.equivalents
        self.unknown += one.unknown_requests
        self.bound_input += one.bound_input
        self.bound_output += one.bound_output
        self.tokens += tokens
        self.cost += cost

    def document(self, currency: str | None) -> dict[str, float]:
        body: dict[str, float] = {
            "requests": self.requests,
            "input_tokens": self.input,
            "cache_write_tokens": self.write,
            "cache_read_tokens": self.read,
            "output_tokens": self.output,
            "input_equivalents": round(self.equivalents, 1),
            "unknown_requests": self.unknown,
            "unknown_input_bound": self.bound_input,
            "unknown_output_bound": self.bound_output,
        }
        return body if currency is None else {**body, f"cost_{currency.lower()}": self.cost}


class Spend:
    """One session's spending. `price_of` says what an entry's model costs."""

    def __init__(
        self,
        limits: SpendLimits,
        price_of: Callable[[Entry], Prices],
        *,
        prefix_tokens: int,
    ) -> None:
        """Raises UsageError for a limit in money without a price."""
        self.limits = limits
        self._price_of = price_of
        self._prefix = prefix_tokens
        self.running = 0
        """How many subagents run now."""
        self._all = _Sum()
        self._by_task: dict[str, _Sum] = {}
        self._largest = 0
        self._agreed = 0.0
        self.prices = price_of(_NO_ENTRY)
        if limits.max_cost is not None and self.prices.per_million is None:
            raise UsageError(
                "there is a limit in money, but no price is configured",
                hint="set claude.prices.default.per_million in the configuration, or use --max-tokens",
            )

    # --- taking in ---

    def load(self, session: Session) -> None:
        """Everything that earlier processes spent."""
        for name in session.names_of("transcripts", ".jsonl"):
            for entry in entries_of(session, name):
                self.add(entry)

    def add(self, entry: Entry) -> None:
        """One request; what is unknown counts with the most it can be, a lost reply with what replies are like."""
        usage = entry.usage
        input_ = usage.input_total
        tokens = (entry.bound_input if input_ is None else input_) + usage.extra_input + usage.extra_output
        lost = min(entry.bound_output, LOST_OUTPUT_TOKENS)
        tokens += lost if usage.output is None else usage.output
        prices = self._price_of(entry)
        worth = limited_equivalents(entry, prices)
        self._largest = max(self._largest, tokens)
        for sums in (self._all, self._by_task.setdefault(entry.task, _Sum())):
            sums.add(entry, tokens, prices.money(worth) or 0.0, prices)

    # --- limits ---

    @property
    def _on_its_way(self) -> int:
        """What requests that run now may add before a limit is looked at again."""
        return max(1, self.running) * (self._largest or self._prefix)

    def near(self) -> str:
        """Name of a limit so near that no subagent may send another request, or empty. Keeps room for the answer."""
        return self._reached(self._on_its_way + ANSWER_TOKENS)

    def _reached(self, more: int) -> str:
        limits = self.limits
        if limits.max_tokens is not None and self._all.tokens + more > limits.max_tokens:
            return "tokens"
        if limits.max_cost is not None and self._all.cost + (self.prices.money(more) or 0.0) > limits.max_cost:
            return "cost"
        return ""

    def _left(self) -> dict[str, float]:
        """What each limit leaves, in tokens: as uncached input where it is in money."""
        left: dict[str, float] = {}
        if self.limits.max_tokens is not None:
            left["tokens"] = self.limits.max_tokens - self._all.tokens
        if self.limits.max_cost is not None and self.prices.per_million:
            left["cost"] = (self.limits.max_cost - self._all.cost) * 1_000_000 / self.prices.per_million
        return left

    @property
    def tightest(self) -> str:
        """Name of the limit that leaves least room, or empty without one."""
        left = self._left()
        return min(left, key=left.__getitem__, default="")

    def room(self) -> int | None:
        """Tokens that may still be spent, as uncached input where the limit is in money; None without a limit."""
        left = self._left()
        return max(0, int(min(left.values()))) if left else None

    def fitting(self, tasks: Sequence[Task]) -> list[Task]:
        """As many of these tasks, in order, as there is room for; each with its reserved share of what is left.

        Reserved is what the limit counts: of a limit in money, money, since tokens read from the cache cost a tenth.
        """
        room = self.room()
        if room is None:
            return list(tasks)
        left = max(0, room - ANSWER_TOKENS)
        least = LEAST_REQUESTS * (self._prefix + TURN_TOKENS)
        kept = list(tasks[: left // least])
        shares = [_share(task) for task in kept]
        return [self._capped(task, share / sum(shares)) for task, share in zip(kept, shares, strict=True)]

    def _capped(self, task: Task, share: float) -> Task:
        before = self._by_task.get(task.id, _Sum())
        own: dict[str, object] = {}
        if self.limits.max_tokens is not None:
            left = self.limits.max_tokens - self._all.tokens - ANSWER_TOKENS
            own["max_tokens"] = before.tokens + int(left * share)
        if self.limits.max_cost is not None:
            money = self.limits.max_cost - self._all.cost - (self.prices.money(ANSWER_TOKENS) or 0.0)
            own["max_cost"] = before.cost + money * share
        return replace(task, settings={**task.settings, **own})

    # --- estimating ---

    def estimate(self, tasks: Sequence[Task], finished: Sequence[str]) -> Estimate:
        """What these tasks will take. `finished`: tasks of this session whose figures are the better basis."""
        own = [self._by_task[task] for task in finished if task in self._by_task]
        if own:
            tokens = sum(one.tokens for one in own) / len(own)
            worth = sum(one.equivalents for one in own) / len(own)
            basis = f"as the {len(own)} finished before, on average"
        else:
            tokens, worth = _modelled(self._prefix, self.prices)
            basis = (
                f"{EXPECTED_TURNS} turns each on a shared prefix of {self._prefix:,} tokens that is written once, "
                f"{TURN_TOKENS:,} more a turn"
            )
        equivalents = worth * len(tasks) + self._prefix * (self.prices.write_5m - self.prices.read) * (not own)
        return Estimate(
            subagents=len(tasks),
            tokens=int(tokens * len(tasks)) + ANSWER_TOKENS,
            equivalents=equivalents + ANSWER_TOKENS,
            money=self.prices.money(equivalents + ANSWER_TOKENS),
            currency=self.prices.currency,
            basis=basis,
        )

    def must_ask(self, estimate: Estimate) -> bool:
        """Whether a person has to agree: more than the amount nobody asks about, or than was agreed to before.

        A limit that is lower caps what can be spent at all, and was somebody's word too.
        """
        return self._total_with(estimate) > max(self._unasked, self._agreed)

    def agree(self, estimate: Estimate) -> None:
        """A person said yes to this much on top of what was spent."""
        self._agreed = max(self._agreed, self._total_with(estimate))

    def _total_with(self, estimate: Estimate) -> float:
        limits = self.limits
        if estimate.money is not None:
            total = self._all.cost + estimate.money
            return total if limits.max_cost is None else min(total, limits.max_cost)
        total = self._all.equivalents + estimate.equivalents
        return total if limits.max_tokens is None else min(total, limits.max_tokens)

    @property
    def _unasked(self) -> float:
        return self.limits.ask_above_cost if self.prices.per_million is not None else self.limits.ask_above_tokens

    # --- reporting ---

    def usage(self, name: str) -> dict[str, float]:
        """Sums by name of one task, plan or answer."""
        return self._by_task.get(name, _Sum()).document(self._currency)

    def total(self) -> dict[str, float]:
        """Sums by name of the whole session."""
        return self._all.document(self._currency)

    @property
    def names(self) -> Collection[str]:
        """Everything that was charged for: ids of tasks, and names of plans and answers."""
        return self._by_task.keys()

    @property
    def _currency(self) -> str | None:
        return self.prices.currency if self.prices.per_million is not None else None


_NO_ENTRY = Entry(task="", turn=0, kind="message", usage=Usage(), bound_input=0, bound_output=0)


def _share(task: Task) -> float:
    share = task.settings.get("share")
    return float(share) if isinstance(share, int | float) and share > 0 else 1.0


def _modelled(prefix: int, prices: Prices) -> tuple[float, float]:
    """(tokens as billed, worth in uncached input tokens) of one subagent that reads its context from the cache."""
    turns = range(EXPECTED_TURNS)
    read = sum(prefix + TURN_TOKENS * n for n in turns)
    grown, said = TURN_TOKENS * EXPECTED_TURNS, REPLY_TOKENS * EXPECTED_TURNS
    worth = prices.read * read + prices.write_5m * grown + prices.output * said
    return read + grown + said, worth


def entries_of(session: Session, name: str) -> Sequence[Entry]:
    """All requests that a transcript has on record. One that a crash left without an end is unknown, up to a bound."""
    try:
        return ledger_of(record.body for record in session.read_log(f"transcripts/{name}.jsonl", TRANSCRIPT_SCHEMA))
    except FileNotFoundError:
        return []
    except (Malformed, KeyError, IndexError, TypeError, AttributeError) as problem:
        path = str(session.path_of("transcripts", f"{name}.jsonl"))
        raise StateError(f"{path!r} cannot be used: {type(problem).__name__}: {problem}", hint=DOCTOR) from problem
