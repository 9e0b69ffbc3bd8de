"""Finding the keywords of all secrets in one pass, and the digits that may begin a card number.

A regular expression of a hundred keywords costs about 40 ns a character: it stops at each letter that one of them might
have. This asks all of them at once, with integers as long as the text. Keywords are dealt out to buckets. A table turns
each character into a byte whose bits say for which buckets it may be the first of four characters in a row; three more
tables do so for the second, third and fourth. The four results, read as integers, shifted by their places and joined by
`&`, leave a byte that is not zero wherever four characters may belong to one bucket; there a dictionary of the four
says which keyword it may be. Prior work: Shift-And (Baeza-Yates and Gonnet); Teddy in Hyperscan, with vectors.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from scratch.secret_patterns import PATTERNS, Pattern

_WINDOW = 4
_SHORT = 3
"""Keywords of three characters have a bucket of their own, in which the fourth may be any."""
_BUCKETS = 6
_SHORT_BIT, _CARD_BIT = 1 << _BUCKETS, 1 << _BUCKETS + 1
_CARD_STARTS, _DIGITS = b"23456", b"0123456789"
_CHUNK = 1 << 16
"""Characters at a time: integers that stay in the processor's cache."""
_PERMILLE = (
    ("e", 71), ("t", 50), ("s", 40), ("r", 38), ("a", 37), ("n", 35), ("i", 34), ("o", 32), ("l", 28), ("d", 22),
    ("c", 20), ("_u", 18), ("f", 17), ("pm", 15), (")(h", 13), (',."g/', 10), ("b:=y", 8), ("v;*kw", 6), ("-ExTSR", 5),
    ("0L{}AINC1O>DM[]U#2PF", 3), ("qz`j&'4BG3!<65\\H$W%+K897V|YXQJ?Z@~^", 1),
)  # fmt: skip
"""How often characters stand in source code (Python, C, Go, Rust); only speed depends on it."""
_END = "\n" * (_WINDOW - _SHORT)
"""What makes the last three characters four."""
_FREQUENCY = {character: permille / 1000 for characters, permille in _PERMILLE for character in characters}
_ANY = bytes(1 if byte else 0 for byte in range(256))


@dataclass(frozen=True, slots=True)
class Keyword:
    """A keyword and the patterns to try where it begins. Found by the characters from `anchor` on."""

    text: str
    any_case: bool
    patterns: tuple[Pattern, ...]
    anchor: int

    def starts_at(self, text: str, at: int) -> bool:
        if at < 0:
            return False
        found = text[at : at + len(self.text)]
        return (found.lower() if self.any_case else found) == self.text


@dataclass(frozen=True, slots=True)
class _Scan:
    tables: tuple[bytes, ...]
    """Byte of a character -> buckets of which it may be the first, second, third, fourth."""
    keywords: dict[str, tuple[Keyword, ...]]
    """By the characters at their anchors, four or three, in every spelling."""


def keywords_in(text: str) -> Iterator[tuple[int, Keyword | None]]:
    """Where each keyword begins; with None, where a card number may. Not in order."""
    scan = _scan()
    first, second, third, fourth = scan.tables
    keywords = scan.keywords.get
    for start in range(0, len(text), _CHUNK):
        # a byte a character: what is in no keyword becomes any byte, for what is found is looked up in the text itself
        chunk = (text[start : start + _CHUNK + _WINDOW - 1] + _END).encode("latin-1", "replace")
        found = (
            int.from_bytes(chunk.translate(first), "little")
            & int.from_bytes(chunk.translate(second), "little") >> 8
            & int.from_bytes(chunk.translate(third), "little") >> 16
            & int.from_bytes(chunk.translate(fourth), "little") >> 24
        )
        if not found:
            continue
        buckets = found.to_bytes(len(chunk), "little")
        places = buckets.translate(_ANY)
        at = places.find(1)
        while at >= 0:
            place = start + at
            if buckets[at] & _CARD_BIT:
                yield place, None
            for keyword in keywords(text[place : place + _WINDOW], ()):
                if keyword.starts_at(text, place - keyword.anchor):
                    yield place - keyword.anchor, keyword
            if buckets[at] & _SHORT_BIT:
                for keyword in keywords(text[place : place + _SHORT], ()):
                    if keyword.starts_at(text, place - keyword.anchor):
                        yield place - keyword.anchor, keyword
            at = places.find(1, at + 1)


