"""From text to terms: how identifiers and prose become what is counted and compared. No I/O, no heavy imports.

A *term* is a 32-bit key. One word of source text gives the terms of its parts (`getHTTPResponse` -> get, http,
response; folded to stems) and, when it has several parts, one more for the word as a whole in lower case. Definitions
also get a key of the exact name, case included, in a name space of its own. Text in scripts without spaces gives
pairs of characters. Keys instead of strings keep the tables small; two words that share one by chance cost a little
noise in one file's score, nothing else.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Sequence

_STOP_WORDS = """
    a an and any are as at be been but by can could did do does for from get had has have he her here his how i if in
    into is it its just may me might more most my no not now of on one only or other our out over own so some such than
    that the their them then there these they this those through to too under up use used uses using very was we were
    what when where which while who why will with would you your also should instead because after before same both
    each see new make makes made like need needs e g ie eg etc vs via per true false none null return def class self
    import if else elif end for while try except raise
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
"""Words of questions and of nearly every source file: they tell no file from another."""

WORD = re.compile(r"[^\W\d]\w*")
"""What counts as one word, in code and in prose."""

_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|[^\W\d_A-Za-z]+")
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")
_SUFFIXES = (
    ("ization", "ize"), ("ational", "ate"), ("ation", "at"), ("ition", "it"), ("ment", ""), ("ness", ""), ("able", ""),
    ("ible", ""), ("ally", "al"), ("ly", ""), ("er", ""), ("or", ""), ("ion", ""), ("ive", ""), ("al", ""),
)  # fmt: skip
_KNOWN_LIMIT = 200_000

_known: dict[str, tuple[int, ...]] = {}
_known_pieces: dict[str, tuple[int, ...]] = {}


def key_of(text: str) -> int:
    """The key of a term. Exact names are written `#name`, whole words `=word`, stems as they are."""
    return zlib.crc32(text.encode("utf-8", "surrogatepass"))


def parts(word: str) -> list[str]:
    """`parse_HTTPHeader2` -> parse, http, header, 2."""
    return [part.lower() for part in _PART.findall(word)]


def stem(word: str) -> str:
    """A word without its English endings: `writer`, `writes`, `writing` and `written by` their common beginning."""
    if len(word) <= 3:
        return word
    word = _singular(word)
    for ending in ("ingly", "edly", "ing", "ed"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: len(word) - len(ending)]
            break
    if len(word) > 4:
        for suffix, ending in _SUFFIXES:
            if word.endswith(suffix) and len(word) - len(suffix) >= 4:
                word = word[: len(word) - len(suffix)] + ending
                break
    if len(word) > 3 and word[-1] == "e":
        word = word[:-1]
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz":
        word = word[:-1]
    return word


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "ches", "shes")):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def spell(word: str) -> list[str]:
    """The terms of one word, spelt out; see `key_of`."""
    pieces = parts(word)
    spelt = [term for piece in pieces for term in _terms_of(piece)]
    return [*spelt, _whole(word)] if _has_whole(word, pieces) else spelt


def keys(word: str) -> tuple[int, ...]:
    """The terms of one word, as keys. Remembered, since few words make up most of any source text."""
    known = _known.get(word)
    if known is None:
        known = keys_afresh(word)
        remember(word, known)
    return known


def unknown_words(words: Iterable[str]) -> set[str]:
    """Those whose terms are not remembered."""
    return set(words).difference(_known)


def remember(word: str, own: tuple[int, ...]) -> None:
    """`own` are the terms of the word, told elsewhere."""
    if len(_known) >= _KNOWN_LIMIT:
        _known.clear()
    _known[word] = own


def keys_afresh(word: str) -> tuple[int, ...]:
    """The same for a word that is not worth remembering here. Its parts are: there are far fewer of them."""
    pieces = _PART.findall(word)
    made = [key for piece in pieces for key in keys_of_part(piece.lower())]
    if _has_whole(word, pieces):
        made.append(key_of(_whole(word)))
    return tuple(made)


def keys_of_part(piece: str) -> tuple[int, ...]:
    """The terms of one part, in lower case."""
    own = _known_pieces.get(piece)
    if own is None:
        if len(_known_pieces) >= _KNOWN_LIMIT:
            _known_pieces.clear()
        own = _known_pieces[piece] = tuple(key_of(term) for term in _terms_of(piece))
    return own


def _terms_of(piece: str) -> list[str]:
    """The terms of one part, in lower case."""
    if _UNSPACED.match(piece):
        return [piece[at : at + 2] for at in range(max(1, len(piece) - 1))]
    return [stem(piece)] if len(piece) > 1 and piece not in STOP_WORDS else []


def _has_whole(word: str, pieces: Sequence[str]) -> bool:
    return len(pieces) > 1 and len(word) > 3


def _whole(word: str) -> str:
    return "=" + word.lower().strip("_")


def words_of(text: str) -> list[str]:
    return WORD.findall(text)


def all_keys(words: Iterable[str]) -> list[int]:
    return [key for word in words for key in keys(word)]
