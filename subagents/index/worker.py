"""The process that reads and parses files for a build: `python -c BOOT`, tasks on stdin, records on stdout.

A process of its own, because py-tree-sitter holds the GIL, because a grammar that crashes or never ends on hostile
input must not take the session with it, and because its memory can be limited. It is started as a plain program, not
through multiprocessing, which would run the caller's main module again.
"""

from __future__ import annotations

import gc
import pickle
import resource
import struct
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import IO, Any, Protocol

from scratch.redaction import redact_text
from subagents.codebase.textfile import (
    classify,
    decode_bytes,
    language_of,
)
from subagents.codebase.types import CannotRead, FileEntry, Skipped
from subagents.index.clean import are_clean
from subagents.index.extract import Extracted, extract
from subagents.index.extras import BlobExtra, Extract, FileFacts
from subagents.index.languages import GRAMMARS, lacks_grammar, settle
from subagents.index.records import BlobRecord, encode, used_names

PARSE_LIMIT_BYTES = 3 * 1024 * 1024
WORDS_LIMIT_BYTES = 1024 * 1024
MEMORY_LIMIT_BYTES = 3 * 1024**3
"""Address space of a worker; a file that wants more is reported as a parse error."""

_OUT_OF_MEMORY = BlobRecord(None, 0, "parse_error", "out of memory")

BOOT = "import sys; sys.path[:] = sys.argv[1:]; from subagents.index.worker import main; main()"

LENGTH = struct.Struct("<I")


class Reader(Protocol):
    """Gives the verified bytes of an entry, or raises CannotRead."""

    def read(self, entry: FileEntry) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Setup:
    """First message to a worker. Without a reader, tasks carry the bytes themselves."""

    reader: Reader | None
    extras: tuple[BlobExtra, ...]


@dataclass(frozen=True, slots=True)
class FileTask:
    number: int
    entry: FileEntry
    data: bytes | Skipped | None


def send(stream: IO[bytes], message: Any) -> None:
    data = pickle.dumps(message, protocol=5)
    stream.write(LENGTH.pack(len(data)) + data)
    stream.flush()


def receive(stream: IO[bytes]) -> Any:
    """The next message; EOFError when the other side is gone."""
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        raise EOFError
    (length,) = LENGTH.unpack(head)
    data = stream.read(length)
    if len(data) < length:
        raise EOFError
    return pickle.loads(data)


def read_task(task: FileTask, reader: Reader | None) -> bytes | Skipped:
    if task.data is not None:
        return task.data
    if reader is None:
        return Skipped(task.entry.path, "unreadable")
    try:
        return reader.read(task.entry)
    except CannotRead as error:
        return error.skipped


@dataclass(frozen=True, slots=True)
class _Decoded:
    """One file that is to be read, as text and as UTF-8."""

    path: str
    language: str | None
    text: str
    data: bytes
    lines: int


def process(path: str, data: bytes | Skipped) -> tuple[BlobRecord, FileFacts | None]:
    """All that the index keeps of one file's bytes, and what its extras are made of, if it was read.

    `path` only decides the language. Secrets are removed before anything is looked at, so none is in what is kept, in
    whatever form; what replaces them keeps the lines where they are.
    """
    found = _decode(path, data)
    if isinstance(found, BlobRecord):
        return found, None
    return _take_apart(found, are_clean([found.text], [found.data])[0])


def _decode(path: str, data: bytes | Skipped) -> _Decoded | BlobRecord:
    """The file as text, or the record of one that is not read."""
    if isinstance(data, Skipped):
        return BlobRecord(None, 0, data.reason, data.detail)
    language = settle(path, language_of(path, data[:200]), data)
    refused = classify(path, data)
    lines = data.count(b"\n") + (1 if data and not data.endswith(b"\n") else 0)
    if refused is not None:
        return BlobRecord(language, lines, refused.reason, refused.detail)
    has_grammar = language in GRAMMARS
    if len(data) > (PARSE_LIMIT_BYTES if has_grammar else WORDS_LIMIT_BYTES):
        return BlobRecord(language, lines, "too_large", f"{len(data)} bytes")
    decoded = decode_bytes(data)
    if decoded is None:
        return BlobRecord(language, lines, "binary")
    encoding, text = decoded
    if encoding != "utf-8" or data.startswith(b"\xef\xbb\xbf"):
        data = text.encode("utf-8", "replace")
        if has_grammar:
            lines = _lines_of(text)
    return _Decoded(path, language, text, data, lines)


