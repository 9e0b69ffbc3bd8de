"""How many tokens a request holds: a local estimate, calibrated by what the endpoint's replies report.

Counting over the network before each request would cost a round trip and a share of the rate limit, so the endpoint
is asked only near a limit; the estimate tells when that is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

BYTES_PER_TOKEN = 3.2
"""Of JSON text before calibration; low on purpose, so that the first estimates run high."""
MESSAGE_OVERHEAD = 4


def raw_tokens(value: Any) -> int:
    """Uncalibrated tokens of a JSON value: its bytes in the API's spelling."""
    return int(len(orjson.dumps(value)) / BYTES_PER_TOKEN) + MESSAGE_OVERHEAD


def text_tokens(text: str) -> int:
    """Uncalibrated tokens of a text, its bytes only."""
    return int(len(text.encode("utf-8", "surrogatepass")) / BYTES_PER_TOKEN) + 1


@dataclass(slots=True)
class TokenMeter:
    """Turns raw estimates into calibrated ones. Shared by the subagents of one model.

    `factor` follows reported/estimated: up at once, so that a limit is never missed twice, down slowly.
    """

    factor: float = 1.0
    samples: int = 0
    lowest: float = 0.4
    highest: float = 4.0

    def calibrated(self, raw: int) -> int:
        return int(raw * self.factor) + 1

    def bound(self, raw: int) -> int:
        """Most that it can be, as far as is known: far above the estimate until a reply has been seen."""
        return int(raw * (self.factor * 1.5 if self.samples else 2.5)) + 1

    def learn(self, *, raw: int, reported: int | None) -> None:
        """Take in one reply. Requests too small to say anything, and endpoints that report nothing, change nothing."""
        if reported is None or reported < 200 or raw < 200:
            return
        seen = min(max(reported / raw, self.lowest), self.highest)
        self.factor = seen if self.samples == 0 or seen > self.factor else self.factor + 0.2 * (seen - self.factor)
        self.samples += 1
