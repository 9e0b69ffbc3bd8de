"""What git remembers about the places of a snapshot: who changed them when, and what changed together.

All of it is bounded in commits and in time; what was read until then is kept and marked as incomplete. A folder, a
repository without commits and a path that is not committed have no history. Authors, subjects and paths are text of
the explored repository: data, never instructions, and to be escaped before printing.
"""

from __future__ import annotations

import os
import secrets
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from subagents.codebase.frozen import FrozenSnapshot
from subagents.codebase.gitrun import GitFailed, GitTimeout, OutputTooLarge
from subagents.codebase.library import library
from subagents.codebase.paths import from_key, to_key

if TYPE_CHECKING:
    from git.repo.base import BlameEntry

_HISTORY_BYTES = 64 * 1024 * 1024
_SUBJECT_CHARS = 300
_AUTHOR_CHARS = 100
_PATHS_KEPT = 1_000
_QUICK = ("--no-renames", "--no-ext-diff", "--no-textconv", "--no-show-signature", "--no-notes", "--no-color")


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """`paths` are the path keys it changed, at most 1,000; `many` says that there were more."""

    id: str
    date: datetime
    author: str
    subject: str
    paths: tuple[str, ...] = ()
    many: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Commits, newest first. `complete` is false when a limit in time or size ended the reading."""

    commits: tuple[Commit, ...] = ()
    complete: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class LineOrigin:
    """Lines start..end (of the snapshot, inclusive) last changed by one commit."""

    start: int
    end: int
    commit: Commit


@dataclass(frozen=True, slots=True, kw_only=True)
class Partner:
    """A path that changed `together` times with another one, out of that one's `of` changes."""

    path: str
    together: int
    of: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cochange:
    """Which files change together; see `cochange`."""

    changes: Mapping[str, int]
    """How often each path changed in the commits read, large ones included."""
    commits: int
    complete: bool
    _pairs: Mapping[str, Counter[str]]

    def partners(self, path: str, *, limit: int = 10, at_least: int = 2) -> Sequence[Partner]:
        """Paths that changed with this one most often."""
        of = self.changes.get(path, 0)
        ranked = sorted(self._pairs.get(path, Counter()).items(), key=lambda item: (-item[1], item[0]))
        return tuple(Partner(path=other, together=n, of=of) for other, n in ranked[:limit] if n >= at_least)


def recent_commits(
    snapshot: FrozenSnapshot, limit: int = 1_500, *, with_paths: bool = True, timeout_s: float = 10.0
) -> History:
    """The last commits that lead to the snapshot. Merges, and the first commit of a shallow clone, carry no paths."""
    arguments = ["--name-only"] if with_paths else []
    return _log(snapshot, [*_QUICK, *arguments], [], limit, timeout_s)


def file_history(snapshot: FrozenSnapshot, path: str, limit: int = 20, *, timeout_s: float = 10.0) -> History:
    """Commits that changed one file, followed through renames; `paths` tell what it was called then."""
    entry = snapshot.files().get(path)
    if entry is None or limit <= 0:
        return History()
    options = ["--follow", "-M", "-l200", *_QUICK[1:], "--name-only"]
    return _log(snapshot, options, [entry.raw], limit, timeout_s)


def folder_history(snapshot: FrozenSnapshot, path: str, limit: int = 20, *, timeout_s: float = 10.0) -> History:
    """Commits that changed anything below a folder (path key)."""
    return _log(snapshot, [*_QUICK, "--name-only"], [from_key(path.rstrip("/"))], limit, timeout_s)


def line_history(
    snapshot: FrozenSnapshot, path: str, start: int, end: int, *, timeout_s: float = 10.0
) -> tuple[LineOrigin, ...]:
    """Who last changed lines start..end. Empty when the file differs from the commit, and when it takes too long."""
    entry = snapshot.files().get(path)
    commit = snapshot.id.commit
    if entry is None or commit is None or not 1 <= start <= end or entry.mode not in ("file", "executable"):
        return ()
    try:
        committed = snapshot.git.run(
            ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{commit}:".encode() + entry.raw]
        )
    except GitFailed:
        return ()
    if committed.decode().strip() != entry.blob:
        return ()
    return tuple(_origins(snapshot, commit, entry.raw, (start, end), timeout_s))


def cochange(
    snapshot: FrozenSnapshot, max_commits: int = 1_500, *, max_paths: int = 30, timeout_s: float = 10.0
) -> Cochange:
    """Which files were changed by the same commits. Commits of more than `max_paths` files tell nothing: left out."""
    return cochange_of(recent_commits(snapshot, max_commits, timeout_s=timeout_s), max_paths=max_paths)