def _lines_of(text: str) -> int:
    return text.count("\n") + (1 if text and not text.endswith("\n") else 0)


def _take_apart(found: _Decoded, is_clean: bool) -> tuple[BlobRecord, FileFacts]:
    path, language, text, data, lines = found.path, found.language, found.text, found.data, found.lines
    has_grammar = language in GRAMMARS
    if not is_clean:
        text, secrets = redact_text(text)
        if secrets and has_grammar:
            data, lines = text.encode("utf-8", "replace"), _lines_of(text)
    extracted = Extracted()
    reason = "no_grammar" if lacks_grammar(language) else ""
    detail = f"{language}: read as plain words" if reason else ""
    if language is not None and has_grammar:
        extracted = extract(data, language)
        if extracted.cut:
            reason, detail = "too_large", "references beyond the limit were left out"
    record = replace(encode(extracted, language, lines), reason=reason, detail=detail)
    names = used_names(extracted)
    return record, FileFacts(path=path, language=language, text=text, rows=extracted.symbols, names=names)


def process_batch(batch: Sequence[FileTask], reader: Reader | None, extras: Sequence[Extract]) -> list[BlobRecord]:
    """One record a task, in their order. A file that wants too much memory is reported; whatever else goes wrong, goes
    up."""
    records: list[BlobRecord] = []
    decoded: dict[int, _Decoded] = {}
    for task in batch:
        try:
            read = _decode(task.entry.path, read_task(task, reader))
        except MemoryError:
            read = _OUT_OF_MEMORY
        if isinstance(read, _Decoded):
            decoded[len(records)] = read
        records.append(read if isinstance(read, BlobRecord) else _OUT_OF_MEMORY)
    facts: dict[int, FileFacts] = {}
    for (place, one), is_clean in zip(decoded.items(), _are_clean(list(decoded.values())), strict=True):
        with suppress(MemoryError):
            records[place], facts[place] = _take_apart(one, is_clean)
    for place, made in zip(facts, zip(*_extras_of(list(facts.values()), extras), strict=True), strict=False):
        records[place] = replace(records[place], extras=made) if None not in made else _OUT_OF_MEMORY
    return records


def _are_clean(several: Sequence[_Decoded]) -> list[bool]:
    try:
        return are_clean([one.text for one in several], [one.data for one in several])
    except MemoryError:
        return [False] * len(several)  # redaction decides, file by file


def _extras_of(facts: list[FileFacts], extras: Sequence[Extract]) -> list[list[bytes | None]]:
    """For each extra what it made of each file; None where that wanted too much memory."""
    made: list[list[bytes | None]] = []
    for function in extras:
        own: list[bytes | None] = []
        try:
            own += function(facts)
        except MemoryError:
            for one in facts:
                try:
                    own += function([one])
                except MemoryError:
                    own.append(None)
        made.append(own)
    return made


def main() -> None:
    """Serve until stdin ends: for each batch of tasks, a list of as many records."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if hard == resource.RLIM_INFINITY or hard > MEMORY_LIMIT_BYTES:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT_BYTES, hard))
    stdin, stdout = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr
    try:
        setup: Setup = receive(stdin)
        extras = [extra.load_extract() for extra in setup.extras]
        send(stdout, None)  # ready
        gc.disable()  # extraction makes many objects and no cycles; scanning them costs a tenth of it
        gc.freeze()
        while True:
            gc.collect(0)
            send(stdout, process_batch(receive(stdin), setup.reader, extras))
    except (EOFError, BrokenPipeError, KeyboardInterrupt):
        sys.stderr.close()


if __name__ == "__main__":
    main()
