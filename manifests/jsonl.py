"""Append-only logs: journal, scratchpads, transcripts. One record a line, one write and one sync a record.

A line is `{"sum":"<16 hex>","seq":N,"body":{...}}`. `sum` is a hash over the sum of the line before and every byte of
its own line that follows it. So a changed byte, a line that is missing, doubled, moved or taken from another log is
damage, wherever it stands; and since the first line names schema, session and repository, so is another's file.

A crash leaves at most one incomplete last line, which is dropped and reported. What was cut off at the end of a line
cannot be seen from the log alone; nothing that our own writing does can cause it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

import orjson

from manifests.durable import explained, open_private, state_error
from manifests.envelope import (
    DOCTOR,
    TIMELESS,
    Owner,
    Schema,
    Trust,
    check_written_at,
    encode,
    short_name,
    writer_version,
)
from manifests.errors import StateError
from manifests.fields import DEPTH_LIMIT, Fields, Malformed, depth_of, timestamp, utc_now
from manifests.fileops import current, retrying, write_all

RECORD_LIMIT_BYTES = 16 << 20
"""No record of ours is larger; a longer line is refused unread, so that it cannot fill the memory."""

_CHUNK_BYTES = 1 << 18
_HEAD = b'{"sum":"'
_HEAD_BYTES = len(_HEAD) + 16 + len('",')
_DEPTH_TO_LOOK_AT = DEPTH_LIMIT


@dataclass(frozen=True, slots=True)
class Record:
    """One line. Numbers start at 1; the line numbered 0 is the log's own header."""

    seq: int
    body: dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class TornTail:
    """An incomplete last line, dropped. Normal after a crash; to be reported, not to be repaired by hand."""

    path: Path
    offset: int
    length: int


def line_sum(before: str, rest: bytes) -> str:
    """The checksum of a line, given that of the line before (empty for the first)."""
    return hashlib.sha256(before.encode() + rest).hexdigest()[:16]