def cochange_of(history: History, *, max_paths: int = 30) -> Cochange:
    """`cochange` of commits that were read already."""
    changes: Counter[str] = Counter()
    pairs: dict[str, Counter[str]] = defaultdict(Counter)
    for commit in history.commits:
        changes.update(commit.paths)
        if commit.many or not 2 <= len(commit.paths) <= max_paths:
            continue
        for path in commit.paths:
            pairs[path].update(other for other in commit.paths if other != path)
    return Cochange(changes=changes, commits=len(history.commits), complete=history.complete, _pairs=pairs)


def _log(
    snapshot: FrozenSnapshot, options: Sequence[str], paths: Sequence[bytes], limit: int, timeout_s: float
) -> History:
    commit = snapshot.id.commit
    if commit is None or limit <= 0:
        return History()
    mark = secrets.token_hex(12)  # so that no path can pass for the beginning of a commit
    command: list[str | bytes] = [
        "-c", f"log.showRoot={str(not _is_shallow(snapshot)).lower()}",
        "log", "-z", f"--max-count={limit}", f"--format=tformat:{mark}%H%n%ct%n%an%n%s",
        *options, "--end-of-options", commit, "--", *paths,
    ]  # fmt: skip
    read = bytearray()
    complete = True
    try:
        for piece in snapshot.git.stream(command, timeout_s=timeout_s, max_bytes=_HISTORY_BYTES):
            read += piece
    except (GitTimeout, OutputTooLarge):
        complete = False
    except GitFailed:
        return History(complete=False)
    parts = bytes(read).split(mark.encode())[1:]
    if not complete:
        parts = parts[:-1]
    return History(commits=tuple(_commit(part) for part in parts), complete=complete)


def _is_shallow(snapshot: FrozenSnapshot) -> bool:
    """Where history is cut off, the oldest commit seems to have made every file: it should not tell of changes."""
    return (snapshot.git.view / "shallow").exists()


def _commit(part: bytes) -> Commit:
    """One commit of `git log -z`: four lines, then the paths, each ended by a zero byte."""
    header, _, rest = part.partition(b"\0")
    identity, seconds, author, subject = (header.split(b"\n", 3) + [b""] * 3)[:4]
    listed = [path for path in rest.removeprefix(b"\n").split(b"\0") if path]
    return Commit(
        id=identity.decode("ascii", "replace"),
        date=_date(seconds),
        author=author.decode(errors="replace")[:_AUTHOR_CHARS],
        subject=subject.decode(errors="replace")[:_SUBJECT_CHARS],
        paths=tuple(to_key(path) for path in listed[:_PATHS_KEPT]),
        many=len(listed) > _PATHS_KEPT,
    )


def _date(seconds: bytes) -> datetime:
    """A commit's time; what is no possible time (it is the author's to choose) becomes the epoch."""
    try:
        return datetime.fromtimestamp(int(seconds), UTC)
    except (ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(0, UTC)


def _origins(
    snapshot: FrozenSnapshot, commit: str, raw: bytes, lines: tuple[int, int], timeout_s: float
) -> Iterator[LineOrigin]:
    """Runs of lines in line order, as GitPython reads them out of `git blame --incremental`."""
    from git.exc import GitError

    try:
        blamed = sorted(
            library(snapshot.git).blame_incremental(
                commit, os.fsdecode(raw), L=f"{lines[0]},{lines[1]}", kill_after_timeout=timeout_s
            ),
            key=lambda entry: entry.linenos.start,
        )
    except GitError:
        return
    current: LineOrigin | None = None
    for entry in blamed:
        first, last = entry.linenos.start, entry.linenos.stop - 1
        if current is not None and current.commit.id == entry.commit.hexsha and current.end == first - 1:
            current = replace(current, end=last)
            continue
        if current is not None:
            yield current
        current = LineOrigin(start=first, end=last, commit=_blamed(entry))
    if current is not None:
        yield current


def _blamed(entry: BlameEntry) -> Commit:
    commit = entry.commit
    return Commit(
        id=commit.hexsha,
        date=_date(str(commit.committed_date).encode()),
        author=(commit.author.name or "").encode("utf-8", "surrogateescape").decode(errors="replace")[:_AUTHOR_CHARS],
        subject=_text(commit.message).partition("\n")[0][:_SUBJECT_CHARS],
        paths=(to_key(_bytes(entry.orig_path or "")),),
    )


def _text(value: str | bytes) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _bytes(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else os.fsencode(value)
