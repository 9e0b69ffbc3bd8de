"""Sealing and opening JSON documents: who wrote what, when, for which session, and whether every byte still stands.

A sealed document is valid JSON whose first line is `{"sha256":"<64 hex>",`; the hash covers every byte after that line,
so `tail -n +2 FILE | sha256sum` checks it without us. It covers bytes rather than a canonical form: no later change of
a JSON library can make a sound file look damaged, and there is no byte that could change unnoticed.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import orjson

from manifests.durable import read_private, replace_file
from manifests.errors import StateError
from manifests.fields import DEPTH_LIMIT, Fields, Malformed, depth_of, parse_timestamp, timestamp, utc_now

DOCUMENT_LIMIT_BYTES = 64 << 20
DOCTOR = "`leadline doctor SESSION` says what is damaged; with --repair it saves what is sound into a new session"

_FIRST_LINE = re.compile(rb'\{"sha256":"([0-9a-f]{64})",\n')
_FIRST_LINE_BYTES = 78


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """What a document or log is, and the version of its format that this program writes and reads."""

    name: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """Whose state it is."""

    session: str
    repository: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """How old, and how far ahead of our clock, a document may be."""

    max_age: timedelta | None = None
    max_skew: timedelta = timedelta(minutes=10)

    @property
    def ageless(self) -> Trust:
        """For what may be as old as the session: all but the manifest, which each state change renews."""
        return Trust(max_age=None, max_skew=self.max_skew)


TIMELESS = Trust(max_age=None, max_skew=timedelta(days=36_500))
"""For looking at sessions: a clock that was set back makes none of them damaged."""


def writer_version() -> str:
    """The version of this program, as it stands in what it writes."""
    global _writer_version
    if _writer_version is None:
        from importlib.metadata import PackageNotFoundError, version  # 10 ms that reading does not need

        try:
            _writer_version = version("leadline")
        except PackageNotFoundError:
            _writer_version = "unknown"
    return _writer_version


_writer_version: str | None = None


def encode(value: object, *, indent: bool = False) -> bytes:
    """JSON bytes. Half a surrogate pair, which is no text and which no JSON file may hold, becomes U+FFFD."""
    option = orjson.OPT_INDENT_2 if indent else 0
    try:
        return orjson.dumps(value, option=option)
    except TypeError:
        return orjson.dumps(_without_surrogates(value, 0), option=option)


def _without_surrogates(value: object, depth: int) -> object:
    if depth > DEPTH_LIMIT:
        raise ValueError(f"nested deeper than {DEPTH_LIMIT}")
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, Mapping):
        return {
            _without_surrogates(key, depth + 1): _without_surrogates(inner, depth + 1) for key, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [_without_surrogates(inner, depth + 1) for inner in value]
    return value


def seal(body: Mapping[str, object], *, schema: Schema, owner: Owner, at: datetime | None = None) -> bytes:
    """The bytes of a document. `body` holds JSON values only."""
    document = {
        "schema": schema.name,
        "version": schema.version,
        "session": owner.session,
        "repository": owner.repository,
        "written_at": timestamp(at),
        "writer": writer_version(),
        "body": body,
    }
    if depth_of(body) > DEPTH_LIMIT:
        raise ValueError(f"a document may nest {DEPTH_LIMIT} deep")
    rest = encode(document, indent=True)[2:] + b"\n"  # without its own `{` and newline
    return b'{"sha256":"' + hashlib.sha256(rest).hexdigest().encode() + b'",\n' + rest


def unseal(
    data: bytes, *, path: Path, schema: Schema, owner: Owner, trust: Trust | None = None, now: datetime | None = None
) -> dict[str, object]:
    """The body of a sealed document, or a StateError that names the file, the problem and the way out."""
    document = _parse(data, path)
    intact = hashlib.sha256(data[_FIRST_LINE_BYTES:]).hexdigest().encode() == data[11:75]
    _check_schema(document, path, schema, intact)
    if not intact:
        raise StateError(f"{str(path)!r} is damaged: its checksum does not match its bytes", hint=DOCTOR)
    try:
        _check_header(Fields(document, "the envelope"), path, owner, trust or Trust(), now or utc_now())
    except Malformed as problem:
        raise StateError(f"{str(path)!r} is not a document of ours: {problem}", hint=DOCTOR) from problem
    body = document.get("body")
    if not isinstance(body, dict):
        raise StateError(f"{str(path)!r} has no body", hint=DOCTOR)
    return body


def _parse(data: bytes, path: Path) -> dict[str, object]:
    if not data:
        raise StateError(f"{str(path)!r} is empty", hint=DOCTOR)
    if _FIRST_LINE.match(data) is None:
        raise StateError(
            f"{str(path)!r} is damaged, or no document of ours: its first line holds no checksum", hint=DOCTOR
        )
    try:
        document = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise StateError(f"{str(path)!r} is damaged: not JSON ({error})", hint=DOCTOR) from error
    if not isinstance(document, dict):
        raise StateError(f"{str(path)!r} is damaged: not a JSON object", hint=DOCTOR)
    if depth_of(document) > DEPTH_LIMIT + 1:
        raise StateError(f"{str(path)!r} is damaged: nested too deeply", hint=DOCTOR)
    return document


def _check_schema(document: dict[str, object], path: Path, schema: Schema, intact: bool) -> None:
    name, number = document.get("schema"), document.get("version")
    if intact and name != schema.name:
        raise StateError(
            f"{str(path)!r} holds {str(name)[:60]!r}, not {schema.name!r}",
            hint=f"files may have been swapped; {DOCTOR}",
        )
    newer = isinstance(number, int) and not isinstance(number, bool) and number > schema.version
    if newer:
        state = "" if intact else ", or damaged"
        raise StateError(
            f"{str(path)!r} has schema version {number}; this leadline reads {schema.version}{state}",
            hint="a newer leadline wrote it: upgrade leadline, then try again",
        )
    if intact and number != schema.version:
        raise StateError(
            f"{str(path)!r} has schema version {str(number)[:20]}; this leadline reads {schema.version}",
            hint="start a new exploration, or use the leadline version that wrote it",
        )


def _check_header(fields: Fields, path: Path, owner: Owner, trust: Trust, now: datetime) -> None:
    session = fields.text("session", limit=200)
    if session != owner.session:
        raise StateError(
            f"{str(path)!r} belongs to session {session!r}, not to {owner.session!r}",
            hint="a file was copied between sessions; put the right one back, or remove the session",
        )
    repository = fields.text("repository", limit=300)
    if repository != owner.repository:
        raise StateError(
            f"{str(path)!r} belongs to repository {repository!r}, not to {owner.repository!r}",
            hint="the state folder was copied or renamed; put it back, or start a new exploration",
        )
    fields.text("writer", limit=100)
    check_written_at(fields.text("written_at", limit=40), path, trust, now)


def check_written_at(text: str, path: Path, trust: Trust, now: datetime) -> None:
    """Refuse what was written in the future, or longer ago than the work may last."""
    at = parse_timestamp(text)
    if at > now + trust.max_skew:
        raise StateError(
            f"{str(path)!r} was written in the future: {text}, it is now {timestamp(now)}",
            hint="set the clock of this machine right, then try again",
        )
    if trust.max_age is not None and now - at > trust.max_age:
        raise StateError(
            f"{str(path)!r} was written {(now - at).days} days ago, more than the {trust.max_age.days} allowed",
            hint="the code has likely moved on: start a new exploration, or allow older state in the configuration",
        )


def write_document(
    path: Path,
    body: Mapping[str, object],
    *,
    schema: Schema,
    owner: Owner,
    at: datetime | None = None,
    lasting: bool = True,
) -> None:
    """Seal and replace (`lasting`: see `replace_file`). The label of its operations is `replace:<schema name>`."""
    data = seal(body, schema=schema, owner=owner, at=at)
    replace_file(path, data, label=f"replace:{short_name(schema)}", lasting=lasting)


def read_document(
    path: Path, *, schema: Schema, owner: Owner, trust: Trust | None = None, now: datetime | None = None
) -> dict[str, object]:
    """Read and open. FileNotFoundError passes: what a missing document means, the caller knows."""
    data = read_private(path, limit_bytes=DOCUMENT_LIMIT_BYTES, label=f"read:{short_name(schema)}")
    return unseal(data, path=path, schema=schema, owner=owner, trust=trust, now=now)


def check_document(path: Path, *, owner: Owner) -> None:
    """Whether it is sound and of this session, whatever its schema. StateError if not."""
    try:
        data = read_private(path, limit_bytes=DOCUMENT_LIMIT_BYTES, label="read:document")
    except FileNotFoundError:
        return
    document = _parse(data, path)
    name, number = document.get("schema"), document.get("version")
    if not isinstance(name, str) or not isinstance(number, int):
        raise StateError(f"{str(path)!r} has no schema", hint=DOCTOR)
    unseal(data, path=path, schema=Schema(name=name, version=number), owner=owner, trust=TIMELESS)


def short_name(schema: Schema) -> str:
    """`leadline/manifest` -> `manifest`."""
    return schema.name.rpartition("/")[2]
