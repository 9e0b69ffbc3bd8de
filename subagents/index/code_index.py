"""The index as everyone reads it: `CodeIndex` over the SQLite file, decoding what is asked for and keeping a little."""

from __future__ import annotations

import re
import sqlite3
import threading
from array import array
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from subagents.codebase.textfile import is_test_path
from subagents.codebase.types import CallEdge, CannotRead, ImportEdge, Reference, Skipped, Snapshot, Symbol
from subagents.index.records import (
    Damaged,
    decode_imports,
    decode_strings,
    decode_symbols,
    decode_targets,
    name_key,
    numbers,
    to_symbol,
    unseal,
)
from subagents.index.rows import IMPORT, REFERENCE_KINDS, ImportRow, is_declaration
from subagents.index.sections import DocSection, sections
from subagents.index.store import EDGE_BITS, POSTING_BITS, is_damage, translate

if TYPE_CHECKING:
    from subagents.index.calls import CallResolver

T = TypeVar("T")
_EDGE_MASK = (1 << EDGE_BITS) - 1
_MOST_REMEMBERED = 4_000
_POSTING_MASK = (1 << POSTING_BITS) - 1


@dataclass(frozen=True, slots=True)
class ResolvedImport:
    """One import statement of a file: what it names under which alias, and where that is."""

    line: int
    module: str
    names: tuple[tuple[str, str], ...]
    local: str
    """The name that stands for the module as a whole, or empty."""
    targets: tuple[tuple[str, tuple[str, ...]], ...]
    """(path, names found there); empty for an external module."""


@dataclass(frozen=True, slots=True)
class Binding:
    """A variable and what tells its type: `how` is 0 for a call's callee, 1 for a declared type, 2 for another name."""

    line: int
    variable: str
    expression: str
    how: int


