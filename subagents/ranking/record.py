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

import struct
import sys
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from subagents.ranking.lexing import stretches
from subagents.ranking.vocabulary import Vocabulary, Words
from subagents.ranking.words import key_of, keys

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from subagents.codebase.types import Symbol
    from subagents.index.extras import FileFacts
    from subagents.index.rows import SymbolRow

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
_ASCII = bytes(range(128))
_NEWLINE = 10
_WIDE_LINES = 65_000
_SYMBOLS_LIMIT = 50_000
_FILES_AT_ONCE = 64
"""As many as six bits can tell apart."""
_LINE_SHIFT, _TERM_SHIFT, _FILE_SHIFT = 2, 26, 58
_FIELDS, _LINES = 3, (1 << 24) - 1
"""More lines than text of any size that is read can have."""


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


@dataclass(frozen=True, slots=True)
class Source:
    """One file to be taken apart."""

    text: str
    language: str | None
    symbols: Sequence[SymbolRow]


def extract(files: Sequence[FileFacts]) -> list[bytes]:
    """The records of some files. Runs in the index's worker processes."""
    return encode_many([Source(facts.text, facts.language, facts.rows) for facts in files])


def encode(text: str, language: str | None, symbols: Sequence[Symbol]) -> bytes:
    """The record of one file."""
    rows: list[SymbolRow] = [(s.name, s.qualified, s.kind, s.start, s.end, -1, "", "", ()) for s in symbols]
    return encode_many([Source(text, language, rows)])[0]


def encode_many(sources: Sequence[Source]) -> list[bytes]:
    """A record depends on its own source alone; taken together they cost less, since each step is one for all."""
    made: list[bytes] = []
    for start in range(0, len(sources), _FILES_AT_ONCE):
        made += _encode(sources[start : start + _FILES_AT_ONCE])
    return made


@cache
def _vocabulary() -> Vocabulary:
    return Vocabulary()


def _encode(sources: Sequence[Source]) -> list[bytes]:
    import numpy as np

    texts = [_plain(source.text) for source in sources]
    symbols = [source.symbols[:_SYMBOLS_LIMIT] for source in sources]
    _vocabulary().prepare(row[0] for rows in symbols for row in rows)
    names = [_names(rows) for rows in symbols]
    line_counts = np.array([text.count(b"\n") + 1 for text in texts])
    first_lines = np.cumsum(line_counts) - line_counts
    data = b"\n".join(texts)
    sizes = np.array([len(text) + 1 for text in texts])
    begins = np.cumsum(sizes) - sizes

    words = _vocabulary().words(data)
    newlines = np.flatnonzero(np.frombuffer(data, np.uint8) == _NEWLINE)
    line = _stretch_of(words.starts, np.append(newlines, len(data)))
    word_edges = np.append(np.searchsorted(words.starts, begins), len(words.starts))
    file = np.repeat(np.arange(len(sources)), np.diff(word_edges))
    field = _fields(texts, sources, begins, words.starts)
    repeats, terms = _terms_of(words)
    where = (file << _FILE_SHIFT | (line - first_lines[file] + 1) << _LINE_SHIFT | field).astype(np.uint64)
    lengths = np.bincount(np.repeat(file * 4 + field, repeats), minlength=4 * len(sources)).reshape(-1, 4)
    found = np.concatenate([np.repeat(where, repeats) | terms << np.uint64(_TERM_SHIFT), _of_names(names)])
    table = _count(found, len(sources))

    words_before = np.cumsum(np.bincount(line, minlength=int(line_counts.sum())))
    made: list[bytes] = []
    for place, named in enumerate(names):
        low, high = table.edges[place], table.edges[place + 1]
        first, last = table.pairs_before[low], table.pairs_before[high]
        word_count, line_count = int(word_edges[place + 1] - word_edges[place]), int(line_counts[place])
        line_type = "<u4" if line_count > _WIDE_LINES else "<u2"
        word_type = "<u4" if word_count > _WIDE_LINES else "<u2"
        words_up_to = np.zeros(line_count + 1, word_type)
        words_up_to[1:] = words_before[first_lines[place] :][:line_count] - word_edges[place]
        head = _HEADER.pack(
            high - low, last - first, line_count, word_count, *lengths[place, :3].tolist(), named.length,
            len(named.starts), len(named.keys),
        )  # fmt: skip
        made.append(b"".join([
            head,
            table.terms[low:high].tobytes(),
            (table.pairs_before[low + 1 : high + 1] - first).astype("<u4").tobytes(),
            _numbers(named.starts),
            _numbers(named.finishes),
            _numbers(named.ends),
            _numbers(named.keys),
            table.lines[first:last].astype(line_type).tobytes(),
            words_up_to.tobytes(),
            table.counts[low:high].tobytes(),
            bytes(named.kinds),
        ]))  # fmt: skip
    return made


def _numbers(some: list[int]) -> bytes:
    made = array("I", some)  # quicker than numpy where there are few
    if sys.byteorder == "big":
        made.byteswap()
    return made.tobytes()


