"""What checking a citation needs of the code base: a view of the snapshot, declared here so that nothing is imported
from above. `subagents.codebase`'s snapshots fit it as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class SourceEntry(Protocol):
    """A path of the snapshot."""

    @property
    def blob(self) -> str: ...


class SourceText(Protocol):
    """A decoded file. `lines` count as git and rg count."""

    @property
    def blob(self) -> str: ...
    @property
    def lines(self) -> tuple[str, ...]: ...


class Source(Protocol):
    """A frozen repository."""

    def files(self) -> Mapping[str, SourceEntry]: ...
    def text(self, path: str) -> SourceText:
        """KeyError for a path that is not there; some exception of its own for one that is no text."""
        ...
