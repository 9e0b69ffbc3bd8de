"""Tells texts that hold no secret, many times quicker than redacting them: most files of a repository do not.

Every pattern of a secret begins at a keyword. Four bytes of each keyword are looked for at all places of a text at
once, in two steps of array arithmetic: pairs of bytes select a few places, the pairs after them fewer still. Only there
the patterns are tried, as redaction would. What looks like a secret in any way is left to redaction to decide; what
this calls clean, redaction would give back unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Final

from scratch.secret_patterns import CARD, PATTERNS, Pattern

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MARK: Final = "[redacted:"
"""Of an earlier redaction: text around it is judged apart, which is left to redaction."""
_OFTEN: Final = dict(zip(b"etsaronildcumphfg_-.:/byw", (
    72, 54, 45, 41, 41, 40, 39, 38, 28, 25, 24, 20, 18, 16, 13, 13, 13, 12, 40, 11, 9, 9, 9, 8, 6,
), strict=True))  # fmt: skip
"""How many of a thousand bytes of source code, in lower case; others are rarer or no part of keywords."""
_ELSE: Final = 3
_BETWEEN: Final = b"\0\0\0\0"
_AT_ONCE: Final = 1 << 19
"""Bytes, roughly: more arrays than the processor's cache holds would be slower."""


@dataclass(frozen=True, slots=True)
class _Keyword:
    text: bytes
    """In lower case."""
    anchor: int
    """The place in it of the four bytes that are looked for."""
    patterns: tuple[Pattern, ...]


_CARD: Final = (_Keyword(b"", 0, (CARD,)),)
"""What else is found starts with four digits."""


@dataclass(frozen=True, slots=True)
class _Tables:
    first: NDArray[np.bool_]
    """By pair of bytes, as a little-endian number: whether some keyword's four bytes begin so."""
    fours: NDArray[np.uint32]
    """All fours of bytes to be looked for, as numbers, sorted."""
    keywords: dict[bytes, tuple[_Keyword, ...]]
    """By the four bytes that are looked for, or three where the keyword has no more."""
    short: tuple[str, ...]
    """Keywords of two characters, which are looked for by themselves."""


def are_clean(texts: Sequence[str], datas: Sequence[bytes]) -> list[bool]:
    """For each text whether redaction would surely change nothing. `datas` are the texts in UTF-8."""
    clean: list[bool] = []
    at = 0
    while at < len(texts):
        size = 1
        room = _AT_ONCE - len(datas[at])
        while at + size < len(texts) and room > 0:
            room -= len(datas[at + size])
            size += 1
        clean += _are_clean(texts[at : at + size], datas[at : at + size])
        at += size
    return clean


def _are_clean(texts: Sequence[str], datas: Sequence[bytes]) -> list[bool]:
    import numpy as np

    tables = _tables()
    low = _BETWEEN.join([*datas, b""]).lower()
    clean = [_MARK not in text for text in texts]
    for word in tables.short:
        if word.lower().encode() in low:
            clean = [one and word not in text for one, text in zip(clean, texts, strict=True)]
    sizes = np.fromiter(map(len, datas), np.int64, len(datas)) + len(_BETWEEN)
    begins = np.cumsum(sizes) - sizes
    places = _places(low, tables)
    owners = np.searchsorted(begins, places, "right") - 1
    own_places = places - begins[owners]
    if any(len(text) != len(data) for text, data in zip(texts, datas, strict=True)):
        continued = np.flatnonzero((np.frombuffer(low, np.uint8) & 0xC0) == 0x80)  # bytes that begin no character
        own_places -= np.searchsorted(continued, places) - np.searchsorted(continued, begins)[owners]
    for place, owner, own in zip(places.tolist(), owners.tolist(), own_places.tolist(), strict=True):
        if not clean[owner]:
            continue
        four = low[place : place + 4]
        for keyword in tables.keywords.get(four) or tables.keywords.get(four[:3], _CARD):
            start = own - keyword.anchor
            if start < 0 or not low.startswith(keyword.text, place - keyword.anchor):
                continue
            if any(_matches(pattern, texts[owner], start) for pattern in keyword.patterns):
                clean[owner] = False
                break
    return clean


def _places(low: bytes, tables: _Tables) -> NDArray[np.int64]:
    """Where the four bytes of some keyword stand, in no order."""
    import numpy as np

    found: list[NDArray[np.int64]] = []
    for start in (0, 1):
        pairs = np.frombuffer(low, "<u2", (len(low) - start) // 2, start)
        at = np.flatnonzero(tables.first.take(pairs[:-1]))
        fours = pairs[at] | pairs[at + 1].astype(np.uint32) << np.uint32(16)
        near = np.searchsorted(tables.fours, fours)
        near[near == len(tables.fours)] = 0
        found.append(2 * at[tables.fours[near] == fours] + start)
    return np.concatenate(found)


def _matches(pattern: Pattern, text: str, at: int) -> bool:
    if at < pattern.back:
        return False
    match = pattern.regex.match(text, at - pattern.back)
    return match is not None and pattern.accept(match["s" if "s" in pattern.regex.groupindex else 0])


@cache
def _tables() -> _Tables:
    import numpy as np

    patterns: dict[bytes, list[Pattern]] = {}
    for pattern in PATTERNS:
        for spelt in pattern.keywords:
            patterns.setdefault(spelt.lower().encode(), []).append(pattern)
    keywords: dict[bytes, tuple[_Keyword, ...]] = {}
    for word, own in patterns.items():
        if len(word) > 2:
            anchor = min(range(max(1, len(word) - 3)), key=partial(_often_at, word))
            some = word[anchor : anchor + 4]
            keywords[some] = (*keywords.get(some, ()), _Keyword(word, anchor, tuple(own)))
    fours = [np.array([_number(some) for some in keywords if len(some) == 4], np.uint32), _card_starts()]
    for three in [some for some in keywords if len(some) == 3]:
        fours.append(np.uint32(_number(three)) | np.arange(256, dtype=np.uint32) << np.uint32(24))
        for four in [some for some in keywords if len(some) == 4 and some.startswith(three)]:
            keywords[four] += keywords[three]
    all_fours = np.unique(np.concatenate(fours))
    first = np.zeros(1 << 16, bool)
    first[all_fours & np.uint32(0xFFFF)] = True
    short = tuple(spelt for pattern in PATTERNS for spelt in pattern.keywords if len(spelt) < 3)
    return _Tables(first, all_fours, keywords, short)


def _card_starts() -> NDArray[np.uint32]:
    """The four digits a card number may begin with."""
    import numpy as np

    digits = np.arange(ord("0"), ord("9") + 1, dtype=np.uint32)
    made = digits[2:7]
    for place in (8, 16, 24):
        made = (made[:, None] | digits << np.uint32(place)).ravel()
    return made


def _often_at(word: bytes, at: int) -> float:
    """How many places have the first two of four bytes of a word, roughly; of the same, those with more in common."""
    one, two, *others = (_OFTEN.get(byte, _ELSE) for byte in word[at : at + 4])
    return one * two + sum(others) / 1000


def _number(some: bytes) -> int:
    return int.from_bytes(some, "little")
