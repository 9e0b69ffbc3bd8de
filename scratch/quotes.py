"""Finding quoted text in a file whatever its white space, and telling which lines it stands on."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from scratch.findings import fold

_PLACES_LIMIT = 1_000


class FoldedText:
    """A file with all white space folded, and where each of its lines begins in it."""

    def __init__(self, lines: Sequence[str]) -> None:
        parts: list[str] = []
        self._starts: list[int] = []
        self.numbers: list[int] = []
        """Numbers of the lines that are not blank, from 1."""
        at = 0
        for number, line in enumerate(lines, 1):
            folded = fold(line)
            if folded:
                self._starts.append(at)
                self.numbers.append(number)
                parts.append(folded)
                at += len(folded) + 1
        self.parts = parts
        self._text = " ".join(parts)

    def find(self, folded_quote: str) -> list[tuple[int, int]]:
        """First and last line of each place where it stands, in order; the first thousand at most."""
        places: list[tuple[int, int]] = []
        at = self._text.find(folded_quote) if folded_quote else -1
        while at >= 0 and len(places) < _PLACES_LIMIT:
            last = at + len(folded_quote) - 1
            places.append((self._line(at), self._line(last)))
            at = self._text.find(folded_quote, at + 1)
        return places

    def _line(self, at: int) -> int:
        return self.numbers[bisect_right(self._starts, at) - 1]
