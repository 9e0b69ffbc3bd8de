"""The ledger: per request what was written to the cache, read from it, sent uncached, and put out.

Every reply is entered, retries and cut streams included. What a provider does not report is unknown and carries a
bound (our own count for input, the reply limit for output): shown as such, never as zero.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from manifests.fields import Malformed
from subagents.claude.messages import Usage
from subagents.claude.prices import Prices

EntryKind = Literal["message", "cut", "compaction", "plan", "answer", "verify", "recall"]


LOST_OUTPUT_TOKENS = 4_000
"""What limits count for a reply that was lost; reports give the bound, which is the longest reply that was allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One request that reached the endpoint."""

    task: str
    turn: int
    kind: EntryKind
    usage: Usage
    bound_input: int
    """Most that unreported input can be."""
    bound_output: int
    cleared: bool = False
    """An edit of the context went before this request: its cache write is expected."""

    @property
    def unknown(self) -> bool:
        return self.usage.uncached is None or self.usage.output is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Sums of known figures. `bound_*` is the most that the unreported requests may add."""

    requests: int = 0
    uncached: int = 0
    write: int = 0
    read: int = 0
    output: int = 0
    equivalents: float = 0.0
    input_equivalents: float = 0.0
    unknown_requests: int = 0
    bound_input: int = 0
    bound_output: int = 0

    @property
    def input(self) -> int:
        return self.uncached + self.write + self.read

    @property
    def read_share(self) -> float:
        """Share of the input that came out of the cache."""
        return self.read / self.input if self.input else 0.0


def totals(entries: Iterable[Entry], prices: Prices) -> Totals:
    """Add up. Each entry is counted once; the caller keeps entries unique."""
    uncached = write = read = output = requests = unknown = bound_input = bound_output = 0
    equivalents = input_equivalents = 0.0
    for entry in entries:
        usage = entry.usage
        requests += 1
        uncached += (usage.uncached or 0) + usage.extra_input
        write += (usage.write_5m or 0) + (usage.write_1h or 0)
        read += usage.read or 0
        output += (usage.output or 0) + usage.extra_output
        equivalents += prices.equivalents(usage)
        input_equivalents += prices.input_equivalents(usage)
        if entry.unknown:
            unknown += 1
            bound_input += entry.bound_input if usage.uncached is None else 0
            bound_output += entry.bound_output if usage.output is None else 0
    return Totals(
        requests=requests,
        uncached=uncached,
        write=write,
        read=read,
        output=output,
        equivalents=equivalents,
        input_equivalents=input_equivalents,
        unknown_requests=unknown,
        bound_input=bound_input,
        bound_output=bound_output,
    )


def limited_equivalents(entry: Entry, prices: Prices) -> float:
    """What limits in money count for one request, in uncached input tokens: of what is unknown, the most it can be; of
    a lost reply, what replies are like."""
    worth = prices.equivalents(entry.usage)
    if entry.usage.input_total is None:
        worth += entry.bound_input * prices.write_5m
    if entry.usage.output is None:
        worth += min(entry.bound_output, LOST_OUTPUT_TOKENS) * prices.output
    return worth


def never_reads(entries: Iterable[Entry], *, after: int = 4) -> bool:
    """Whether a run keeps writing to the cache and never reads: its prefix changes, see `diagnose`.

    Requests right after an edit are left out, and so is a provider that has no cache.
    """
    usages = [e.usage for e in entries if not e.cleared and e.kind == "message"][1:]
    writes = [u for u in usages if (u.write_5m or 0) + (u.write_1h or 0) > 0]
    return len(writes) >= after and not any(u.read for u in usages)


def entry_to_json(entry: Entry) -> dict[str, Any]:
    """Without what is unknown, and without what is nothing and reads as nothing: it is written at every step."""
    usage = {name: getattr(entry.usage, name) for name in Usage.__slots__ if getattr(entry.usage, name) is not None}
    usage = {name: value for name, value in usage.items() if value or name not in ("extra_input", "extra_output")}
    body: dict[str, Any] = {"task": entry.task, "turn": entry.turn, "kind": entry.kind}
    if usage:
        body["usage"] = usage
    if entry.unknown:  # else nobody asks for a bound
        body["bound"] = [entry.bound_input, entry.bound_output]
    if entry.cleared:
        body["cleared"] = True
    return body


def entry_from_json(body: object) -> Entry:
    """The reverse. Raises Malformed: a transcript is read back, so nobody vouches for it."""
    try:
        entry = _entry(body)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError) as problem:
        raise Malformed(f"a charge cannot be read: {type(problem).__name__}: {problem}") from problem
    amounts = [getattr(entry.usage, name) for name in Usage.__slots__]
    if any(one is not None and one < 0 for one in [*amounts, entry.bound_input, entry.bound_output]):
        raise Malformed("a charge is negative")
    return entry


def _entry(body: Any) -> Entry:
    bound = body.get("bound", (0, 0))
    return Entry(
        task=str(body["task"]),
        turn=int(body["turn"]),
        kind=body["kind"],
        usage=Usage(**{name: int(value) for name, value in body.get("usage", {}).items()}),
        bound_input=int(bound[0]),
        bound_output=int(bound[1]),
        cleared=bool(body.get("cleared", False)),
    )
