"""Ranked search that remembers: the tasks of one session ask the same few questions again and again."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from subagents.codebase.types import FileHit, Finder, SymbolHit


class RememberingFinder:
    """A Finder whose answers are kept. Equal questions asked at once are answered once."""

    def __init__(self, finder: Finder) -> None:
        self._finder = finder
        self._lock = threading.Lock()
        self._files: dict[tuple[str, int, bool], Sequence[FileHit]] = {}
        self._symbols: dict[tuple[str, int], Sequence[SymbolHit]] = {}

    def find(self, query: str, *, limit: int = 20, include_tests: bool = True) -> Sequence[FileHit]:
        key = (query, limit, include_tests)
        with self._lock:
            if key not in self._files:
                self._files[key] = self._finder.find(query, limit=limit, include_tests=include_tests)
            return self._files[key]

    def unknown_names(self, query: str) -> Sequence[str]:
        return self._finder.unknown_names(query)

    def find_symbols(self, query: str, *, limit: int = 20) -> Sequence[SymbolHit]:
        key = (query, limit)
        with self._lock:
            if key not in self._symbols:
                self._symbols[key] = self._finder.find_symbols(query, limit=limit)
            return self._symbols[key]
