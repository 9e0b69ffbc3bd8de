"""Text to numbers of words, many at a time: what makes reading every word of a repository affordable.

A word of source text recurs a hundred times. Here each occurrence costs a few steps of array arithmetic: where words
begin and end is read off a table of bytes, and a table of hashes gives a word's number. Only when a word is met for the
first time in a process is it taken apart into terms.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from subagents.ranking.hashing import NumberTable, hashes_of
from subagents.ranking.splitting import Splitter
from subagents.ranking.words import remember, unknown_words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_FIRST_BITS = 17
_WORDS_LIMIT = 300_000
"""When more are known, all are forgotten."""


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a text, in order: where each begins and ends (bytes), and its number in the vocabulary."""

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    numbers: NDArray[np.int64]


@cache
def _is_word() -> NDArray[np.uint8]:
    import numpy as np

    return np.array([chr(byte).isalnum() or byte == 95 or byte >= 128 for byte in range(256)], np.uint8)


class Vocabulary:
    """The words one process has met, and the terms of each. Numbers hold until the next call of `words`."""

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self._numbers = NumberTable(_FIRST_BITS)
        self._splitter = Splitter()
        self._sizes = array("B")
        self._begins = array("I")
        self._keys = array("I")

    def words(self, data: bytes) -> Words:
        """The words of UTF-8 text: runs of ASCII letters, digits, low lines, and of bytes of any other characters."""
        import numpy as np

        if len(self._sizes) > _WORDS_LIMIT:
            self._forget()
        codes = np.frombuffer(data, np.uint8)
        inside = np.zeros(len(codes) + 2, np.uint8)
        inside[1:-1] = _is_word()[codes]
        edges = np.flatnonzero(inside[1:] != inside[:-1])
        starts, ends = edges[0::2], edges[1::2]
        hashes = hashes_of(codes, starts, ends)
        numbers = self._numbers.find(hashes)
        unknown = np.flatnonzero(numbers < 0)
        if len(unknown):
            new, first = np.unique(hashes[unknown], return_index=True)
            self._numbers.insert(new, np.arange(len(self._sizes), len(self._sizes) + len(new)))
            self._learn([data[starts[place] : ends[place]] for place in unknown[first].tolist()])
            numbers[unknown] = self._numbers.find(hashes[unknown])
        return Words(starts, ends, numbers)

    def prepare(self, names: Iterable[str]) -> None:
        """Have the terms of these names remembered by `words.keys`, where they are new to it."""
        new = [name for name in unknown_words(names) if name.isascii() and name.isidentifier()]
        sizes, keys = self._splitter.terms([name.encode() for name in new])
        all_keys, end = keys.tolist(), 0
        for name, size in zip(new, sizes.tolist(), strict=True):
            remember(name, tuple(all_keys[end : end + size]))
            end += size

    def _learn(self, words: list[bytes]) -> None:
        import numpy as np

        sizes, keys = self._splitter.terms(words)
        begins = len(self._keys) + np.cumsum(sizes) - sizes
        self._sizes.frombytes(sizes.astype(np.uint8).tobytes())
        self._begins.frombytes(begins.astype(np.uint32).tobytes())
        self._keys.frombytes(keys.tobytes())

    def terms(self) -> tuple[NDArray[np.uint8], NDArray[np.uint32], NDArray[np.uint32]]:
        """(how many terms each word has, where they begin, the terms). To be let go before the next call of `words`."""
        import numpy as np

        return (
            np.frombuffer(self._sizes, np.uint8),
            np.frombuffer(self._begins, np.uint32),
            np.frombuffer(self._keys, np.uint32),
        )
