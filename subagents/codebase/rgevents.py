"""Reading what `rg --json` writes, however long its lines are. Memory stays bounded by what one match needs."""

from __future__ import annotations

import base64
import os
import re
import select
import subprocess
import time
from collections.abc import Iterator
from typing import NamedTuple

import orjson

EVENT_BYTES = 256 * 1024
"""Longer events (a match in a minified file, or very many in one line) are taken in only in part."""
_LATE_FIELDS = re.compile(rb'"line_number":(\d+),"absolute_offset":\d+,"submatches":\[')
_FIRST_MATCH = re.compile(rb'\{"match":(\{"(?:text|bytes)":"(?:[^"\\]|\\.)*"\})')
_HEAD = re.compile(rb'\{"type":"match","data":\{"path":(\{"(?:text|bytes)":"(?:[^"\\]|\\.)*"\})')


class Hit(NamedTuple):
    """One matching line as ripgrep saw it. `raw` is None when the line was too long to take in."""

    file: bytes
    line: int
    raw: bytes | None
    match: str


class OutOfTime(Exception):
    """The deadline passed while ripgrep was working."""


def split_output(process: subprocess.Popen[bytes], end: bytes, deadline: float) -> Iterator[bytes]:
    """Output split at `end`; of a piece longer than allowed only what `_parse_long` needs is kept."""
    assert process.stdout is not None
    fd = process.stdout.fileno()
    ready = select.poll()
    ready.register(fd, select.POLLIN)
    pending = bytearray()
    long: _LongEvent | None = None
    while True:
        left = deadline - time.monotonic()
        if left <= 0 or not ready.poll(left * 1000):
            raise OutOfTime
        chunk = os.read(fd, 1 << 17)
        if not chunk:
            return
        pending += chunk
        *whole, rest = bytes(pending).split(end) if end in chunk else (bytes(pending),)
        for piece in whole:
            if long is not None:
                long.feed(piece)
                yield long.short()
                long = None
            else:
                yield piece
        if long is None and len(rest) > EVENT_BYTES:
            long = _LongEvent()
        if long is not None:
            long.feed(rest)
            rest = b""
        pending = bytearray(rest)


class _LongEvent:
    """What counts of an event too long to keep: which file (at its start), and which line (somewhere after)."""

    _WINDOW = 1024

    def __init__(self) -> None:
        self._head = b""
        self._tail = b""
        self._late = b""

    def feed(self, piece: bytes) -> None:
        if not self._head:
            self._head = piece[: 4 * 4096 + 100]  # a path has at most 4096 bytes, each at most four in JSON
        if len(self._late) < self._WINDOW:
            window = (self._late or self._tail) + piece
            found = _LATE_FIELDS.search(window)
            self._late = window[found.start() : found.start() + self._WINDOW] if found else b""
            self._tail = window[-self._WINDOW :]

    def short(self) -> bytes:
        return self._head + b"\0" + self._late


def parse_event(event: bytes) -> Hit | None:
    """The hit an event of `rg --json` tells, or None for events that tell of none."""
    if not event.startswith(b'{"type":"match"'):
        return None
    if b"\0" in event:
        return _parse_long(event)
    data = orjson.loads(event)["data"]
    submatches = data["submatches"]
    match = _bytes_of(submatches[0]["match"]).decode(errors="replace") if submatches else ""
    raw = _bytes_of(data["lines"]).removesuffix(b"\n").removesuffix(b"\r")
    return Hit(_bytes_of(data["path"]), data["line_number"], raw, match)


def _bytes_of(value: dict[str, str]) -> bytes:
    """ripgrep writes text as it is, and bytes that are no UTF-8 in base64."""
    return value["text"].encode() if "text" in value else base64.b64decode(value["bytes"])


def _parse_long(event: bytes) -> Hit | None:
    head, _, late = event.partition(b"\0")
    file, line = _HEAD.match(head), _LATE_FIELDS.match(late)
    if file is None or line is None:
        return None
    first = _FIRST_MATCH.match(late, line.end())
    match = _bytes_of(orjson.loads(first[1])).decode(errors="replace") if first else ""
    return Hit(_bytes_of(orjson.loads(file[1])), int(line[1]), None, match)
