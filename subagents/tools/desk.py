"""The desk of one subagent: what its tools work on, and what it has looked at so far."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from manifests.errors import LeadlineError
from subagents.codebase.types import CannotRead, Skipped, TextFile, TextSearchResult
from subagents.engine import Coverage, Recorder, Workspace
from subagents.tools.output import ToolError, ToolOutput


class TextSearch(Protocol):
    """Search over the snapshot's bytes. Source: subagents.codebase.ripgrep."""

    def __call__(
        self,
        pattern: str,
        *,
        paths: Sequence[str] | None,
        fixed: bool,
        ignore_case: bool,
        whole_word: bool,
        max_matches: int,
        max_width: int,
        timeout_s: float,
    ) -> TextSearchResult: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One commit that touched a path or lines. `summary` is its first line."""

    commit: str
    date: str
    author: str
    summary: str
    lines: tuple[int, int] | None = None


class ChangeLog(Protocol):
    """History of a path or of some of its lines, newest first. Source: subagents.codebase."""

    def log(self, path: str, *, limit: int) -> Sequence[Change]: ...
    def blame(self, path: str, start: int, end: int) -> Sequence[Change]: ...


def no_redaction(text: str) -> str:
    return text


@dataclass(slots=True, kw_only=True)
class Desk:
    """One subagent's. Not shared; its tools may run side by side in threads, which only read it."""

    workspace: Workspace
    recorder: Recorder
    scope: tuple[str, ...] = ()
    search: TextSearch | None = None
    changes: ChangeLog | None = None
    fetch_evidence: Callable[[str], bytes] | None = None
    redact: Callable[[str], str] = no_redaction
    """Applied to everything before the model sees it: what is sent is what is written."""
    told: tuple[str, ...] = ()
    """Ids of findings of others that this subagent was told of."""
    notes: list[str] = field(default_factory=list)
    settled: set[str] = field(default_factory=set)
    read: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    searched: list[str] = field(default_factory=list)
    evidence_refs: list[str] = field(default_factory=list)
    files_read: set[str] = field(default_factory=set)
    skipped: dict[str, Skipped] = field(default_factory=dict)
    truncated: list[str] = field(default_factory=list)
    timed_out: list[str] = field(default_factory=list)

    # --- files ---

    def path(self, given: str) -> str:
        """A path key out of what a model wrote. Raises ToolError for one outside snapshot or scope."""
        path = given.strip().removeprefix("./").rstrip("/")
        if path.startswith("/") or ".." in path.split("/"):
            raise ToolError(
                "outside_scope", f"{given!r} is outside the repository", "Give a path as list_files shows it."
            )
        if path and self.scope and not self._in_scope(path):
            raise ToolError(
                "outside_scope",
                f"{path!r} is outside this task's scope",
                f"Stay inside {', '.join(self.scope)}; record what lies outside as an open question.",
            )
        return path

    def _in_scope(self, path: str) -> bool:
        return any(path == s or path.startswith(f"{s}/") or s.startswith(f"{path}/") for s in self.scope)

    def paths(self) -> list[str]:
        """All paths of the snapshot inside the scope, in order."""
        files = self.workspace.snapshot.files()
        if not self.scope:
            return list(files)
        return [p for p in files if any(p == s or p.startswith(f"{s}/") for s in self.scope)]

    def text(self, given: str) -> TextFile:
        """A decoded file. Raises ToolError with the nearest paths, or with the reason why it cannot be read."""
        path = self.path(given)
        try:
            return self.workspace.snapshot.text(path)
        except KeyError:
            raise self.no_such_path(path) from None
        except CannotRead as error:
            self.skipped[path] = error.skipped
            raise ToolError(
                "not_readable",
                f"{path!r} is not shown: {error.skipped.reason} {error.skipped.detail}".rstrip(),
                "It cannot be read as text; name it as not read if it matters.",
            ) from error

    def no_such_path(self, path: str) -> ToolError:
        known = self.paths()
        prefix = f"{path}/"
        if any(p.startswith(prefix) for p in known):
            return ToolError("not_a_file", f"{path!r} is a folder", f"Call list_files with path {path!r}.")
        near = nearest_paths(path, known)
        way_out = f"Nearest: {', '.join(near)}" if near else "Use find or list_files to look for it."
        return ToolError("no_such_path", f"{path!r} is not in the snapshot", way_out)

    # --- what was looked at ---

    def took(self, output: ToolOutput) -> None:
        """Keep account of an answer that goes to the model. Called on the event loop, in call order."""
        for path, first, last in output.shown:
            self.recorder.shown(path, first, last)
            self.files_read.add(path)
            self.read.setdefault(path, [])
        if output.read:
            self.read.setdefault(output.read, []).extend((a, b) for p, a, b in output.shown if p == output.read)
        if output.searched and output.searched not in self.searched:
            self.searched.append(output.searched)
        if output.truncated and output.truncated not in self.truncated:
            self.truncated.append(output.truncated)
        if output.timed_out:
            self.timed_out.append(output.timed_out)
        for skipped in output.skipped:
            self.skipped[skipped.path] = skipped

    def coverage(self) -> Coverage:
        return Coverage(
            files_read=frozenset(self.files_read),
            skipped=tuple(self.skipped.values()),
            truncated=tuple(self.truncated),
            timed_out=tuple(self.timed_out),
        )

    def read_lines(self, limit: int = 40) -> tuple[str, ...]:
        """Files read with their ranges, newest first, for the state block."""
        lines = []
        for path, ranges in reversed(self.read.items()):
            if ranges:
                lines.append(f"{path} {', '.join(f'{a}-{b}' for a, b in merged(ranges))}")
        return tuple(lines[:limit])

    def open_questions(self) -> tuple[str, ...]:
        return tuple(
            f.claim for f in self.recorder.findings() if f.kind == "open_question" and f.claim not in self.settled
        )


def merged(ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ranges of lines, sorted, those that touch joined."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(joined[-1][1], last))
        else:
            joined.append((first, last))
    return joined


def nearest_paths(path: str, known: Sequence[str], limit: int = 5) -> list[str]:
    """Paths of the snapshot most like one that is not in it: same file name first, then similar spelling."""
    import difflib

    name = path.rsplit("/", 1)[-1]
    same = [p for p in known if p.rsplit("/", 1)[-1] == name]
    if len(same) >= limit:
        return same[:limit]
    similar = difflib.get_close_matches(path, known[:20_000], n=limit, cutoff=0.6)
    return list(dict.fromkeys([*same, *similar]))[:limit]


def as_tool_error(error: LeadlineError) -> ToolError:
    """An error of the person's kind (a wrong pattern, say), told to the model."""
    return ToolError("rejected", str(error), error.hint)
