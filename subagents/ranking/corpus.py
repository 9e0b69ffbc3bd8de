"""One snapshot as ranking sees it: files with roles and lengths, postings of terms, records, imports, commits.

`StoredCorpus` reads what was stored beside the index; `MemoryCorpus` makes the same from texts, for an index without
stored terms. Both give the same numbers for the same files, however the index was built.
"""

from __future__ import annotations

import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from subagents.ranking import listing
from subagents.ranking.listing import Imports, Listing
from subagents.ranking.pathfacts import FACE, ROLES, PathFacts, path_facts, tell
from subagents.ranking.record import Record, decode

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from subagents.index.code_index import StoredIndex
    from subagents.ranking.history import Commits
    from subagents.ranking.roles import Role

_RECORDS_KEPT = 400
_MODULE_PARTS = 5


@dataclass(frozen=True, slots=True)
class Found:
    """Postings, one entry for a term in a file: `term` is a place among the keys asked for, `file` one in `paths`."""

    term: NDArray[np.int64]
    file: NDArray[np.int64]
    counts: NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Changes:
    """One entry for a file changed by a commit, in commit order (`commit`, `file`, `share`, `rank`); the others are by
    commit."""

    commit: NDArray[np.int64]
    file: NDArray[np.int64]
    share: NDArray[np.float64]
    """1 / sqrt(files the commit changed): a commit of many files says less about each."""
    rank: NDArray[np.int64]
    """0 for the newest commit that changed a file of this snapshot."""
    length: NDArray[np.float64]
    is_linked: NDArray[np.bool_]


class DamagedTerms(Exception):
    """Stored terms that are not what was written."""


class Store(Protocol):
    """Where a corpus has its numbers from. Files are places in the sorted list of paths."""

    def lengths(self) -> NDArray[np.float64]:
        """Words of each file in code, comments, strings and names."""
        ...

    def postings(self, keys: Sequence[int]) -> Found: ...
    def record(self, file: int) -> Record | None: ...


class Corpus:
    """The files of one snapshot, in path order. Thread-safe."""

    def __init__(
        self,
        paths: Sequence[str],
        store: Store,
        edges: Iterable[tuple[str, str]] | Imports,
        commits: Commits | None,
        facts: PathFacts | None = None,
    ) -> None:
        """`facts` are those of `paths`, told earlier."""
        self.paths = tuple(paths)
        self.store = store
        self.commits = commits
        self._edges = edges
        self._facts = facts
        self._records: OrderedDict[int, Record | None] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self.paths)

    @cached_property
    def place(self) -> dict[str, int]:
        return {path: place for place, path in enumerate(self.paths)}

    @cached_property
    def facts(self) -> PathFacts:
        """What the paths say."""
        return self._facts if self._facts is not None else path_facts([tell(path) for path in self.paths])

    def role(self, file: int) -> Role:
        return ROLES[int(self.facts.part[file]) % FACE]

    def has_role(self, role: Role) -> NDArray[np.bool_]:
        made: NDArray[np.bool_] = self.facts.part % FACE == ROLES.index(role)
        return made

    @cached_property
    def is_source(self) -> NDArray[np.bool_]:
        """Source code of any kind, tests included."""
        return self.has_role("code") | self.has_role("test") | self.has_role("side")

    @cached_property
    def lengths(self) -> NDArray[np.float64]:
        return self.store.lengths()

    @cached_property
    def imports(self) -> Imports:
        import numpy as np

        if isinstance(self._edges, Imports):
            return self._edges
        place = self.place
        pairs = sorted({(place[s], place[t]) for s, t in self._edges if s in place and t in place and s != t})
        table = np.array(pairs, np.int64).reshape(-1, 2)
        return Imports(table[:, 0], table[:, 1])

    @cached_property
    def by_name(self) -> dict[str, list[int]]:
        """Files by the last part of their path."""
        made: dict[str, list[int]] = {}
        for place, path in enumerate(self.paths):
            made.setdefault(path.rpartition("/")[2], []).append(place)
        return made

    @cached_property
    def by_module(self) -> dict[str, list[int]]:
        """Source files by every dotted name they may be written under."""
        made: dict[str, list[int]] = {}
        for place, path in enumerate(self.paths):
            if self.is_source[place]:
                for name in module_names(path):
                    made.setdefault(name, []).append(place)
        return made

    def path_keys(self, file: int) -> list[int]:
        """Terms of one path."""
        keys: list[int] = self.facts.keys[self.facts.file == file].tolist()
        return keys

    @cached_property
    def changes(self) -> Changes:
        """Which files of this snapshot the commits changed."""
        import numpy as np

        commits = self.commits
        if commits is None:
            raise ValueError("no commits")
        place = self.place
        ours = np.array([place.get(path, -1) for path in commits.paths], np.int64)
        owner = np.repeat(np.arange(len(commits.ids)), np.diff(commits.changed_ends, prepend=0))
        file = ours[commits.changed] if len(ours) else np.zeros(0, np.int64)
        known = file >= 0
        commit, file = owner[known], file[known]
        several = np.bincount(commit, minlength=len(commits.ids))
        share = 1 / np.sqrt(several[commit])
        ends = np.concatenate([[0], np.cumsum(commits.counts.astype(np.int64))])
        length = np.diff(ends[commits.key_ends], prepend=0).astype(float)
        rank = np.cumsum(several > 0) - 1
        return Changes(commit, file, share, rank[commit], length, several > 0)

    def record(self, file: int) -> Record | None:
        with self._lock:
            if file in self._records:
                self._records.move_to_end(file)
                return self._records[file]
        made = self.store.record(file)
        with self._lock:
            self._records[file] = made
            while len(self._records) > _RECORDS_KEPT:
                self._records.popitem(last=False)
        return made


