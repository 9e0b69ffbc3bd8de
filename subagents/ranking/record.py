"""What ranking keeps of one file's bytes: its terms, the fields and lines they stand in, and its definitions.

Layout of a record, little endian: the header (see `_HEADER`), then arrays one after another.

    keys        u32[terms]         sorted
    ends        u32[terms]         where each term's lines end in `lines`
    starts, finishes, name_ends    u32[symbols] each
    name_keys   u32[names]         terms of each definition's own name and of what it is nested in
    lines       u16 or u32[pairs]  the lines each term stands on, ascending, each once
    words       u16 or u32[n + 1]  words up to the end of each line: lengths of stretches of lines
    counts      u8[terms, 4]       occurrences in code, comments, strings, names of definitions; 255 is "or more"
    kinds       u8[symbols]        SMALL, CALLABLE or TYPE

The order of definitions is that of `CodeIndex.symbols`.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from subagents.ranking.lexing import spans
from subagents.ranking.words import key_of, keys

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from subagents.codebase.types import Symbol
    from subagents.index.extras import FileFacts

FIELDS = ("code", "comment", "string", "name")
CODE_FIELD, COMMENT_FIELD, STRING_FIELD, NAME_FIELD = range(4)

SMALL, CALLABLE, TYPE = range(3)
_KINDS = {
    "function": CALLABLE, "method": CALLABLE, "constructor": CALLABLE,
    "module": TYPE, "class": TYPE, "interface": TYPE, "struct": TYPE, "enum": TYPE, "trait": TYPE, "namespace": TYPE,
}  # fmt: skip
"""Other kinds are SMALL: on their own too little to be what a question is about."""

_HEADER = struct.Struct("<10I")
"""terms, pairs, lines, words, the four lengths, symbols, names."""
_MARKS_ALONE = ("\x01", "\x02", "\x03")
_MARKS_ALONE_SET = frozenset(_MARKS_ALONE)
_MARKS = tuple(f" {mark} " for mark in _MARKS_ALONE)
_TOKEN = re.compile(r"[\x01-\x03]|\w+")
_BLANKS = {code: " " for code in range(128) if not (chr(code).isalnum() or chr(code) in "_\n\x01\x02\x03")}
_DIGITS = "0123456789"
_WIDE_LINES = 65_000
_SYMBOLS_LIMIT = 50_000


@dataclass(frozen=True, slots=True)
class Record:
    """A decoded record; the arrays are views into the stored bytes."""

    line_count: int
    lengths: tuple[int, int, int, int]
    """Words in each field."""
    keys: NDArray[np.uint32]
    counts: NDArray[np.uint8]
    ends: NDArray[np.uint32]
    lines: NDArray[np.integer]
    words: NDArray[np.integer]
    starts: NDArray[np.uint32]
    finishes: NDArray[np.uint32]
    kinds: NDArray[np.uint8]
    name_ends: NDArray[np.uint32]
    name_keys: NDArray[np.uint32]


def extract(facts: FileFacts) -> bytes:
    """The record of one file. Runs in the index's worker processes."""
    return encode(facts.text, facts.language, facts.symbols)


def encode(text: str, language: str | None, symbols: Sequence[Symbol]) -> bytes:
    import numpy as np

    ids, field_of, line_of, vocabulary = _tokens(text, language)
    line_count = text.count("\n") + 1
    per_word = [keys(word.lstrip(_DIGITS)) for word in vocabulary]
    word_sizes = np.fromiter(map(len, per_word), np.int64, len(per_word))
    flat = np.fromiter(chain.from_iterable(per_word), np.uint32, int(word_sizes.sum()))

    named = _names(symbols)
    name_flat = np.fromiter(named.counts.keys(), np.uint32, len(named.counts))
    unique, place = np.unique(np.concatenate([flat, name_flat]), return_inverse=True)
    place = place.reshape(-1)
    flat_place, name_place = place[: len(flat)], place[len(flat) :]
    terms = len(unique)

    begin = np.concatenate([[0], np.cumsum(word_sizes)[:-1]])
    repeats = word_sizes[ids]
    total = int(repeats.sum())
    within = np.arange(total) - np.repeat(np.cumsum(repeats) - repeats, repeats)
    term_of = flat_place[np.repeat(begin[ids], repeats) + within]
    counts = np.zeros((terms, 4), np.int64)
    counts[:, :3] = np.bincount(term_of * 3 + np.repeat(field_of, repeats), minlength=terms * 3).reshape(terms, 3)
    counts[name_place, NAME_FIELD] = np.fromiter(named.counts.values(), np.int64, len(named.counts))
    lengths = [int(n) for n in np.bincount(np.repeat(field_of, repeats), minlength=3)[:3]]
    pairs = np.sort(term_of.astype(np.int64) * (line_count + 2) + np.repeat(line_of, repeats))
    pairs = pairs[np.diff(pairs, prepend=-1) != 0]
    pair_term, pair_line = np.divmod(pairs, line_count + 2)
    ends = np.cumsum(np.bincount(pair_term, minlength=terms))
    line_type = np.uint32 if line_count > _WIDE_LINES else np.uint16
    words = np.cumsum(np.bincount(line_of, minlength=line_count + 1))
    word_type = np.uint32 if len(ids) > _WIDE_LINES else np.uint16
    head = _HEADER.pack(
        terms, len(pairs), line_count, len(ids), *lengths, named.length, len(named.starts), len(named.keys)
    )  # fmt: skip
    return b"".join([
        head,
        unique.astype("<u4").tobytes(),
        ends.astype("<u4").tobytes(),
        np.array(named.starts, "<u4").tobytes(),
        np.array(named.finishes, "<u4").tobytes(),
        np.array(named.ends, "<u4").tobytes(),
        np.array(named.keys, "<u4").tobytes(),
        pair_line.astype(line_type).tobytes(),
        words.astype(word_type).tobytes(),
        np.minimum(counts, 255).astype(np.uint8).tobytes(),
        bytes(named.kinds),
    ])  # fmt: skip