class LogReader:
    """Streams the records of one log, checking each. `torn`, `end`, `last_seq` and `sum` hold once it is exhausted."""

    def __init__(
        self, path: Path, *, schema: Schema, owner: Owner, trust: Trust | None = None, bodies: bool = True
    ) -> None:
        """`bodies=False` checks everything and skips turning bodies into objects; records then have empty ones."""
        self.path = path
        self.torn: TornTail | None = None
        self.end = 0
        """Length of the sound part, in bytes."""
        self.last_seq = -1
        self.sum = ""
        self._schema = schema
        self._owner = owner
        self._trust = trust or Trust()
        self._bodies = bodies

    def __iter__(self) -> Iterator[Record]:
        """Raises StateError at the first damage; FileNotFoundError when there is no log."""
        self.torn, self.end, self.last_seq, self.sum = None, 0, -1, ""
        try:
            descriptor = open_private(self.path, os.O_RDONLY, label=f"read:{short_name(self._schema)}")
        except FileNotFoundError:
            raise
        except OSError as error:
            raise state_error(error, self.path, "read") from error
        try:
            with explained(self.path, "read"):
                yield from self._records(descriptor)
        finally:
            os.close(descriptor)

    def sum_at(self, seq: int) -> str | None:
        """The sum of that record, or None if the log ends before it. Vouches for every byte up to there."""
        for record in self:
            if record.seq == seq:
                return self.sum
        return None

    def exhaust(self) -> LogReader:
        """Check the whole log and keep nothing of it."""
        for _ in self:
            pass
        return self

    def _records(self, descriptor: int) -> Iterator[Record]:
        pending: bytes | None = None
        for line in self._lines(descriptor):
            if pending is not None:
                record = self._record(pending)
                if record.seq:
                    yield record
            pending = line
        if pending is None:
            return
        if self._is_torn(pending):
            self.torn = TornTail(path=self.path, offset=self.end, length=len(pending))
            return
        record = self._record(pending)
        if record.seq:
            yield record

    def _lines(self, descriptor: int) -> Iterator[bytes]:
        """Lines with their newline; the last one perhaps without."""
        for line in lines_of(descriptor):
            if len(line) > RECORD_LIMIT_BYTES:
                raise self._damage(f"a line longer than {RECORD_LIMIT_BYTES:,} bytes")
            yield line

    @staticmethod
    def _is_torn(line: bytes) -> bool:
        """Whether a crash can have left this last line: cut short, or (power cut) with pages never written.

        A line that lacks nothing but has another byte where its newline should be is damage: writing goes forward.
        """
        if line.endswith(b"\n"):
            return b"\0" in line  # no JSON of ours holds a raw zero byte
        return not line[:-1].endswith(b"}}") or line.endswith(b"}") or not _is_json(line[:-1])

    def _record(self, line: bytes) -> Record:
        rest = line[_HEAD_BYTES:-1]
        stated = line[len(_HEAD) : len(_HEAD) + 16]
        intact = line.startswith(_HEAD) and line_sum(self.sum, rest).encode() == stated
        intact = intact and line[_HEAD_BYTES - 2 : _HEAD_BYTES] == b'",' and line.endswith(b"\n")
        if self.last_seq < 0:
            self._check_header(line, intact)
        if not intact:
            raise self._damage(f"record {self.last_seq + 1} does not match its checksum")
        record = self._parse(line)
        if record.seq != self.last_seq + 1:
            raise self._damage(f"record {self.last_seq + 1} is missing, {record.seq} stands in its place")
        self.sum, self.last_seq, self.end = stated.decode(), record.seq, self.end + len(line)
        return record

    def _parse(self, line: bytes) -> Record:
        if not self._bodies and self.last_seq >= 0:
            number = line[_HEAD_BYTES + len('"seq":') : _HEAD_BYTES + 40].partition(b",")[0]
            return Record(int(number) if number.isdigit() else -1, {})
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise self._damage(f"record {self.last_seq + 1} is not JSON") from error
        seq, body = value.get("seq"), value.get("body")
        if not isinstance(seq, int) or not isinstance(body, dict):
            raise self._damage(f"record {self.last_seq + 1} has no number or no body")
        if line.count(b"[") + line.count(b"{") > _DEPTH_TO_LOOK_AT and depth_of(body) > DEPTH_LIMIT:
            raise self._damage(f"record {seq} is nested too deeply")
        return Record(seq, body)

    def _check_header(self, line: bytes, intact: bool) -> None:
        try:
            value = orjson.loads(line)
            body = Fields(value if isinstance(value, dict) else None, "the first line").raw("body")
            self._check_owner(Fields(body, "the first line"), intact)
        except (orjson.JSONDecodeError, Malformed) as problem:
            raise self._damage(f"its first line is no header of ours ({problem})") from problem

    def _check_owner(self, header: Fields, intact: bool) -> None:
        name = header.text("schema", limit=100)
        number = header.integer("version", low=0, high=1 << 31)
        if number > self._schema.version:
            raise StateError(
                f"{str(self.path)!r} has schema version {number}; this leadline reads {self._schema.version}",
                hint="a newer leadline wrote it: upgrade leadline, then try again",
            )
        if not intact:
            raise self._damage("its first line does not match its checksum")
        if name != self._schema.name:
            raise self._damage(f"it holds {name!r}, not {self._schema.name!r}")
        if number != self._schema.version:
            raise StateError(
                f"{str(self.path)!r} has schema version {number}; this leadline reads {self._schema.version}",
                hint="start a new exploration, or use the leadline version that wrote it",
            )
        for what, mine in (("session", self._owner.session), ("repository", self._owner.repository)):
            if (theirs := header.text(what, limit=300)) != mine:
                raise StateError(
                    f"{str(self.path)!r} belongs to {what} {theirs!r}, not to {mine!r}",
                    hint="a file was copied between sessions; put the right one back, or remove the session",
                )
        if (file := header.text("file", limit=300)) != self.path.name:
            raise self._damage(f"it was written as {file!r}")
        check_written_at(header.text("written_at", limit=40), self.path, self._trust, utc_now())

    def _damage(self, what: str) -> StateError:
        return StateError(f"{str(self.path)!r} is damaged at byte {self.end:,}: {what}", hint=DOCTOR)