class MemoryStore:
    """Records held in memory, one for each file (None: not read)."""

    def __init__(self, records: Sequence[Record | None]) -> None:
        self._records = records

    def lengths(self) -> NDArray[np.float64]:
        import numpy as np

        return np.array([record.lengths if record else (0, 0, 0, 0) for record in self._records], float).reshape(-1, 4)

    @cached_property
    def _table(self) -> tuple[NDArray[np.uint32], NDArray[np.int64], NDArray[np.uint8]]:
        import numpy as np

        present = [record for record in self._records if record is not None]
        places = [place for place, record in enumerate(self._records) if record is not None]
        if not present:
            return np.zeros(0, np.uint32), np.zeros(0, np.int64), np.zeros((0, 4), np.uint8)
        keys = np.concatenate([record.keys for record in present])
        files = np.repeat(np.array(places, np.int64), [len(record.keys) for record in present])
        order = np.argsort(keys, kind="stable")
        return keys[order], files[order], np.concatenate([record.counts for record in present])[order]

    def postings(self, keys: Sequence[int]) -> Found:
        import numpy as np

        all_keys, files, counts = self._table
        wanted = np.array(keys, np.uint32)
        low, high = np.searchsorted(all_keys, wanted, "left"), np.searchsorted(all_keys, wanted, "right")
        term = np.repeat(np.arange(len(wanted)), high - low)
        at = np.concatenate([np.arange(a, b) for a, b in zip(low, high, strict=True)] or [np.zeros(0, np.int64)])
        return Found(term, files[at], counts[at])

    def record(self, file: int) -> Record | None:
        return self._records[file]


class IndexStore:
    """What the index's build stored, read through the index's own connection."""

    def __init__(self, index: StoredIndex, blobs: NDArray[np.int64]) -> None:
        import numpy as np

        from subagents.ranking.postings import lengths, segments

        self._index = index
        self._blobs = blobs
        self._order = np.argsort(self._blobs, kind="stable")
        self._sorted = self._blobs[self._order]
        try:
            with index.database() as connection:
                self._segments = segments(connection)
                self._lengths = lengths(connection)
        except (ValueError, sqlite3.DatabaseError) as error:
            raise DamagedTerms(str(error)) from error

    def lengths(self) -> NDArray[np.float64]:
        import numpy as np

        made = np.zeros((len(self._blobs), 4))
        file, row = self._files(self._lengths[:, 0].astype(np.int64))
        made[file] = self._lengths[row, 1:]
        return made

    def _files(self, blobs: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(file, place in `blobs`) for each file that has one of these blobs; a blob may have several, or none."""
        import numpy as np

        low, high = np.searchsorted(self._sorted, blobs, "left"), np.searchsorted(self._sorted, blobs, "right")
        several = high - low
        row = np.repeat(np.arange(len(blobs)), several)
        within = np.arange(len(row)) - np.repeat(np.cumsum(several) - several, several)
        return self._order[low[row] + within], row

    def postings(self, keys: Sequence[int]) -> Found:
        from subagents.ranking.postings import read

        try:
            with self._index.database() as connection:
                found = read(connection, self._segments, keys)
        except (ValueError, sqlite3.DatabaseError) as error:
            raise DamagedTerms(str(error)) from error
        file, row = self._files(found.blob)
        return Found(found.term[row], file, found.counts[row])

    def record(self, file: int) -> Record | None:
        rows = self._index.rows("SELECT data FROM extra_terms WHERE blob = ?", (int(self._blobs[file]),))
        try:
            return decode(rows[0][0]) if rows else None
        except ValueError as error:
            raise DamagedTerms(str(error)) from error


def stored_corpus(index: StoredIndex, commits: Commits | None) -> Corpus:
    """What the index's build stored. Raises DamagedTerms."""
    edition = index.edition
    files = _listing(index)
    store = IndexStore(index, files.blobs)
    if index.edition != edition:
        raise DamagedTerms("rebuilt while it was read, with other numbers")
    return Corpus(files.paths, store, files.imports, commits, files.facts)


def _listing(index: StoredIndex) -> Listing:
    rows = index.rows("SELECT data FROM terms_listing")
    if not rows:
        raise DamagedTerms("no listing of files")
    try:
        return listing.decode(rows[0][0])
    except ValueError as error:
        raise DamagedTerms(str(error)) from error


def module_names(path: str) -> list[str]:
    """All dotted names under which a file may be written: `a.b.c`, `b.c`, `c`."""
    parts = path.rpartition(".")[0].split("/")
    if len(parts) > 1 and parts[-1] in ("__init__", "mod", "index"):
        parts = parts[:-1]
    return [".".join(parts[-size:]) for size in range(1, min(_MODULE_PARTS, len(parts)) + 1)]
