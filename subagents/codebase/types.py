"""The code base as subagents see it: the vocabulary shared by snapshot, index, ranking, engines and tools. No I/O.

Path keys. Everything above the snapshot names a file by its *path key*: the file's path relative to the repository
root, `/` between parts, decoded as UTF-8; a byte that is no UTF-8 is written as the four characters `\\xNN`. Only the
snapshot knows the raw bytes. A path key is always valid Unicode and safe to put into JSON; it is not safe to print
(control characters): printing goes through `orchestrator.terminal.printable`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

SnapshotKind = Literal["git", "folder"]
FileMode = Literal["file", "executable", "link", "submodule"]
SkipReason = Literal[
    "binary",
    "too_large",
    "minified",
    "generated",
    "vendored",
    "lfs_pointer",
    "link",
    "submodule",
    "unreadable",
    "changed_while_reading",
    "no_grammar",
    "parse_timeout",
    "parse_error",
    "time_limit",
    "out_of_scope",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotId:
    """Which code a session is about. `tree` is a git tree id in both kinds (a folder is frozen as a tree object)."""

    kind: SnapshotKind
    commit: str | None
    tree: str
    dirty: bool


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One path of the snapshot. `blob` is the git blob id of the bytes; `raw` the path's own bytes."""

    path: str
    raw: bytes
    blob: str
    mode: FileMode


@dataclass(frozen=True, slots=True, kw_only=True)
class TextFile:
    """A decoded file. `lines` are split at newline only (a trailing CR is dropped), as git and rg count."""

    path: str
    blob: str
    encoding: str
    lines: tuple[str, ...]

    def quote(self, start: int, end: int) -> str:
        """Lines start..end (from 1, inclusive), joined by newline. Raises ValueError outside the file."""
        if not 1 <= start <= end <= len(self.lines):
            raise ValueError(f"lines {start}-{end} are not inside {self.path} (1-{len(self.lines)})")
        return "\n".join(self.lines[start - 1 : end])


@dataclass(frozen=True, slots=True)
class Skipped:
    """Why a path was not read (or only in part). `detail` is for people, e.g. the size."""

    path: str
    reason: SkipReason
    detail: str = ""


class CannotRead(Exception):
    """A path of the snapshot that cannot be given as text; carries the reason for coverage."""

    def __init__(self, skipped: Skipped) -> None:
        super().__init__(f"{skipped.path}: {skipped.reason} {skipped.detail}".rstrip())
        self.skipped = skipped


class Snapshot(Protocol):
    """A frozen repository. Thread-safe. `close` may be called twice and removes temporary copies."""

    @property
    def id(self) -> SnapshotId: ...
    @property
    def root(self) -> Path:
        """Folder of the working tree, or the bare repository. For display and for resume, never for reading files."""
        ...

    @property
    def repository_key(self) -> str:
        """Stable, filesystem-safe name of this repository on this machine (name and hash of its resolved path)."""
        ...

    @property
    def scope(self) -> tuple[str, ...]:
        """Path keys that REPO (a subfolder) and --scope restrict the session to; empty: everything."""
        ...

    def files(self) -> Mapping[str, FileEntry]:
        """Every path inside the scope, in path order, links and submodules included."""
        ...

    def excluded(self) -> Sequence[Skipped]:
        """What lies in the working tree and is no part of the snapshot, with the reason; for coverage."""
        ...

    def read_bytes(self, path: str) -> bytes:
        """Exactly the bytes that hash to the entry's blob, whatever happened to the working tree since.

        Raises CannotRead (link, submodule, too_large, unreadable), KeyError for a path not in the snapshot.
        """
        ...

    def text(self, path: str) -> TextFile:
        """Decoded text (UTF-8, UTF-16 with BOM or by heuristics, Latin-1). Raises CannotRead, e.g. binary."""
        ...

    def close(self) -> None: ...


# --- symbols and the graph --------------------------------------------------------------------------------------