class FileView:
    """What the index knows of one path, decoded part by part. Made by the index; what it says never changes."""

    def __init__(self, index: StoredIndex, path: str, file: int, blob: int, language: str | None, package: str) -> None:
        self._index = index
        self.path = path
        self.file = file
        self.blob = blob
        self.language = language
        self.package = package
        self.edition = index.edition
        self._made: dict[int, Symbol] = {}

    @cached_property
    def symbols(self) -> tuple[Symbol, ...]:
        return tuple(self.symbol(place) for place in range(len(self._rows)))

    def symbol(self, place: int) -> Symbol:
        """The definition at a place in `symbols`. Most questions want few of a file's: each is made when asked for."""
        made = self._made.get(place)
        if made is None:
            made = self._made[place] = to_symbol(self.path, self._rows[place])
        return made

    @cached_property
    def _rows(self) -> list[tuple[str, str, str, int, int, int, str, str, tuple[str, ...]]]:
        part = self._index.part(self, "symbols")
        return decode_symbols(part) if part else []

    def parent(self, symbol: Symbol) -> Symbol | None:
        """What a definition is nested in."""
        place = self._places.get((symbol.start, symbol.end, symbol.qualified))
        if place is None:
            return None
        above = self._rows[place][5]
        return self.symbol(above) if above >= 0 else None

    @cached_property
    def _places(self) -> dict[tuple[int, int, str], int]:
        """Place in `symbols` by what tells definitions of one file apart; the first of equals."""
        found: dict[tuple[int, int, str], int] = {}
        for place, row in enumerate(self._rows):
            found.setdefault((row[3], row[4], row[1]), place)
        return found

    def ending_in(self, tail: str) -> list[Symbol]:
        """Definitions whose qualified name has this last part (lower case), in line order; only these are made."""
        return [self.symbol(place) for place, own in enumerate(self._tails) if own == tail]

    @cached_property
    def _tails(self) -> list[str]:
        return [row[1].rpartition(".")[2].lower() for row in self._rows]

    @cached_property
    def by_qualified(self) -> ByQualified:
        """The first definition of each qualified name; a definition outranks a declaration."""
        found: dict[str, int] = {}
        rows = self._rows
        for place, row in enumerate(rows):
            known = found.get(row[1])
            if known is None or (rows[known][2] == row[2] and is_declaration(rows[known][2], rows[known][6])):
                found[row[1]] = place
        return ByQualified(self, found)

    @cached_property
    def _starts(self) -> list[int]:
        return [row[3] for row in self._rows]

    def symbol_at(self, line: int) -> Symbol | None:
        """Innermost: of all that hold the line, the one that starts last (and, on one line, comes last)."""
        place = self._place_at(line)
        return self.symbol(place) if place >= 0 else None

    def _place_at(self, line: int) -> int:
        """Place of the innermost definition that holds a line; -1 when there is none."""
        rows = self._rows
        place = bisect_right(self._starts, line) - 1
        while place >= 0:
            if rows[place][4] >= line:
                return place
            above = rows[place][5]
            place = above if above >= 0 and rows[above][4] >= line else place - 1
        return -1

    @cached_property
    def strings(self) -> list[str]:
        part = self._index.part(self, "strings")
        return decode_strings(part) if part else [""]

    @cached_property
    def _references(self) -> array[int]:
        part = self._index.part(self, "refs")
        return numbers(unseal(part)) if part else array("I")

    @cached_property
    def reference_rows(self) -> list[tuple[int, str, str, int]]:
        """(line, name, receiver, kind number), in line order."""
        flat, strings = self._references, self.strings
        rows = [
            (line, strings[name], strings[place >> 3], place & 7)
            for line, name, place in zip(flat[0::3], flat[1::3], flat[2::3], strict=True)
        ]
        rows.sort(key=itemgetter(0))
        return rows

    def references_to(self, name: str) -> list[tuple[int, str, str, int]]:
        """Those of `reference_rows` that have this name, without making the others."""
        spellings = self.strings.count(name)  # more than one: different bytes that are no UTF-8
        if spellings > 1 or "reference_rows" in self.__dict__:
            return [row for row in self.reference_rows if row[1] == name]
        flat, strings = self._references, self.strings
        if not spellings:
            return []
        wanted, named = strings.index(name), flat[1::3]
        rows, at = [], -1
        for _ in range(named.count(wanted)):
            at = named.index(wanted, at + 1)
            place = flat[3 * at + 2]
            rows.append((flat[3 * at], name, strings[place >> 3], place & 7))
        rows.sort(key=itemgetter(0))
        return rows

    @cached_property
    def bindings(self) -> list[Binding]:
        part = self._index.part(self, "bindings")
        if not part:
            return []
        flat, strings = numbers(unseal(part)), self.strings
        return [
            Binding(line, strings[variable], strings[place >> 2], place & 3)
            for line, variable, place in zip(flat[0::3], flat[1::3], flat[2::3], strict=True)
        ]

    @cached_property
    def import_rows(self) -> list[ImportRow]:
        """Imports as written, not yet resolved."""
        part = self._index.part(self, "imports")
        return decode_imports(part) if part else []

    @cached_property
    def imports(self) -> tuple[ResolvedImport, ...]:
        rows = self.import_rows
        targets = self._index.targets(self, len(rows)) if rows else []
        return tuple(
            ResolvedImport(
                line,
                module,
                tuple((name, alias) for name, alias in names),
                local,
                tuple((path, tuple(taken)) for path, taken in targets[place]),
            )
            for place, (line, module, names, local) in enumerate(rows)
        )

    def reference(self, row: tuple[int, str, str, int]) -> Reference:
        line, name, receiver, kind = row
        inside = self._place_at(line)
        return Reference(
            path=self.path,
            line=line,
            name=name,
            kind=REFERENCE_KINDS[kind],
            receiver=receiver,
            inside=self._rows[inside][1] if inside >= 0 else "",
        )


class ByQualified:
    """Definitions of one file by qualified name."""

    def __init__(self, view: FileView, places: dict[str, int]) -> None:
        self._view = view
        self._places = places

    def get(self, name: str) -> Symbol | None:
        place = self._places.get(name)
        return None if place is None else self._view.symbol(place)


