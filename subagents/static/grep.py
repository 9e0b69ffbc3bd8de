"""Text search for what no index holds (attributes written, symbols mentioned in prose), bounded and remembered."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from subagents.codebase.types import Snapshot, TextMatch
from subagents.static.source import Sources

MAX_MATCHES = 600
TIMEOUT_S = 5.0
PATTERN_CHARS = 3000


class Grep:
    """Lines of the snapshot that match a pattern. With ripgrep where the snapshot allows it, else file by file."""

    def __init__(self, snapshot: Snapshot, sources: Sources) -> None:
        self._snapshot = snapshot
        self._sources = sources
        self.truncated: list[str] = []
        self.timed_out: list[str] = []

    def lines(self, pattern: str, paths: Sequence[str], limit: int = MAX_MATCHES) -> list[TextMatch]:
        """In path and line order. `pattern` must mean the same to Rust's and Python's regular expressions."""
        if not paths:
            return []
        from subagents.codebase.frozen import FrozenSnapshot

        if isinstance(self._snapshot, FrozenSnapshot):
            from subagents.codebase.ripgrep import search_text

            found = search_text(
                self._snapshot, pattern, paths=paths, max_matches=limit, max_width=400, timeout_s=TIMEOUT_S
            )
            if found.truncated:
                self.truncated.append(f"search {pattern[:60]!r}: the first {len(found.matches)} lines")
            if found.timed_out:
                self.timed_out.append(f"search {pattern[:60]!r}")
            return list(found.matches)
        return self._one_by_one(re.compile(pattern), paths, limit)

    def names(self, names: Sequence[str], paths: Sequence[str]) -> Iterator[tuple[TextMatch, str]]:
        """Lines that hold one of these names as a whole word, once for each name in the line."""
        batch: list[str] = []
        size = 0
        for name in [*names, ""]:
            if batch and (not name or size + len(name) > PATTERN_CHARS):
                pattern = rf"\b({'|'.join(re.escape(n) for n in batch)})\b"
                for match in self.lines(pattern, paths):
                    for found in dict.fromkeys(re.findall(pattern, match.text)):
                        yield match, found
                batch, size = [], 0
            batch.append(name)
            size += len(name) + 3

    def _one_by_one(self, pattern: re.Pattern[str], paths: Sequence[str], limit: int) -> list[TextMatch]:
        matches = []
        for path in paths:
            text = self._sources.text(path)
            for number, row in enumerate(text.lines if text else (), 1):
                if pattern.search(row):
                    matches.append(TextMatch(path=path, line=number, text=row[:400], cut=len(row) > 400))
                    if len(matches) >= limit:
                        self.truncated.append(f"search {pattern.pattern[:60]!r}: the first {limit} lines")
                        return matches
        return matches
