"""How what was extracted from one blob is stored: sealed bytes, each part with a checksum of its own. No I/O.

A part is read back only when it is asked for, and a flipped byte in it is noticed there and then, not before, because
checking the whole file at each start would cost more than most questions.
"""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from subagents.codebase.types import Symbol
from subagents.index.rows import ImportRow, SymbolRow

if TYPE_CHECKING:
    from subagents.index.extract import Extracted


class Damaged(Exception):
    """Stored bytes that do not match their checksum."""


def seal(data: bytes) -> bytes:
    return zlib.crc32(data).to_bytes(4, "little") + data


def unseal(data: bytes | None) -> bytes:
    if data is None or len(data) < 4 or zlib.crc32(data[4:]) != int.from_bytes(data[:4], "little"):
        raise Damaged
    return data[4:]


@lru_cache(maxsize=1 << 16)
def name_key(name: str) -> int:
    """What postings are sorted by: 32 bits of the name in lower case. Whoever finds by it compares the name again."""
    return zlib.crc32(name.lower().encode("utf-8", "replace"))


@dataclass(frozen=True, slots=True)
class BlobRecord:
    """One row of table `blob`, its postings and its extras, as a worker sends them."""

    language: str | None
    lines: int
    reason: str = ""
    """A SkipReason, or empty."""
    detail: str = ""
    is_read: bool = False
    symbols: bytes = b""
    strings: bytes = b""
    references: bytes = b""
    bindings: bytes = b""
    imports: bytes = b""
    package: str = ""
    defined: bytes = b""
    """Keys (name_key) of the names defined, as an array of 32-bit numbers; `used` likewise for references."""
    used: bytes = b""
    extras: tuple[bytes, ...] = field(default=())


def encode(extracted: Extracted, language: str | None, lines: int) -> BlobRecord:
    import orjson

    strings = extracted.strings
    references = extracted.references
    used = set(used_names(extracted))
    used.update(name for row in extracted.imports for name, _ in row[2])
    return BlobRecord(
        language=language,
        lines=lines,
        is_read=True,
        symbols=seal(orjson.dumps(extracted.symbols)),
        strings=seal(orjson.dumps(strings)),
        references=seal(references.tobytes()),
        bindings=seal(extracted.bindings.tobytes()),
        imports=seal(orjson.dumps(extracted.imports)),
        package=extracted.package,
        defined=_keys(row[0] for row in extracted.symbols),
        used=_keys(used),
    )


def used_names(extracted: Extracted) -> list[str]:
    """Distinct names that the references of a file have."""
    return [extracted.strings[number] for number in set(extracted.references[1::3])]


def _keys(names: Iterable[str]) -> bytes:
    return array("I", sorted({name_key(name) for name in names})).tobytes()


def numbers(data: bytes) -> array[int]:
    made: array[int] = array("I")
    made.frombytes(data)
    return made


def decode_symbols(data: bytes | None) -> list[SymbolRow]:
    return _loads(data)  # type: ignore[no-any-return]


def decode_imports(data: bytes | None) -> list[ImportRow]:
    return _loads(data)  # type: ignore[no-any-return]


def decode_strings(data: bytes | None) -> list[str]:
    return _loads(data)  # type: ignore[no-any-return]


def decode_targets(data: bytes | None) -> list[list[tuple[str, list[str]]]]:
    return _loads(data)  # type: ignore[no-any-return]


def _loads(data: bytes | None) -> Any:
    import orjson  # late: it costs a warm start more than opening the index does

    return orjson.loads(unseal(data))


def to_symbol(path: str, row: SymbolRow) -> Symbol:
    name, qualified, kind, start, end, _, signature, doc, decorators = row
    return Symbol(
        path=path,
        name=name,
        qualified=qualified,
        kind=kind,  # type: ignore[arg-type]
        start=start,
        end=end,
        signature=signature,
        doc=doc,
        decorators=tuple(decorators),
    )