SymbolKind = Literal[
    "module", "class", "interface", "struct", "enum", "trait", "function", "method", "constructor",
    "property", "field", "constant", "variable", "type", "macro", "namespace",
]  # fmt: skip
ReferenceKind = Literal["call", "name", "inherit", "import", "decorator"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Symbol:
    """A definition. `qualified` is the dotted nesting inside its file (`Flask.wsgi_app`); lines from 1, inclusive."""

    path: str
    name: str
    qualified: str
    kind: SymbolKind
    start: int
    end: int
    signature: str
    """The declaration on one line, at most 200 characters."""
    doc: str
    """First sentence or line of its docstring or of the comment above it, at most 200 characters; may be empty."""
    decorators: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A use of a name. `receiver` is what stands before the dot (`self`, `ctx`, `Flask`), or empty."""

    path: str
    line: int
    name: str
    kind: ReferenceKind
    receiver: str
    inside: str
    """Qualified name of the innermost enclosing definition, or empty at top level."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportEdge:
    """One import statement. `target` is a path key when it resolves into the snapshot, else None (external)."""

    source: str
    line: int
    module: str
    target: str | None
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CallEdge:
    """`caller` calls `callee` at `path:line`. `certainty` in (0, 1]: 1 when the name resolves to one definition by
    import, receiver type, self or same file; lower when several definitions of that name compete."""

    caller: Symbol
    callee: Symbol
    path: str
    line: int
    certainty: float


class CodeIndex(Protocol):
    """Symbols, references, imports and documentation of one snapshot. Reads are thread-safe.

    Source: subagents.index. Everything derives from blobs and can be rebuilt.
    """

    def paths(self) -> Sequence[str]:
        """Paths that were read (parsed, or tokenised as plain text)."""
        ...

    def language(self, path: str) -> str | None: ...
    def line_count(self, path: str) -> int: ...
    def skipped(self) -> Sequence[Skipped]: ...
    def symbols(self, path: str) -> Sequence[Symbol]:
        """Definitions of one file in line order, nested ones after their parents."""
        ...

    def symbol_at(self, path: str, line: int) -> Symbol | None:
        """The innermost definition that holds this line."""
        ...

    def definitions(self, name: str, limit: int = 50) -> Sequence[Symbol]:
        """By simple name (`push`), or by a dotted tail of the qualified one (`AppContext.push`), exact case first."""
        ...

    def references(self, name: str, limit: int = 200) -> Sequence[Reference]: ...
    def references_in(self, path: str, start: int, end: int) -> Sequence[Reference]: ...
    def callees(self, symbol: Symbol, limit: int = 50) -> Sequence[CallEdge]:
        """What the body of `symbol` calls inside this snapshot, in line order, resolved as well as names allow."""
        ...

    def callers(self, symbol: Symbol, limit: int = 50, *, tests: bool = True) -> Sequence[CallEdge]:
        """Surest first; without `tests`, files of tests are not looked at, which saves most of the work."""
        ...

    def bases(self, symbol: Symbol) -> Sequence[Symbol]: ...
    def subclasses(self, symbol: Symbol) -> Sequence[Symbol]: ...
    def imports(self, path: str) -> Sequence[ImportEdge]: ...
    def importers(self, path: str) -> Sequence[ImportEdge]: ...
    def import_edges(self) -> Iterable[tuple[str, str]]:
        """All resolved (source, target) pairs of files, once each: what import graphs are built from."""
        ...


# --- ranked search ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class SymbolHit:
    symbol: Symbol
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FileHit:
    """One ranked file: why it is here, and the symbols to look at, best first."""

    path: str
    score: float
    reasons: tuple[str, ...]
    symbols: tuple[SymbolHit, ...]


class Finder(Protocol):
    """Ranked search over one snapshot. Source: subagents.ranking."""

    def find(self, query: str, *, limit: int = 20, include_tests: bool = True) -> Sequence[FileHit]: ...
    def unknown_names(self, query: str) -> Sequence[str]:
        """Identifiers written in the query that no file of the snapshot holds as one word."""
        ...

    def find_symbols(self, query: str, *, limit: int = 20) -> Sequence[SymbolHit]:
        """Symbols ranked over the whole snapshot, not file by file."""
        ...


# --- text search ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class TextMatch:
    path: str
    line: int
    text: str
    """The line, cut to the width asked for around the match; `cut` says so."""
    cut: bool = False
    before: tuple[str, ...] = ()
    """Lines before this one, where context was asked for; each cut to the width too."""
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TextSearchResult:
    """Matches survive partial errors. `timed_out` or `truncated` forbid any claim of absence."""

    matches: tuple[TextMatch, ...]
    files_searched: int
    truncated: bool
    timed_out: bool
    errors: tuple[str, ...]


Progress = Callable[[str, int, int], None]
"""(what, done, total): called from any thread, often; total 0 when unknown."""