def _tokens(
    text: str, language: str | None
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], list[str]]:
    """(word, field, line) of each word of the text, words being places in the list that comes last.

    A mark before each stretch of another field lets one pass split all. Text of ASCII alone, nearly all source code, is
    split by `str.translate` and `str.split`, which takes a tenth of the time of a regular expression.
    """
    import numpy as np

    pieces: list[str] = []
    for start, end, field in spans(text, language):
        pieces += (_MARKS[field], text[start:end])
    marked = "".join(pieces)
    if marked.isascii():
        lines = [line.split() for line in marked.translate(_BLANKS).split("\n")]
    else:
        lines = [_TOKEN.findall(line) for line in marked.split("\n")]
    tokens = list(chain.from_iterable(lines))
    vocabulary = [*_MARKS_ALONE, *(set(tokens) - _MARKS_ALONE_SET)]
    number = {word: place for place, word in enumerate(vocabulary)}
    marks = len(_MARKS_ALONE)
    ids = np.fromiter(map(number.__getitem__, tokens), np.int32, len(tokens))
    line_of = np.repeat(
        np.arange(1, len(lines) + 1, dtype=np.int32), np.fromiter(map(len, lines), np.int64, len(lines))
    )
    at = np.flatnonzero(ids < marks)
    field_of = np.repeat(ids[at], np.diff(at, append=len(ids)))
    is_word = ids >= marks
    return ids[is_word] - marks, field_of[is_word], line_of[is_word], vocabulary[marks:]


def decode(data: bytes) -> Record:
    """The inverse of `encode`. Raises ValueError for bytes that are no record."""
    import numpy as np

    try:
        terms, pairs, line_count, word_count, *lengths, symbols, names = _HEADER.unpack_from(data)
        at = _HEADER.size

        def take(kind: str, count: int) -> NDArray[Any]:
            nonlocal at
            array = np.frombuffer(data, kind, count, at)
            at += array.nbytes
            return array

        line_type = "<u4" if line_count > _WIDE_LINES else "<u2"
        word_type = "<u4" if word_count > _WIDE_LINES else "<u2"
        made = Record(
            line_count=line_count,
            lengths=(lengths[0], lengths[1], lengths[2], lengths[3]),
            keys=take("<u4", terms),
            ends=take("<u4", terms),
            starts=take("<u4", symbols),
            finishes=take("<u4", symbols),
            name_ends=take("<u4", symbols),
            name_keys=take("<u4", names),
            lines=take(line_type, pairs),
            words=take(word_type, line_count + 1),
            counts=take("u1", terms * 4).reshape(terms, 4),
            kinds=take("u1", symbols),
        )
    except struct.error as error:
        raise ValueError(f"not a record of terms: {error}") from error
    if at != len(data):
        raise ValueError(f"not a record of terms: {len(data)} bytes instead of {at}")
    return made


def exact_name(name: str) -> int:
    """The key under which a definition's exact name, or `Owner.name`, is found."""
    return key_of("#" + name)


@dataclass(slots=True)
class _Names:
    counts: Counter[int]
    length: int
    starts: list[int]
    finishes: list[int]
    kinds: list[int]
    ends: list[int]
    keys: list[int]


def _names(symbols: Sequence[Symbol]) -> _Names:
    made = _Names(Counter(), 0, [], [], [], [], [])
    exact: set[str] = set()
    for symbol in symbols[:_SYMBOLS_LIMIT]:
        own = keys(symbol.name)
        made.counts.update(own)
        made.length += len(own)
        tail = symbol.qualified.rsplit(".", 2)[-2:]
        exact.add(symbol.name)
        exact.add(".".join(tail))
        made.starts.append(symbol.start)
        made.finishes.append(symbol.end)
        made.kinds.append(_KINDS.get(symbol.kind, SMALL))
        made.keys.extend({key for part in tail for key in keys(part)})
        made.ends.append(len(made.keys))
    made.counts.update({exact_name(name): 1 for name in exact})
    return made
