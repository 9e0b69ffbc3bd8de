"""Removing secrets from whatever is written or printed (design, section 4).

What is removed is replaced by `[redacted:<kind>]`, followed by the newlines that were in it, so that line numbers
hold; and counted by kind. The secret itself is kept nowhere. Redacting twice changes nothing more.

One scan for the keywords of all patterns (`keyword_scan`) finds the few places worth a closer look, so that source code
passes at the speed of that one scan.
"""

from __future__ import annotations

import base64
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from threading import Lock
from types import MappingProxyType
from urllib.parse import quote

from scratch.keyword_scan import keywords_in
from scratch.secret_patterns import CARD, PATTERNS, Pattern, is_live_value

_MARK = "[redacted:"
_APART = 3
"""Rounds that take out each secret by itself. What shows after them is glued together from many and goes whole."""
_SPACE = re.compile(r"\s")
_ASSIGNED = "assigned_secret"
_OWN = "own_key"
_SHORTEST = 8
"""Characters; no pattern matches less."""
_LONG = 4_096
_NOTHING: Mapping[str, int] = MappingProxyType({})
_SENSITIVE_KEY = re.compile(
    r"(?i)pass(?:word|wd|phrase|code)|pwd$|secret|token$|api[_-]?key|access[_-]?key|private[_-]?key|credential|authorization"
)


@dataclass(frozen=True, slots=True)
class _Hit:
    start: int
    end: int
    pattern: Pattern


def _hits(text: str) -> Iterator[_Hit]:
    for at, keyword in keywords_in(text):
        if keyword is not None:
            yield from _first(keyword.patterns, text, at)
        elif (hit := _tried(CARD, CARD.regex.match(text, at))) is not None:
            yield hit


def _first(patterns: tuple[Pattern, ...], text: str, at: int) -> Iterator[_Hit]:
    for pattern in patterns:
        if at >= pattern.back:
            hit = _tried(pattern, pattern.regex.match(text, at - pattern.back))
            if hit is not None:
                yield hit
                return


def _tried(pattern: Pattern, match: re.Match[str] | None) -> _Hit | None:
    if match is None:
        return None
    group: str | int = "s" if "s" in pattern.regex.groupindex else 0
    secret = match.group(group)
    if _MARK in secret or not pattern.accept(secret):
        return None
    start, end = match.span(group)
    return _Hit(start, end, pattern)


@lru_cache(maxsize=512)
def _is_clean(text: str) -> bool:
    """Whether nothing in it is worth a closer look. Quick for the short texts that most of JSON is.

    Remembered: a tool's result comes by when it is shown, kept as evidence and written to a transcript.
    """
    if len(text) < _SHORTEST:
        return True
    if any(form in text for form in _own):
        return False
    return all(keyword is None and CARD.regex.match(text, at) is None for at, keyword in keywords_in(text))


def _merged(hits: Iterable[_Hit]) -> list[_Hit]:
    """In order and apart: overlapping ones become one, named by the pattern that stands first in the table."""
    merged: list[_Hit] = []
    for hit in sorted(hits, key=lambda hit: hit.start):
        if merged and hit.start < merged[-1].end:
            last = merged.pop()
            hit = _Hit(last.start, max(last.end, hit.end), min(last.pattern, hit.pattern, key=_place))
        merged.append(hit)
    return merged


@cache
def _place(pattern: Pattern) -> int:
    return PATTERNS.index(pattern) if pattern in PATTERNS else len(PATTERNS)


_own: tuple[str, ...] = ()
"""The user's own secrets, in each form in which one may be written."""


def know_own_secrets(values: Iterable[str]) -> None:
    """Remove these wherever they stand, whatever they look like: keys that this run was given. Adds to earlier ones.

    Also URL-encoded, and in base64 whatever stands around them. Shorter than eight characters they are no secrets.
    """
    global _own
    forms = dict.fromkeys(_own)
    for value in values:
        if len(value) >= _SHORTEST:
            forms |= dict.fromkeys((value, quote(value, safe=""), *_in_base64(value)))
    _own = tuple(sorted(forms, key=len, reverse=True))
    for remembered in (_is_clean, _is_clean_key):
        remembered.cache_clear()


