"""Where the bytes of each piece of evidence stand: in a record of a log, or, if they are many, in a file of their own.

A file of its own costs a sync of the file and one of its folder. A record in the transcript of the task costs none: the
reply that follows is synced anyway, and the sums of a log vouch for all before it. What has no transcript stands in
`evidence.jsonl`. The reference is the hash of the bytes, so a piece vouches for itself, whatever stands around it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import orjson

from manifests.durable import explained, open_private, read_private, state_error
from manifests.envelope import DOCTOR
from manifests.errors import StateError
from manifests.jsonl import RECORD_LIMIT_BYTES, lines_of
from manifests.sessions import EVIDENCE_LOG, EVIDENCE_SCHEMA, TRANSCRIPT_SCHEMA, Session

EVIDENCE_LIMIT_BYTES = 64 << 20
INLINE_LIMIT_BYTES = 1 << 20
"""More than that becomes a file: JSON may write a byte as six, and no record may have more than 16 MiB."""

_TEXT, _BASE64 = "text", "base64"
PAYLOAD = frozenset({_TEXT, _BASE64})
"""Fields that hold the bytes; one stands right behind the reference, so that no argument of a tool can pose as one."""
_HEAD = re.compile(rb'\{"sum":"[0-9a-f]{16}","seq":\d+,"body":\{"reference":"sha256:([0-9a-f]{64})","(\w+)":')
_LABEL = "read:evidence"


@dataclass(frozen=True, slots=True)
class _Place:
    """A line of a log."""

    log: str
    offset: int
    length: int


def payload(data: bytes) -> dict[str, str]:
    """The bytes as fields of a record; none if they belong into a file of their own."""
    if len(data) > INLINE_LIMIT_BYTES:
        return {}
    try:
        return {_TEXT: data.decode()}
    except UnicodeDecodeError:
        return {_BASE64: base64.b64encode(data).decode()}


def name_of_file(digest: str) -> str:
    """Where a piece stands that has a file of its own."""
    return f"evidence/{digest[:2]}/{digest}"


class Pieces:
    """All evidence of one session, found by digest; what logs get later, too. Threads may share it."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._places: dict[str, _Place] = {}
        self._scanned: dict[str, int] = {}

    def read(self, digest: str) -> bytes | None:
        """The bytes, checked against their hash; None if they stand nowhere. StateError for damage."""
        place = self._place(digest)
        if place is not None:
            where, data = self._session.path_of(place.log), self._from_log(place)
        else:
            where = self._session.path_of(name_of_file(digest))
            try:
                data = read_private(where, limit_bytes=EVIDENCE_LIMIT_BYTES, label=_LABEL)
            except FileNotFoundError:
                return None
        if hashlib.sha256(data).hexdigest() != digest:
            raise StateError(f"{str(where)!r} is damaged: evidence {digest} does not have its hash", hint=DOCTOR)
        return data

    def holder_of(self, digest: str, *, only_before: bool = False) -> str | None:
        """Name of the log or file in which it stands, sound or not; None if it stands nowhere.

        `only_before`: logs count as they were when they were looked through first.
        """
        place = self._places.get(digest) if only_before and self._scanned else self._place(digest)
        if place is not None:
            return place.log
        return name_of_file(digest) if self._session.has(name_of_file(digest)) else None

    def digests(self) -> list[str]:
        """Of every piece, sorted."""
        self._scan()
        starts = self._session.names_of("evidence", "")
        files = (digest for start in starts for digest in self._session.names_of(f"evidence/{start}", ""))
        return sorted({*self._places, *files})

    def beginning_with(self, start: str) -> list[str]:
        self._scan()
        files = self._session.names_of(f"evidence/{start[:2]}", "")
        return sorted({digest for digest in (*self._places, *files) if digest.startswith(start)})

    def records(self) -> Iterator[dict[str, object]]:
        """Every evidence record of every log, also behind damage. Nothing has checked the bytes against their hash."""
        for log in self._logs():
            for _, line in self._lines(log, 0):
                if _HEAD.match(line) is not None and (body := _body_of(line)) is not None:
                    yield body

    def check_logs(self) -> None:
        """StateError if a log is damaged anywhere: what is not found may have stood there."""
        for log in self._logs():
            schema = EVIDENCE_SCHEMA if log == EVIDENCE_LOG else TRANSCRIPT_SCHEMA
            try:
                self._session.read_log(log, schema, bodies=False).exhaust()
            except FileNotFoundError:
                continue

    def _logs(self) -> list[str]:
        names = self._session.names_of("transcripts", ".jsonl")
        return [EVIDENCE_LOG, *(f"transcripts/{name}.jsonl" for name in names)]

    def _place(self, digest: str) -> _Place | None:
        if digest not in self._places:
            self._scan()
        return self._places.get(digest)

    def _scan(self) -> None:
        """Note what was added to the logs since. A line that is damaged hides no other."""
        for log in self._logs():
            self._scanned.setdefault(log, 0)
            for offset, line in self._lines(log, self._scanned[log]):
                if not line.endswith(b"\n"):
                    break  # still being written, torn, or without end
                self._scanned[log] = offset + len(line)
                found = _HEAD.match(line)
                if found is not None and found[2].decode() in PAYLOAD:
                    self._places[found[1].decode()] = _Place(log, offset, len(line))

    def _lines(self, log: str, start: int) -> Iterator[tuple[int, bytes]]:
        path = self._session.path_of(log)
        try:
            descriptor = open_private(path, os.O_RDONLY, label=_LABEL)
        except FileNotFoundError:
            return
        except OSError as error:
            raise state_error(error, path, "read") from error
        try:
            with explained(path, "read"):
                os.lseek(descriptor, start, os.SEEK_SET)
                for line in lines_of(descriptor):
                    yield start, line
                    start += len(line)
        finally:
            os.close(descriptor)

    def _from_log(self, place: _Place) -> bytes:
        """What stands there now, if it is a record that holds bytes; else nothing, which has another hash."""
        for _, line in self._lines(place.log, place.offset):
            body = _body_of(line) if len(line) == place.length else None
            return _unpacked(body) if body is not None else b""
        return b""


def _body_of(line: bytes) -> dict[str, object] | None:
    if len(line) > RECORD_LIMIT_BYTES:
        return None
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    body = value.get("body") if isinstance(value, dict) else None
    return body if isinstance(body, dict) else None


def _unpacked(body: Mapping[str, object]) -> bytes:
    match body:
        case {"text": str(text)}:
            return text.encode("utf-8", "surrogatepass")
        case {"base64": str(text)}:
            try:
                return base64.b64decode(text, validate=True)
            except (binascii.Error, ValueError):
                return b""
    return b""
