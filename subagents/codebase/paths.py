r"""Path keys: how the bytes of a path become text and come back. No I/O.

A path key is the path decoded as UTF-8, where a byte that is no UTF-8 is written as the four characters `\xNN`. So
that two paths never share a key, a backslash that would read as such an escape is itself written as `\x5c`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

_AMBIGUOUS = re.compile(r"\\(?=x(?:5c|[89a-f][0-9a-f]))")
_AMBIGUOUS_RAW = re.compile(rb"\\(?=x(?:5c|[89a-f][0-9a-f]))")
_NOT_PLAIN = re.compile(rb"(?:\A|/)\.{0,2}(?:/|\Z)|\0")
_ESCAPE = re.compile(rb"\\x(5c|[89a-f][0-9a-f])")


def to_key(raw: bytes) -> str:
    """The key of a path; `from_key` gives exactly these bytes back."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return _AMBIGUOUS_RAW.sub(rb"\\x5c", raw).decode(errors="backslashreplace")
    return _AMBIGUOUS.sub(r"\\x5c", text) if "\\" in text else text


def from_key(key: str) -> bytes:
    """The path that `to_key` turned into this key. Raises UnicodeEncodeError for lone surrogates (never a key)."""
    raw = key.encode()
    return _ESCAPE.sub(lambda found: bytes([int(found[1], 16)]), raw) if b"\\" in raw else raw


def is_plain(raw: bytes) -> bool:
    """Whether the path stays below its root: relative, and no part of it is empty, `.` or `..`."""
    return _NOT_PLAIN.search(raw) is None


@lru_cache(maxsize=256)
def _prefixes(scope: tuple[str, ...]) -> tuple[frozenset[str], tuple[str, ...]]:
    return frozenset(scope), tuple(f"{item}/" for item in scope)


def in_scope(path: str, scope: Iterable[str]) -> bool:
    """Whether a path key lies in one of the scope's files or folders; an empty scope holds everything."""
    items = tuple(scope)
    if not items:
        return True
    exact, prefixes = _prefixes(items)
    return path in exact or path.startswith(prefixes)
