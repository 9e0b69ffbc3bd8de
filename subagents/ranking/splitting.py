"""The terms of many new words at once, by the rules of `words.keys`.

A repository has some hundred thousand distinct words, which are put together from a few ten thousand parts. Where the
parts of ASCII words begin and end follows from the kinds of two or three bytes in a row, so arrays tell it for all
words in a few steps; Python sees each part once a process, and of each word only its key as a whole.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Final
from zlib import crc32

from subagents.ranking.hashing import NumberTable, hashes_of
from subagents.ranking.words import keys_afresh, keys_of_part

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_DIGITS: Final = b"0123456789"
_BETWEEN, _UPPER, _LOWER, _DIGIT = range(4)
_LONG: Final = 200
"""Bytes. Longer words are rare, and have more terms than are kept."""
_TERMS_KEPT: Final = 255
_FIRST_BITS: Final = 15
_WHOLE: Final = crc32(b"=")
_NO_TERM: Final = -1


@cache
def _kinds() -> NDArray[np.uint8]:
    import numpy as np

    made = np.zeros(256, np.uint8)
    made[ord("A") : ord("Z") + 1] = _UPPER
    made[ord("a") : ord("z") + 1] = _LOWER
    made[ord("0") : ord("9") + 1] = _DIGIT
    return made


class Splitter:
    """Remembers the parts it has met."""

    def __init__(self) -> None:
        self._numbers = NumberTable(_FIRST_BITS)
        self._keys = array("q")
        """The term of each part, or _NO_TERM."""

    def terms(self, words: Sequence[bytes]) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
        """How many terms each word has, and the terms of all, one after another. A word is one of UTF-8 text."""
        import numpy as np

        words = [word.lstrip(_DIGITS) for word in words]
        plain = [at for at, word in enumerate(words) if word.isascii() and len(word) <= _LONG]
        if len(plain) == len(words):
            return self._of_plain(words)
        own = np.full(len(words), -1, np.int64)
        own[plain] = np.arange(len(plain))
        sizes, keys = self._of_plain([words[at] for at in plain])
        ends = np.cumsum(sizes)
        several = [
            keys[ends[at] - sizes[at] : ends[at]]
            if at >= 0
            else np.array(keys_afresh(word.decode("utf-8", "replace"))[:_TERMS_KEPT], np.uint32)
            for word, at in zip(words, own.tolist(), strict=True)
        ]
        return np.array([len(one) for one in several], np.int64), np.concatenate(several)

    def _of_plain(self, words: Sequence[bytes]) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
        import numpy as np

        if not words:
            return np.zeros(0, np.int64), np.zeros(0, np.uint32)
        data = b"_".join(words)
        low = data.lower()
        begins, ends, owner = _parts(data, words)
        parts = np.bincount(owner, minlength=len(words))
        part_keys = self._keys_of(low, begins, ends)
        has_term = part_keys != _NO_TERM
        lowered = low.split(b"_") if low.count(b"_") == len(words) - 1 else [word.lower() for word in words]
        has_whole = [size > 1 and len(word) > 3 for size, word in zip(parts.tolist(), words, strict=True)]
        whole = [crc32(word.strip(b"_"), _WHOLE) for word, has in zip(lowered, has_whole, strict=True) if has]
        # the key of a whole word comes after those of its parts: a stable sort by owner puts it there
        owners = np.concatenate([owner[has_term], np.flatnonzero(np.array(has_whole, bool))])
        keys = np.concatenate([part_keys[has_term].astype(np.uint32), np.array(whole, np.uint32)])
        return np.bincount(owners, minlength=len(words)), keys[np.argsort(owners, kind="stable")]

    def _keys_of(self, data: bytes, begins: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
        """The term of each part of this lower-case text, or _NO_TERM."""
        import numpy as np

        hashes = hashes_of(np.frombuffer(data, np.uint8), begins, ends)
        numbers = self._numbers.find(hashes)
        unknown = np.flatnonzero(numbers < 0)
        if len(unknown):
            new, first = np.unique(hashes[unknown], return_index=True)
            self._numbers.insert(new, np.arange(len(self._keys), len(self._keys) + len(new)))
            for at in unknown[first].tolist():
                self._keys.append(next(iter(keys_of_part(data[begins[at] : ends[at]].decode())), _NO_TERM))
            numbers[unknown] = self._numbers.find(hashes[unknown])
        return np.frombuffer(self._keys, np.int64)[numbers]


def _parts(data: bytes, words: Sequence[bytes]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Where each part begins and ends in the words, joined by one byte each, and the word it belongs to.

    A part ends where the kind of byte changes, but a capital belongs to the small letters after it (`HTTPServer` is
    HTTP and Server).
    """
    import numpy as np

    kind = np.zeros(len(data) + 2, np.uint8)
    kind[1:-1] = _kinds()[np.frombuffer(data, np.uint8)]
    here, before, after = kind[1:-1], kind[:-2], kind[2:]
    changes = (here != before) & ~((before == _UPPER) & (here == _LOWER))
    changes |= (here == _UPPER) & (before == _UPPER) & (after == _LOWER)
    edges = np.flatnonzero(changes)
    begins = edges[here[edges] != _BETWEEN]
    following = np.append(edges[1:], len(data))
    ends = following[here[edges] != _BETWEEN]
    word_ends = np.cumsum(np.fromiter(map(len, words), np.int64, len(words)) + 1)
    return begins, ends, np.searchsorted(word_ends, begins, "right")