def _is_json(line: bytes) -> bool:
    try:
        orjson.loads(line)
    except orjson.JSONDecodeError:
        return False
    return True


def lines_of(descriptor: int) -> Iterator[bytes]:
    """Lines from where the file stands, with their newline; the last one perhaps without.

    Of a line above the limit only a beginning, above the limit too, is given, and nothing behind it.
    """
    buffer = bytearray()
    while chunk := os.read(descriptor, _CHUNK_BYTES):
        searched = len(buffer)
        buffer += chunk
        start = 0
        while (stop := buffer.find(b"\n", max(start, searched))) >= 0:
            yield bytes(buffer[start : stop + 1])
            start = stop + 1
        del buffer[:start]
        if len(buffer) > RECORD_LIMIT_BYTES:
            break
    if buffer:
        yield bytes(buffer)


class OpenLogs:
    """Bounds how many logs keep a file open, so that hundreds of subagents do not exhaust the descriptors."""

    def __init__(self, limit: int = 128) -> None:
        self._limit = limit
        self._open: dict[AppendLog, None] = {}
        self._mutex = Lock()

    def opened(self, log: AppendLog) -> None:
        """Note it, and close the one opened longest ago that is not being written."""
        with self._mutex:
            self._open[log] = None
            surplus = len(self._open) - self._limit
            for other in [one for one in self._open if one is not log][: max(0, surplus)]:
                if other.rest():
                    del self._open[other]


