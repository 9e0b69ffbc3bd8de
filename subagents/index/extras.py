"""What others may store beside the index, blob by blob: how ranking gets its terms without reading a file twice.

An extra is a pair of functions named by `module:function`. `extract` runs in the worker process that parsed the files,
on the same decoded text and symbols; its bytes are stored under the blob and kept for as long as the blob is. `finish`
runs once in the building process, inside the transaction that publishes the snapshot: whatever it writes into the same
SQLite file appears together with the snapshot, or not at all.

Modules listed in EXTRA_MODULES are asked for their `EXTRA` at each open; they must be cheap to import (no numpy, no
networkx). A changed `version` (like a changed grammar) means another index file, so nothing stale is ever read.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from subagents.codebase.types import Symbol
from subagents.index.records import to_symbol
from subagents.index.rows import SymbolRow

EXTRA_MODULES = ("subagents.ranking.extra",)

_NAME = re.compile(r"[a-z][a-z0-9_]{0,30}")
_TARGET = re.compile(r"[\w.]+:\w+")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFacts:
    """One file as the extractor saw it. What `extract` returns may depend on nothing else.

    The result is shared by all paths with the same bytes and language: of `path`, use only what the language implies.
    """

    path: str
    language: str | None
    """As in CodeIndex.language: `python`, `go`, ..., `markdown`, `text`; None when the type is unknown."""
    text: str
    """Decoded; lines are split at newline only, so line n is `text.split("\\n")[n - 1]`."""
    rows: Sequence[SymbolRow]
    """The definitions, as they are stored."""
    names: Sequence[str]
    """Distinct names referred to in this file (calls, attributes, bases, imports), in any order."""

    @property
    def symbols(self) -> list[Symbol]:
        """The definitions; made anew at each call."""
        return [to_symbol(self.path, row) for row in self.rows]


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """What a build changed, given to `finish`. Blob numbers are the row ids of table `blob`; they are reused only after
    the blob has been reported as dropped.

    The file holds one snapshot, the current one, and blobs of earlier ones kept for a while. Tables an extra may read:
    `file(id, path, blob)` for the paths of the current snapshot (two paths may share a blob), `blob(id, oid, language,
    lines)`, and its own `extra_<name>(blob INTEGER PRIMARY KEY, data BLOB)`. Tables it owns are called `<name>_...`; it
    creates them itself (IF NOT EXISTS). It neither commits nor rolls back. `finish` runs at every change of the
    snapshot, so its cost should follow `added` and `dropped`, not the size of the repository.
    """

    connection: sqlite3.Connection
    added: Sequence[int]
    """Blobs extracted by this build (or left by an interrupted one); their `extra_<name>` rows are in place."""
    dropped: Sequence[int]
    """Blobs removed right after all `finish` have run."""
    first: bool
    """The index was empty before."""
    edited: Mapping[str, int] | None = None
    """When files only got other contents: path -> blob of each. Then the paths of the snapshot, which of them are read,
    and the edges of the import graph are what they were. None: whatever may have changed."""


Extract = Callable[[Sequence[FileFacts]], list[bytes]]
"""Some files at a time, because much of the work costs as much for one as for fifty."""
Finish = Callable[[Published], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class BlobExtra:
    """`extract` and `finish` are `module:function`, so that they travel to workers and are imported only when used."""

    name: str
    version: int
    extract: str
    finish: str = ""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"not a table name: {self.name!r}")
        for target in filter(None, (self.extract, self.finish)):
            if not _TARGET.fullmatch(target):
                raise ValueError(f"not module:function: {target!r}")

    @property
    def table(self) -> str:
        return f"extra_{self.name}"

    def load_extract(self) -> Extract:
        return _load(self.extract)  # type: ignore[no-any-return]

    def load_finish(self) -> Finish | None:
        return _load(self.finish) if self.finish else None


def default_extras() -> tuple[BlobExtra, ...]:
    """The extras of all EXTRA_MODULES that are installed."""
    found = []
    for module in EXTRA_MODULES:
        parent = module.rpartition(".")[0]
        if find_spec(parent) and find_spec(module):
            found.append(import_module(module).EXTRA)
    return tuple(found)


def _load(target: str) -> Any:
    module, _, function = target.partition(":")
    return getattr(import_module(module), function)