class StoredIndex:
    """`CodeIndex` of one snapshot; see that protocol. Made by `open_index`. Thread-safe; also a context manager.

    `notices` says what went wrong and was dealt with (a damaged cache, a cache folder that cannot be written).
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        path: Path,
        snapshot: Snapshot,
        *,
        notices: Sequence[str] = (),
        rebuild: Callable[[], sqlite3.Connection] | None = None,
        on_close: Callable[[], None] | None = None,
    ) -> None:
        self._connection = connection
        self._path = path
        self._snapshot = snapshot
        self._rebuild = rebuild
        self._on_close = on_close
        self._lock = threading.RLock()
        self._views: OrderedDict[str, FileView] = OrderedDict()
        self._defined: dict[str, tuple[int, list[Symbol]]] = {}
        self._closed = False
        self._edition = 0
        self.notices: list[str] = list(notices)

    # --- access ---

    @property
    def file(self) -> Path:
        """The SQLite file."""
        return self._path

    @property
    def edition(self) -> int:
        """How often the file has been rebuilt under this index."""
        return self._edition

    @property
    def snapshot(self) -> Snapshot:
        return self._snapshot

    @contextmanager
    def database(self) -> Iterator[sqlite3.Connection]:
        """The read-only connection, held alone: for extras that read tables of their own. Keep it briefly."""
        with self._lock:
            yield self._connection

    def extra(self, name: str) -> Iterator[tuple[str, bytes]]:
        """(path, what the extra stored), for each file that was read."""
        sql = f"SELECT f.path, e.data FROM file f JOIN extra_{name} e ON e.blob = f.blob ORDER BY f.path"
        return iter(self.rows(sql))

    def rows(self, sql: str, parameters: Sequence[object] = ()) -> list[Any]:
        """All rows of one query, whatever happens to the file meanwhile. A damaged file is rebuilt once."""
        return self._guarded(lambda: self._connection.execute(sql, tuple(parameters)).fetchall())

    def _guarded(self, read: Callable[[], T]) -> T:
        with self._lock:
            try:
                return read()
            except (sqlite3.Error, Damaged) as error:
                if isinstance(error, sqlite3.Error) and not is_damage(error):
                    raise translate(error, self._path) from error
                self._recover()
                try:
                    return read()
                except (sqlite3.Error, Damaged) as again:
                    wrapped = again if isinstance(again, sqlite3.Error) else sqlite3.DatabaseError("malformed")
                    raise translate(wrapped, self._path) from again

    def _recover(self) -> None:
        if self._rebuild is None:
            raise translate(sqlite3.DatabaseError("malformed"), self._path)
        self._connection.close()
        self._views.clear()
        self._connection = self._rebuild()
        self._edition += 1
        self.notices.append(f"the index {str(self._path)!r} was damaged and has been rebuilt")

    def part(self, view: FileView, column: str) -> bytes | None:
        """One sealed part of a file's record, checked; None when there is none."""

        def read() -> bytes | None:
            self._refresh(view)
            row = self._connection.execute(f"SELECT {column} FROM part WHERE blob = ?", (view.blob,)).fetchone()
            if row is None:
                raise Damaged
            if row[0]:
                unseal(row[0])
            return bytes(row[0]) if row[0] else None

        return self._guarded(read)

    def targets(self, view: FileView, count: int) -> list[list[tuple[str, list[str]]]]:
        """For each import of a file, what it was resolved to."""

        def read() -> list[list[tuple[str, list[str]]]]:
            self._refresh(view)
            row = self._connection.execute("SELECT targets FROM file WHERE id = ?", (view.file,)).fetchone()
            if row is None:
                raise Damaged
            if row[0] is None:
                return [[] for _ in range(count)]
            made = decode_targets(row[0])
            if len(made) != count:
                raise Damaged
            return made

        return self._guarded(read)

    def _refresh(self, view: FileView) -> None:
        """A rebuilt file numbers its rows anew, and somebody may still hold a view from before."""
        if view.edition != self._edition:
            row = self._connection.execute("SELECT id, blob FROM file WHERE path = ?", (view.path,)).fetchone()
            if row is None:
                raise Damaged
            view.file, view.blob = row
            view.edition = self._edition

    def view(self, path: str) -> FileView | None:
        """What is known of a path that was read; None for any other."""
        with self._lock:
            known = self._views.get(path)
            if known is not None:
                self._views.move_to_end(path)
                return known
        rows = self.rows(
            "SELECT f.id, f.blob, b.language, b.package FROM file f JOIN blob b ON b.id = f.blob"
            " WHERE f.path = ? AND b.is_read = 1",
            (path,),
        )
        if not rows:
            return None
        made = FileView(self, path, *rows[0])
        with self._lock:
            self._views[path] = made
            while len(self._views) > 800:
                self._views.popitem(last=False)
        return made

    def posted(self, table: str, name: str) -> list[str]:
        """Paths whose blob has a posting for this name, in path order."""
        key = name_key(name) << POSTING_BITS
        rows = self.rows(
            f"SELECT f.path FROM {table} p JOIN file f ON f.blob = (p.key & ?) WHERE p.key BETWEEN ? AND ?",
            (_POSTING_MASK, key, key | _POSTING_MASK),
        )
        return sorted(str(row[0]) for row in rows)

    # --- CodeIndex ---

    def paths(self) -> Sequence[str]:
        return self._paths

    @cached_property
    def _paths(self) -> tuple[str, ...]:
        sql = "SELECT f.path FROM file f JOIN blob b ON b.id = f.blob WHERE b.is_read = 1 ORDER BY f.path"
        return tuple(str(row[0]) for row in self.rows(sql))

    def language(self, path: str) -> str | None:
        return self._languages.get(path)

    @cached_property
    def _languages(self) -> dict[str, str | None]:
        """Of all files: asked for thousands of them one by one."""
        return dict(self.rows("SELECT f.path, b.language FROM file f JOIN blob b ON b.id = f.blob"))

    def line_count(self, path: str) -> int:
        rows = self.rows("SELECT b.lines FROM file f JOIN blob b ON b.id = f.blob WHERE f.path = ?", (path,))
        if not rows:
            raise KeyError(path)
        return int(rows[0][0])

    def files(self) -> list[tuple[str, str | None, int]]:
        """(path, language, lines) of every file that was read, in path order: one query instead of thousands."""
        return self.rows(
            "SELECT f.path, b.language, b.lines FROM file f JOIN blob b ON b.id = f.blob WHERE b.is_read = 1"
            " ORDER BY f.path"
        )

    def skipped(self) -> Sequence[Skipped]:
        rows = self.rows(
            "SELECT path, reason, detail FROM skip UNION ALL SELECT f.path, b.reason, b.detail FROM file f"
            " JOIN blob b ON b.id = f.blob WHERE b.reason != '' ORDER BY 1"
        )
        return [Skipped(*row) for row in rows]

    def symbols(self, path: str) -> Sequence[Symbol]:
        view = self.view(path)
        return view.symbols if view else ()

    def symbol_at(self, path: str, line: int) -> Symbol | None:
        view = self.view(path)
        return view.symbol_at(line) if view else None

    def definitions(self, name: str, limit: int = 50) -> Sequence[Symbol]:
        edition, known = self._edition, self._defined.get(name)
        if known is None or known[0] != edition:
            if len(self._defined) >= _MOST_REMEMBERED:
                self._defined.clear()
            known = self._defined[name] = (edition, self._find_definitions(name))
        return known[1][:limit]

    def _find_definitions(self, name: str) -> list[Symbol]:
        wanted = plain_name(name)
        tail = wanted.rpartition(".")[2] or wanted
        found: list[tuple[tuple[object, ...], Symbol]] = []
        dotted, lower = "." + wanted, ("." + wanted).lower()
        for path in self.posted("definition", tail):
            view = self.view(path)
            for symbol in view.ending_in(tail.lower()) if view else ():
                qualified = "." + symbol.qualified
                if qualified.endswith(dotted) or qualified.lower().endswith(lower):
                    found.append((self._rank(symbol, qualified.endswith(dotted)), symbol))
        found.sort(key=lambda item: item[0])
        return [symbol for _, symbol in found]

    def _rank(self, symbol: Symbol, exact: bool) -> tuple[object, ...]:
        declaration = is_declaration(symbol.kind, symbol.signature) or symbol.path.endswith((".pyi", ".d.ts"))
        minor = symbol.kind in ("variable", "field", "property")
        return (not exact, is_test_path(symbol.path), declaration, minor, symbol.qualified.count("."), symbol.path,
                symbol.start)  # fmt: skip

    def references(self, name: str, limit: int = 200) -> Sequence[Reference]:
        before, _, tail = plain_name(name).rpartition(".")
        tail = tail or name
        found: list[Reference] = []
        for path in sorted(self.posted("reference", tail), key=lambda path: (is_test_path(path), path)):
            view = self.view(path)
            if view is None:
                continue
            for row in view.references_to(tail):
                if not before or row[2].rpartition(".")[2] == before.rpartition(".")[2]:
                    found.append(view.reference(row))
            for line, _, names, _ in view.import_rows:
                if any(name == tail for name, _ in names):
                    found.append(view.reference((line, tail, "", IMPORT)))
            if len(found) >= limit:
                break
        return found[:limit]

    def references_in(self, path: str, start: int, end: int) -> Sequence[Reference]:
        view = self.view(path)
        return [view.reference(row) for row in view.reference_rows if start <= row[0] <= end] if view else ()

    def imports(self, path: str) -> Sequence[ImportEdge]:
        view = self.view(path)
        edges: list[ImportEdge] = []
        for found in view.imports if view else ():
            taken: set[str] = set()
            for target, names in found.targets:
                edges.append(ImportEdge(source=path, line=found.line, module=found.module, target=target, names=names))
                taken.update(names)
            if not found.targets:
                names = tuple(name for name, _ in found.names)
                edges.append(ImportEdge(source=path, line=found.line, module=found.module, target=None, names=names))
        return edges

    def importers(self, path: str) -> Sequence[ImportEdge]:
        """Of a Go file: the importers of its package, whose edges point at the package's representative."""
        wanted = self._package_files(path) if self.language(path) == "go" else [path]
        marks = ",".join("?" * len(wanted))
        sources = self.rows(
            f"SELECT DISTINCT s.path FROM file t JOIN import_in e ON e.key BETWEEN t.id << ? AND (t.id << ?) | ?"
            f" JOIN file s ON s.id = (e.key & ?) WHERE t.path IN ({marks}) ORDER BY s.path",
            (EDGE_BITS, EDGE_BITS, _EDGE_MASK, _EDGE_MASK, *wanted),
        )
        return [edge for (source,) in sources for edge in self.imports(source) if edge.target in wanted]

    def _package_files(self, path: str) -> list[str]:
        """The Go files of a folder, at most as many as one query takes."""
        folder = path.rpartition("/")[0]
        low = f"{folder}/" if folder else ""
        rows = self.rows(
            "SELECT path FROM file WHERE path >= ? AND path < ? AND path LIKE '%.go'", (low, low + "\U0010ffff")
        )
        return [found for (found,) in rows if found.rpartition("/")[0] == folder][:500]

    def import_edges(self) -> Iterable[tuple[str, str]]:
        return self.rows(
            "SELECT s.path, t.path FROM import_out e JOIN file s ON s.id = (e.key >> ?) JOIN file t"
            " ON t.id = (e.key & ?)",
            (EDGE_BITS, _EDGE_MASK),
        )

    @cached_property
    def _calls(self) -> CallResolver:
        from subagents.index.calls import CallResolver

        return CallResolver(self)

    def callees(self, symbol: Symbol, limit: int = 50) -> Sequence[CallEdge]:
        return self._calls.callees(symbol, limit)

    def callers(self, symbol: Symbol, limit: int = 50, *, tests: bool = True) -> Sequence[CallEdge]:
        return self._calls.callers(symbol, limit, tests=tests)

    def bases(self, symbol: Symbol) -> Sequence[Symbol]:
        return self._calls.bases(symbol)

    def subclasses(self, symbol: Symbol) -> Sequence[Symbol]:
        return self._calls.subclasses(symbol)

    # --- documents ---

    def doc_sections(self, path: str) -> Sequence[DocSection]:
        """Headings of a documentation file and the lines below each; empty for anything else."""
        language = self.language(path)
        if language not in ("markdown", "rst", "asciidoc", "text"):
            return ()
        try:
            return sections(path, language, self._snapshot.text(path).lines)
        except CannotRead:
            return ()

    # --- life ---

    def close(self) -> None:
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._connection.close()
        if self._on_close is not None:
            self._on_close()

    def __enter__(self) -> StoredIndex:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def plain_name(name: str) -> str:
    """A name as people write it (`Class::method`, `Class#method`, `f()`) in the dotted form that symbols have."""
    if "operator" in name:
        return name.replace("::", ".")
    dotted = re.sub(r"::|->|(?<=\w)#(?=\w)", ".", name).removesuffix("()").strip(".")
    return dotted or name
