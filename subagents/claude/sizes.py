"""What one step takes, by kind; measured once a step, so that deciding about the context costs the same however long
the conversation is."""

from __future__ import annotations

from dataclasses import dataclass, field

from subagents.claude.messages import Pair, ToolResult
from subagents.claude.tokens import text_tokens

WORTH_CLEARING = 1.25
"""A result is cleared only when it is this many times larger than its digest."""


def is_clearable(result: ToolResult) -> bool:
    if result.keep or result.is_error or not result.digest or result.text == result.digest:
        return False
    return len(result.text) > WORTH_CLEARING * len(result.digest)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSizes:
    """Uncalibrated tokens."""

    results: int
    """Results that can be cleared, in full."""
    digests: int
    """What stands for those once they are cleared."""
    other_results: int
    said: int
    """The reply, its calls and the state block."""
    framing: int
    """Arguments, notices, and what the API's spelling adds."""

    @property
    def whole(self) -> int:
        return self.results + self.other_results + self.said + self.framing

    @property
    def cleared(self) -> int:
        return self.whole - self.results + self.digests


def measured(pair: Pair) -> StepSizes:
    results = digests = other = state = 0
    framing = 10 + sum(text_tokens(str(call.input)) for call in pair.assistant.calls)
    if pair.user is not None:
        for result in pair.user.results:
            size = text_tokens(result.text)
            if is_clearable(result):
                results += size
                digests += text_tokens(result.digest)
            else:
                other += size
        framing += 12 * len(pair.user.results) + sum(text_tokens(notice) for notice in pair.user.notices)
        state = text_tokens(pair.user.state)
    said = text_tokens(pair.assistant.text) + 40 * len(pair.assistant.calls) + state
    return StepSizes(results=results, digests=digests, other_results=other, said=said, framing=framing)


@dataclass(slots=True)
class SizeMemo:
    """Sizes by step. A step that changes (it is closed, its state block is replaced) is another object."""

    _known: dict[int, tuple[Pair, StepSizes]] = field(default_factory=dict)

    def of(self, pair: Pair) -> StepSizes:
        known = self._known.get(pair.number)
        if known is None or known[0] is not pair:
            known = self._known[pair.number] = (pair, measured(pair))
        return known[1]
