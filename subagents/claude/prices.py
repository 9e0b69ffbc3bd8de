"""The price table: what a token costs, by how it was billed. Configuration, never a constant of a model.

Without prices in money, costs are given in input-token equivalents: the multipliers of the prompt cache are public
and the same for all models of the API; a foreign endpoint's are set to what it charges.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from manifests.errors import UsageError
from subagents.claude.messages import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Multiples of the price of one uncached input token, and, where configured, money for a million of them.

    Source of the defaults: the API's documentation of prompt caching (5 m write 1.25, 1 h write 2, read 0.1).
    """

    write_5m: float = 1.25
    write_1h: float = 2.0
    read: float = 0.1
    output: float = 5.0
    per_million: float | None = None
    """Money for a million uncached input tokens; None: unknown."""
    currency: str = "USD"

    def input_equivalents(self, usage: Usage) -> float:
        """Input of one reply in uncached input tokens. Unknown parts count as nothing: see the ledger's bounds."""
        return (
            (usage.uncached or 0)
            + self.write_5m * (usage.write_5m or 0)
            + self.write_1h * (usage.write_1h or 0)
            + self.read * (usage.read or 0)
            + usage.extra_input
        )

    def equivalents(self, usage: Usage) -> float:
        """Input and output of one reply in uncached input tokens."""
        return self.input_equivalents(usage) + self.output * ((usage.output or 0) + usage.extra_output)

    def money(self, equivalents: float) -> float | None:
        return None if self.per_million is None else equivalents * self.per_million / 1_000_000


def prices_from(table: Mapping[str, object], model: str) -> Prices:
    """Prices of `model` out of a configured table `{model or "default": {field: number}}`.

    Raises UsageError for an unknown field or a value that is no price.
    """
    entry = table.get(model, table.get("default", {}))
    if not isinstance(entry, Mapping):
        raise UsageError(f"prices of {model!r} are {entry!r}", hint="write a table: prices.<model>.per_million = ...")
    known = {"write_5m", "write_1h", "read", "output", "per_million"}
    values: dict[str, float] = {}
    for name, value in entry.items():
        if name == "currency":
            continue
        if name not in known:
            raise UsageError(f"unknown price {name!r} of {model!r}", hint=f"known are {', '.join(sorted(known))}")
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            raise UsageError(f"price {name!r} of {model!r} is {value!r}", hint="give a number of at least 0")
        values[name] = float(value)
    return Prices(**values, currency=str(entry.get("currency", "USD")))