def _plain(text: str) -> bytes:
    """UTF-8 in which every byte beyond ASCII is part of a word."""
    data = text.encode("utf-8", "replace")
    if len(data) == len(text):
        return data
    for character in set(data.translate(None, _ASCII).decode()):
        if not character.isalnum():
            data = data.replace(character.encode(), b" ")  # quicker than str.translate, which is slow beyond ASCII
    return data


def _fields(
    texts: Sequence[bytes], sources: Sequence[Source], begins: NDArray[np.int64], starts: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The field each word stands in."""
    import numpy as np

    found = [stretches(text, source.language) for text, source in zip(texts, sources, strict=True)]
    ends = np.concatenate([own + begin for (own, _), begin in zip(found, begins, strict=True)])
    fields = np.concatenate([own for _, own in found])
    return fields[_stretch_of(starts, ends)].astype(np.int64)


def _stretch_of(starts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each start the place of the first end beyond it; there are many more starts than ends, both in order."""
    import numpy as np

    before = np.searchsorted(starts, ends)
    return np.repeat(np.arange(len(ends)), np.diff(before, prepend=0))


def _terms_of(words: Words) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """How many terms each word has, and the terms, one after another."""
    import numpy as np

    size_of, begin_of, all_terms = _vocabulary().terms()
    repeats = size_of[words.numbers].astype(np.int64)
    before = np.cumsum(repeats) - repeats
    at = np.arange(int(repeats.sum())) + np.repeat(begin_of[words.numbers] - before, repeats)
    return repeats, all_terms[at].astype(np.uint64)


def _of_names(names: Sequence[_Names]) -> NDArray[np.uint64]:
    import numpy as np

    keys_ = np.concatenate([np.array(named.terms, np.uint64) for named in names])
    file = np.repeat(np.arange(len(names), dtype=np.uint64), [len(named.terms) for named in names])
    return file << np.uint64(_FILE_SHIFT) | keys_ << np.uint64(_TERM_SHIFT) | np.uint64(NAME_FIELD)


@dataclass(frozen=True, slots=True)
class _Table:
    """The distinct terms of some files, sorted by file and term."""

    edges: list[int]
    """Where each file's terms begin, and the end of the last."""
    terms: NDArray[np.uint32]
    counts: NDArray[np.uint8]
    pairs_before: NDArray[np.int64]
    """How many of `lines` belong to earlier terms; one entry more than there are terms."""
    lines: NDArray[np.uint32]


def _count(found: NDArray[np.uint64], files: int) -> _Table:
    """`found` holds one number an occurrence, which is file, term, line (0: none) and field, from the highest bits."""
    import numpy as np

    found.sort()
    on_line = found >> np.uint64(_LINE_SHIFT)
    in_term = found >> np.uint64(_TERM_SHIFT)
    is_new = np.ones(len(found), bool)
    np.not_equal(in_term[1:], in_term[:-1], out=is_new[1:])
    term = np.cumsum(is_new) - 1
    unique = in_term[is_new]
    field = (found & np.uint64(_FIELDS)).astype(np.int64)
    counts = np.bincount(term << 2 | field, minlength=4 * len(unique)).reshape(-1, 4)
    is_pair = on_line & np.uint64(_LINES) != 0
    is_pair[1:] &= on_line[1:] != on_line[:-1]
    pairs_before = np.zeros(len(unique) + 1, np.int64)
    np.cumsum(np.bincount(term[is_pair], minlength=len(unique)), out=pairs_before[1:])
    return _Table(
        edges=np.searchsorted(unique >> np.uint64(32), np.arange(files + 1)).tolist(),
        terms=unique.astype("<u4"),
        counts=np.minimum(counts, 255).astype(np.uint8),
        pairs_before=pairs_before,
        lines=(on_line[is_pair] & np.uint64(_LINES)).astype(np.uint32),
    )


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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Names:
    terms: list[int]
    """Of the names of all definitions, with repetitions, and the exact names, each once."""
    length: int
    starts: list[int]
    finishes: list[int]
    kinds: list[int]
    ends: list[int]
    keys: list[int]


def _names(rows: Sequence[SymbolRow]) -> _Names:
    terms: list[int] = []
    exact: set[str] = set()
    ends: list[int] = []
    name_keys: list[int] = []
    before, owner, owner_keys = "", "", frozenset[int]()
    for row in rows:
        name, qualified = row[0], row[1]
        own = keys(name)
        terms += own
        exact.add(name)
        if name == qualified:
            name_keys += dict.fromkeys(own)
            ends.append(len(name_keys))
            continue
        above, _, last = qualified.rpartition(".")
        if above:
            if above != before:
                before, owner = above, above.rpartition(".")[2]
                owner_keys = frozenset(keys(owner))
            exact.add(f"{owner}.{last}")
            name_keys += owner_keys.union(own if last == name else keys(last))
        else:
            exact.add(last)
            name_keys += dict.fromkeys(own if last == name else keys(last))
        ends.append(len(name_keys))
    return _Names(
        terms=[*terms, *map(exact_name, exact)],
        length=len(terms),
        starts=[row[3] for row in rows],
        finishes=[row[4] for row in rows],
        kinds=[_KINDS.get(row[2], SMALL) for row in rows],
        ends=ends,
        keys=name_keys,
    )