@cache
def _scan() -> _Scan:
    """Made when first needed: starting the program must not pay for it."""
    tables = [bytearray(256) for _ in range(_WINDOW)]
    for table, characters in zip(tables, (_CARD_STARTS, _DIGITS, _DIGITS, _DIGITS), strict=True):
        for code in characters:
            table[code] |= _CARD_BIT
    tables[_SHORT][:] = bytes(byte | _SHORT_BIT for byte in tables[_SHORT])
    grams: dict[str, list[Keyword]] = {}
    for keyword, bucket in _dealt():
        spellings = _spellings(keyword, keyword.anchor)
        for table, spelling in zip(tables, spellings, strict=False):
            for code in spelling.encode():
                table[code] |= bucket
        for gram in itertools.product(*spellings):
            grams.setdefault("".join(gram), []).append(keyword)
    return _Scan(tuple(map(bytes, tables)), {gram: tuple(found) for gram, found in grams.items()})


def _dealt() -> Iterator[tuple[Keyword, int]]:
    """Each keyword with an anchor and a bucket, so that few other characters pass for one of a bucket.

    What finds most by itself comes first; each goes where it adds least.
    """
    own: dict[tuple[str, bool], list[Pattern]] = {}
    for pattern in PATTERNS:
        for word in pattern.keywords:
            own.setdefault((word, pattern.any_case), []).append(pattern)
    choices = [sorted(_anchored(word, any_case, tuple(found))) for (word, any_case), found in own.items()]
    sets: list[list[set[str]]] = [[set() for _ in range(_WINDOW)] for _ in range(_BUCKETS)]
    sums = [[0.0] * _WINDOW for _ in range(_BUCKETS)]
    for options in sorted(choices, key=lambda options: options[0].share, reverse=True):
        if len(options[0].spellings) == _SHORT:
            yield options[0].keyword, _SHORT_BIT
            continue
        best: tuple[float, int, _Anchored, list[float]] | None = None
        for option in options[:2]:
            for bucket in range(_BUCKETS):
                after = [
                    total + sum(_FREQUENCY.get(c, 0.001) for c in spelling if c not in has)
                    for total, spelling, has in zip(sums[bucket], option.spellings, sets[bucket], strict=True)
                ]
                added = math.prod(after) - math.prod(sums[bucket])
                if best is None or added < best[0]:
                    best = (added, bucket, option, after)
        assert best is not None
        _, bucket, option, sums[bucket] = best
        for has, spelling in zip(sets[bucket], option.spellings, strict=True):
            has.update(spelling)
        yield option.keyword, 1 << bucket


@dataclass(frozen=True, slots=True)
class _Anchored:
    """One of the places by which a keyword may be found, and how often it is in vain."""

    share: float
    keyword: Keyword
    spellings: tuple[str, ...]

    def __lt__(self, other: _Anchored) -> bool:
        return self.share < other.share


def _anchored(word: str, any_case: bool, patterns: tuple[Pattern, ...]) -> Iterator[_Anchored]:
    for anchor in range(max(1, len(word) - _WINDOW + 1)):
        keyword = Keyword(word, any_case, patterns, anchor)
        spellings = _spellings(keyword, anchor)
        share = math.prod(sum(_FREQUENCY.get(c, 0.001) for c in one) for one in spellings)
        yield _Anchored(share, keyword, spellings)


def _spellings(keyword: Keyword, anchor: int) -> tuple[str, ...]:
    window = keyword.text[anchor : anchor + _WINDOW]
    return tuple(c + c.upper() if keyword.any_case and c.isalpha() else c for c in window)