class AppendLog:
    """The writing end of one log. One process writes; its threads may share this object.

    A record that `append` returned from is on disk. One whose `append` raised is not, and leaves no trace: what was
    written of it is cut away before anything follows.
    """

    def __init__(
        self,
        path: Path,
        *,
        schema: Schema,
        owner: Owner,
        redact: Callable[[object], object],
        guard: Callable[[], None] = lambda: None,
        pool: OpenLogs | None = None,
    ) -> None:
        """`redact` sees every body before it is written; `guard` raises when this process may write no more."""
        self.path = path
        self.torn: TornTail | None = None
        """What opening dropped, once the first `append` or `open` opened the file."""
        self._schema = schema
        self._owner = owner
        self._redact = redact
        self._guard = guard
        self._pool = pool or OpenLogs()
        self._label = f"append:{short_name(schema)}"
        self._mutex = Lock()
        self._descriptor = -1
        self._length = 0
        self._seq = -1
        self._sum = ""
        self._head: tuple[int, str] | None = None
        self._clean = True
        self._unsynced = False
        self._lost: StateError | None = None

    def open(self) -> None:
        """Check what is there, cut away a torn tail, and be ready. Called by the first `append` if not before."""
        with self._mutex:
            self._open()

    def _open(self) -> None:
        if self._descriptor >= 0:
            return
        if self._seq < 0 or not self._is_as_left():
            self._check()
        is_new = not self.path.exists()
        with explained(self.path, "open"):
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
            self._descriptor = open_private(self.path, flags, label=self._label)
            if is_new:
                retrying(lambda: current().sync_folder(self.path.parent, label=self._label))
            elif self._head is None and self._seq > 0:  # what a process before us left unsynced
                retrying(lambda: current().sync(self._descriptor, label=self._label, data_only=True))
                self._head = (self._seq, self._sum)
        self._pool.opened(self)

    def _is_as_left(self) -> bool:
        """Whether the file is what this object wrote when it had it open before."""
        try:
            return self._clean and self.path.stat().st_size == self._length
        except OSError:
            return False

    def _check(self) -> None:
        reader = LogReader(self.path, schema=self._schema, owner=self._owner, trust=TIMELESS, bodies=False)
        with suppress(FileNotFoundError):
            reader.exhaust()
        self.torn = reader.torn
        self._length, self._seq, self._sum = reader.end, reader.last_seq, reader.sum
        self._clean = reader.torn is None

    def append(
        self, body: Mapping[str, object], *, sync: bool = True, redact: Callable[[object], object] | None = None
    ) -> int:
        """Add one record and return its number.

        `sync=False` for what may be lost in a power cut (never in a crash of the process) without harm, or is synced
        with a later record. `redact` takes the place of the log's for this one.
        """
        redacted = (redact or self._redact)(dict(body))
        with self._mutex:
            self._guard()
            self._open()
            self._cut_to_length()
            lines, seq, total = self._lines(redacted)
            if len(lines) > RECORD_LIMIT_BYTES:
                raise ValueError(f"a record of {len(lines):,} bytes; at most {RECORD_LIMIT_BYTES:,}")
            with explained(self.path, "append to"):
                self._write(lines, sync)
            self._length += len(lines)
            self._seq, self._sum = seq, total
            self._unsynced = not sync
            if sync:
                self._head = (seq, total)
            return seq

    def settle(self) -> None:
        """Put on disk what was appended without syncing. Where that fails it fails for good: after a failed sync the
        kernel may have dropped the bytes, and a second one would vouch for what is gone."""
        if not self._unsynced:
            return
        with self._mutex:
            self._open()
            if self._lost is None:
                try:
                    retrying(lambda: current().sync(self._descriptor, label=self._label, data_only=True))
                except OSError as error:
                    self._lost = state_error(error, self.path, "sync")
            if self._lost is not None:
                raise self._lost
            self._unsynced = False
            self._head = (self._seq, self._sum)

    def _lines(self, body: object) -> tuple[bytes, int, str]:
        """The record, behind the header if the log is empty: bytes, the record's number, its sum."""
        lines, seq, total = b"", self._seq, self._sum
        for one in ([self._header()] if seq < 0 else []) + [body]:
            seq += 1
            rest = b'"seq":%d,"body":%b}' % (seq, encode(one))
            total = line_sum(total, rest)
            lines += _HEAD + total.encode() + b'",' + rest + b"\n"
        return lines, seq, total

    def _header(self) -> dict[str, object]:
        return {
            "schema": self._schema.name,
            "version": self._schema.version,
            "session": self._owner.session,
            "repository": self._owner.repository,
            "file": self.path.name,
            "written_at": timestamp(),
            "writer": writer_version(),
        }

    def _write(self, lines: bytes, sync: bool) -> None:
        self._clean = False
        try:
            write_all(self._descriptor, lines, label=self._label)
            if sync:
                retrying(lambda: current().sync(self._descriptor, label=self._label, data_only=True))
        except OSError:
            with suppress(OSError):
                self._truncate()
            raise
        self._clean = True

    def _cut_to_length(self) -> None:
        if not self._clean:
            with explained(self.path, "cut the incomplete last record of"):
                self._truncate()

    def _truncate(self) -> None:
        retrying(lambda: current().truncate(self._descriptor, self._length, label=self._label))
        self._clean = True

    @property
    def head(self) -> tuple[int, str] | None:
        """Number and sum of the last record that is known to be on disk; None if there is none, or before `open`."""
        with self._mutex:
            return self._head

    def close(self) -> None:
        """Release the file. A later `append` opens it again."""
        with self._mutex:
            self._close()

    def rest(self) -> bool:
        """Release the file unless it is being written at this moment; whether it was."""
        if not self._mutex.acquire(blocking=False):
            return False
        try:
            self._close()
        finally:
            self._mutex.release()
        return True

    def _close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
