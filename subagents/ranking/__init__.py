"""Ranked search without a model: which files and definitions a question is about, and why."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from subagents.codebase.types import CodeIndex, Finder, Snapshot

__all__ = ["open_finder"]


def open_finder(snapshot: Snapshot, index: CodeIndex, cache_dir: Path) -> Finder:
    """Ranked search over `snapshot`. Snapshot and index stay open as long as the finder is used."""
    from subagents.ranking.finder import open_finder as opened

    return opened(snapshot, index, cache_dir)
