"""Reading typed values out of parsed JSON that nobody vouches for: sizes, types, ranges, or an error that says where.

Everything read back from disk is input to a future prompt, so nothing is taken on trust.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TypeVar

C = TypeVar("C", bound=str)

DEPTH_LIMIT = 100
"""Nesting that no document of ours comes near; deeper JSON is damage or an attack."""

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")


class Malformed(ValueError):
    """A value that is not what the format says. Readers of files turn it into a StateError naming the file."""


def utc_now() -> datetime:
    return datetime.now(UTC)


def timestamp(at: datetime | None = None) -> str:
    """UTC, microseconds, `Z`: sorts as text."""
    return (at or utc_now()).astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def parse_timestamp(text: str) -> datetime:
    """The reverse of `timestamp`; only UTC is accepted."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise Malformed(f"not a time: {text[:40]!r}") from error
    if at.tzinfo is None or at.utcoffset() != UTC.utcoffset(None):
        raise Malformed(f"not a time in UTC: {text[:40]!r}")
    return at


def is_name(text: str) -> bool:
    """Whether it can be one part of a file name of ours: no separator, no leading dot or dash, bounded."""
    return _NAME.fullmatch(text) is not None


def depth_of(value: object) -> int:
    """How deep lists and objects nest; without recursion, so that no depth can exhaust the stack."""
    deepest = 0
    pending: list[tuple[object, int]] = [(value, 1)]
    while pending:
        item, depth = pending.pop()
        if isinstance(item, dict):
            deepest = max(deepest, depth)
            pending.extend((inner, depth + 1) for inner in item.values() if isinstance(inner, dict | list))
        elif isinstance(item, list):
            deepest = max(deepest, depth)
            pending.extend((inner, depth + 1) for inner in item if isinstance(inner, dict | list))
    return deepest


class Fields:
    """One JSON object under inspection. `where` names it in messages, e.g. `tasks[3]`."""

    def __init__(self, value: object, where: str) -> None:
        if not isinstance(value, dict):
            raise Malformed(f"{where} is not an object")
        self._value: dict[str, object] = value
        self._where = where

    def _get(self, key: str) -> object:
        if key not in self._value:
            raise Malformed(f"{self._where} has no {key!r}")
        return self._value[key]

    def _wrong(self, key: str, wanted: str) -> Malformed:
        return Malformed(f"{self._where}: {key!r} is not {wanted}")

    def has(self, key: str) -> bool:
        return self._value.get(key) is not None

    def raw(self, key: str) -> object:
        return self._get(key)

    def text(self, key: str, *, limit: int, default: str | None = None, empty: bool = True) -> str:
        """A string of at most `limit` characters."""
        if default is not None and not self.has(key):
            return default
        value = self._get(key)
        if not isinstance(value, str) or len(value) > limit or not (empty or value.strip()):
            raise self._wrong(key, f"a text of at most {limit:,} characters")
        return value

    def match(self, key: str, pattern: re.Pattern[str]) -> str:
        value = self._get(key)
        if not isinstance(value, str) or pattern.fullmatch(value) is None:
            raise self._wrong(key, f"of the form {pattern.pattern}")
        return value

    def name(self, key: str) -> str:
        return self.match(key, _NAME)

    def choice(self, key: str, allowed: tuple[C, ...]) -> C:
        value = self._get(key)
        for candidate in allowed:
            if candidate == value:
                return candidate
        raise self._wrong(key, f"one of {', '.join(allowed)}")

    def flag(self, key: str) -> bool:
        value = self._get(key)
        if not isinstance(value, bool):
            raise self._wrong(key, "true or false")
        return value

    def integer(self, key: str, *, low: int, high: int, default: int | None = None) -> int:
        if default is not None and not self.has(key):
            return default
        value = self._get(key)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise self._wrong(key, f"a whole number from {low} to {high}")
        return value

    def number(self, key: str, *, low: float, high: float) -> float:
        value = self._get(key)
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise self._wrong(key, f"a number from {low} to {high}")
        return float(value)

    def time(self, key: str) -> str:
        value = self.text(key, limit=40)
        parse_timestamp(value)
        return value

    def optional_time(self, key: str) -> str | None:
        return self.time(key) if self.has(key) else None

    def items(self, key: str, *, limit: int) -> list[object]:
        value = self._value.get(key, [])
        if not isinstance(value, list) or len(value) > limit:
            raise self._wrong(key, f"a list of at most {limit:,}")
        return value

    def texts(self, key: str, *, limit: int, each: int) -> tuple[str, ...]:
        """A list of at most `limit` strings of at most `each` characters."""
        values = self.items(key, limit=limit)
        for value in values:
            if not isinstance(value, str) or len(value) > each:
                raise self._wrong(key, f"a list of texts of at most {each:,} characters")
        return tuple(value for value in values if isinstance(value, str))

    def numbers(self, key: str, *, limit: int) -> dict[str, float]:
        """An object of at most `limit` named finite numbers."""
        value = self._value.get(key, {})
        if not isinstance(value, dict) or len(value) > limit:
            raise self._wrong(key, f"an object of at most {limit} numbers")
        found: dict[str, float] = {}
        for name, number in value.items():
            if isinstance(number, bool) or not isinstance(number, int | float) or len(name) > 100:
                raise self._wrong(key, "an object of numbers")
            if not math.isfinite(number):
                raise self._wrong(key, "an object of finite numbers")
            found[name] = number
        return found

    def counts(self, key: str, *, limit: int) -> dict[str, int]:
        """An object of at most `limit` named whole numbers from 0."""
        found: dict[str, int] = {}
        for name, number in self.numbers(key, limit=limit).items():
            if not isinstance(number, int) or number < 0:
                raise self._wrong(key, "an object of whole numbers from 0")
            found[name] = number
        return found

    def mapping(self, key: str, *, limit: int) -> Mapping[str, object]:
        """Any object with at most `limit` keys and bounded nesting."""
        value = self._value.get(key, {})
        if not isinstance(value, dict) or len(value) > limit or depth_of(value) > DEPTH_LIMIT:
            raise self._wrong(key, f"an object with at most {limit} keys")
        return value
