"""Hashes of many words at a time, and numbers by hash: arithmetic over arrays, no Python code a word.

A word's hash is the difference of two prefix sums, times the inverse of where it began. Two words whose 64-bit hashes
agree would count as one; nothing depends on it but a word's weight.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_PIECE = 1 << 17
"""Bytes hashed at a time, so that the sums stay in the processor's cache. Of a longer word only so much is hashed."""
_MULTIPLIER = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class _Tables:
    values: NDArray[np.uint64]
    """A random number for each byte."""
    powers: NDArray[np.uint64]
    inverses: NDArray[np.uint64]
    """powers[n] * inverses[n] == 1, modulo 2**64."""


@cache
def _tables() -> _Tables:
    import numpy as np

    draw = random.Random(0x1EAD)
    return _Tables(
        np.array([draw.getrandbits(64) | 1 for _ in range(256)], np.uint64),
        _powers(_MULTIPLIER),
        _powers(pow(_MULTIPLIER, -1, 1 << 64)),
    )


def _powers(base: int) -> NDArray[np.uint64]:
    import numpy as np

    factors = np.full(_PIECE + 1, base & _MASK, np.uint64)
    factors[0] = 1
    return np.multiply.accumulate(factors)


class NumberTable:
    """Numbers by 64-bit hash, many at a time. Open addressing: a hash that finds its slot taken looks into the next."""

    def __init__(self, bits: int) -> None:
        import numpy as np

        self._bits = bits
        self._hashes = np.zeros(1 << bits, np.uint64)
        self._numbers = np.zeros(1 << bits, np.int32)
        self._count = 0

    def _slots(self, hashes: NDArray[np.uint64]) -> NDArray[np.int64]:
        import numpy as np

        return (hashes >> np.uint64(64 - self._bits)).astype(np.int64)

    def _next(self, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        return (slots + 1) & ((1 << self._bits) - 1)

    def find(self, hashes: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Their numbers; -1 for those that are not there."""
        import numpy as np

        slots = self._slots(hashes)
        at_slot = self._hashes[slots]
        found = self._numbers[slots].astype(np.int64)
        open_ = np.flatnonzero(at_slot != hashes)
        found[open_] = -1
        open_ = open_[at_slot[open_] != 0]
        slots = slots[open_]
        while len(open_):
            slots = self._next(slots)
            at_slot, wanted = self._hashes[slots], hashes[open_]
            hit = at_slot == wanted
            found[open_[hit]] = self._numbers[slots[hit]]
            on = ~hit & (at_slot != 0)
            open_, slots = open_[on], slots[on]
        return found

    def insert(self, hashes: NDArray[np.uint64], numbers: NDArray[np.int64]) -> None:
        """Hashes that are not there, each once."""
        import numpy as np

        self._count += len(hashes)
        if self._count * 3 > len(self._hashes):
            taken = self._hashes != 0
            hashes = np.concatenate([self._hashes[taken], hashes])
            numbers = np.concatenate([self._numbers[taken], numbers])
            self._bits = max(self._bits + 1, (4 * self._count).bit_length())
            self._hashes = np.zeros(1 << self._bits, np.uint64)
            self._numbers = np.zeros(1 << self._bits, np.int32)
        slots = self._slots(hashes)
        while len(hashes):
            _, first = np.unique(slots, return_index=True)
            first = first[self._hashes[slots[first]] == 0]
            self._hashes[slots[first]] = hashes[first]
            self._numbers[slots[first]] = numbers[first]
            on = np.ones(len(hashes), bool)
            on[first] = False
            hashes, numbers, slots = hashes[on], numbers[on], self._next(slots[on])


def hashes_of(codes: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Of each word the sum of value(byte) * multiplier**place; none is 0."""
    import numpy as np

    tables = _tables()
    made = np.empty(len(starts), np.uint64)
    sums = np.zeros(_PIECE + 1, np.uint64)
    at = 0
    while at < len(starts):
        low = int(starts[at])
        stop = max(at + 1, int(np.searchsorted(ends, low + _PIECE, "right")))
        high = min(int(ends[stop - 1]), low + _PIECE)
        size = high - low
        np.multiply(tables.values[codes[low:high]], tables.powers[:size], out=sums[1 : size + 1])
        np.cumsum(sums[: size + 1], out=sums[: size + 1])
        first = starts[at:stop] - low
        last = np.minimum(ends[at:stop] - low, size)
        made[at:stop] = (sums[last] - sums[first]) * tables.inverses[first]
        sums[0] = 0
        at = stop
    made[made == 0] = 1
    return made