def _in_base64(value: str) -> Iterator[str]:
    """As it shows in base64 of a text around it: three ways, without the characters that neighbours share in."""
    for before in range(3):
        data = b"\0" * before + value.encode()
        whole = data[: len(data) // 3 * 3]
        yield base64.b64encode(whole).decode()[(0, 2, 3)[before] :]


def redact_text(text: str) -> tuple[str, Mapping[str, int]]:
    """The text without its secrets, and how many of which kind were removed."""
    if len(text) < _LONG and _is_clean(text):
        return text, _NOTHING
    counts: Counter[str] = Counter()
    for form in _own:
        if form in text:
            counts[_OWN] += text.count(form)
            text = text.replace(form, f"{_MARK}{_OWN}]")
    if _MARK not in text:
        return _without(text, counts), counts
    pieces = _marks().split(text)
    pieces[::2] = [_without(piece, counts) for piece in pieces[::2]]
    return "".join(pieces), counts


@cache
def _marks() -> re.Pattern[str]:
    """What earlier redaction put in, to be left as it is."""
    kinds = {pattern.kind for pattern in (*PATTERNS, CARD)} | {_ASSIGNED, _OWN}
    return re.compile(f"({re.escape(_MARK)}(?:{'|'.join(sorted(kinds, reverse=True))})\\])")


def _without(text: str, counts: Counter[str], rounds: int = 0) -> str:
    """A text that holds no marks, without its secrets.

    What is left between two is looked at again: what stood next to a secret may only show once that is gone.
    """
    hits = _merged(_hits(text))
    if not hits:
        return text
    parts: list[str] = []
    done = 0
    for hit in _merged(_whole_runs(hits, text)) if rounds >= _APART else hits:
        parts.append(_without(text[done : hit.start], counts, rounds + 1))
        parts += [_MARK, hit.pattern.kind, "]", "\n" * text.count("\n", hit.start, hit.end)]
        counts[hit.pattern.kind] += 1
        done = hit.end
    return "".join([*parts, _without(text[done:], counts, rounds + 1)])


def _whole_runs(hits: Iterable[_Hit], text: str) -> Iterator[_Hit]:
    """Hits in order, each made as long as there is no white space around it."""
    done = 0
    for hit in hits:
        if hit.end <= done:
            continue
        start = max((space.end() for space in _SPACE.finditer(text, done, hit.start)), default=done)
        after = _SPACE.search(text, hit.end)
        done = after.start() if after else len(text)
        yield _Hit(min(start, hit.start), done, hit.pattern)


class Redactor:
    """Redacts and counts; one for a whole run. Threads may share it."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._mutex = Lock()

    @property
    def counts(self) -> dict[str, int]:
        """How many secrets of which kind were removed so far. Writing the same one twice counts twice."""
        with self._mutex:
            return dict(sorted(self._counts.items()))

    def text(self, text: str) -> str:
        redacted, counts = redact_text(text)
        self._add(counts)
        return redacted

    def data(self, data: bytes) -> bytes:
        """Bytes of any kind: what is no UTF-8 passes unchanged."""
        text = data.decode("utf-8", "surrogateescape")
        redacted = self.text(text)
        return data if redacted is text else redacted.encode("utf-8", "surrogateescape")

    def json(self, value: object) -> object:
        """Every string in a JSON value, keys included. Values under telling keys (`password`) are looked at as such."""
        counts: Counter[str] = Counter()
        redacted = _json(value, "", counts)
        self._add(counts)
        return redacted

    def _add(self, counts: Mapping[str, int]) -> None:
        if counts:
            with self._mutex:
                self._counts.update(counts)


def _json(value: object, key: str, counts: Counter[str]) -> object:
    if isinstance(value, str):
        return _string(value, key, counts)
    if isinstance(value, Mapping):
        return {_key(str(name), counts): _json(inner, str(name), counts) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_json(inner, key, counts) for inner in value]
    return value


def _key(name: str, counts: Counter[str]) -> str:
    return name if len(name) <= 40 and _is_clean_key(name) else _string(name, "", counts)


@lru_cache(maxsize=1_000)
def _is_clean_key(name: str) -> bool:
    return _is_clean(name)


@lru_cache(maxsize=1_000)
def _is_telling(key: str) -> bool:
    return _SENSITIVE_KEY.search(key) is not None


def _string(text: str, key: str, counts: Counter[str]) -> str:
    redacted, found = redact_text(text)
    if found:
        counts.update(found)
    if key and len(key) <= 100 and _is_telling(key) and _MARK not in redacted and is_live_value(redacted):
        counts[_ASSIGNED] += 1
        return f"{_MARK}{_ASSIGNED}]"
    return redacted
