"""What was charged: one line per request that was answered, retries and cut streams included."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

WRITE_5M, WRITE_1H, READ = 1.25, 2.0, 0.1
"""Prices in uncached input tokens. Source: public price list."""


@dataclass(slots=True, kw_only=True)
class Charge:
    """Tokens of one reply. `kind` is `compaction` for the cost that stands only in `usage.iterations`."""

    request: int
    model: str
    conversation: str
    kind: str = "message"
    input_tokens: int = 0
    write_5m_tokens: int = 0
    write_1h_tokens: int = 0
    read_tokens: int = 0
    output_tokens: int = 0
    thinking_tokens: int = 0
    delivered: bool = True
    """False: the connection broke before the client had the whole reply. It is charged all the same."""

    @property
    def prompt_tokens(self) -> int:
        return self.input_tokens + self.write_5m_tokens + self.write_1h_tokens + self.read_tokens

    @property
    def input_cost(self) -> float:
        """Price-weighted input, in tokens of uncached input."""
        return (
            self.input_tokens
            + WRITE_5M * self.write_5m_tokens
            + WRITE_1H * self.write_1h_tokens
            + READ * self.read_tokens
        )

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(slots=True, kw_only=True)
class Totals:
    """Sums over charges."""

    requests: int = 0
    input_tokens: int = 0
    write_tokens: int = 0
    read_tokens: int = 0
    output_tokens: int = 0
    input_cost: float = 0.0

    @property
    def prompt_tokens(self) -> int:
        return self.input_tokens + self.write_tokens + self.read_tokens

    @property
    def read_share(self) -> float:
        """Share of all input that was read from the cache."""
        return self.read_tokens / self.prompt_tokens if self.prompt_tokens else 0.0


def total(charges: Iterable[Charge]) -> Totals:
    sums = Totals()
    for charge in charges:
        sums.requests += charge.kind == "message"
        sums.input_tokens += charge.input_tokens
        sums.write_tokens += charge.write_5m_tokens + charge.write_1h_tokens
        sums.read_tokens += charge.read_tokens
        sums.output_tokens += charge.output_tokens
        sums.input_cost += charge.input_cost
    return sums
