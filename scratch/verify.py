"""Checking citations again, against the same snapshot or a later one (design, section 6).

Lines that moved are found again by their text, in the same file or under a new path, before they are called stale.
What could not be checked is never a pass: no citation, line 0, or a form that does not parse.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal

from scratch.findings import QUOTE_LIMIT, Citation, Finding, FindingStatus, fold, quote_hash
from scratch.quotes import FoldedText
from scratch.source import Source, SourceEntry, SourceText

CitationVerdict = Literal["verified", "relocated", "stale"]
_SAME_NAMES = 50
"""How many files of the same name are searched for lines whose file is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedCitation:
    """`citation` is where the lines stand now; for stale ones, where they were."""

    was: Citation
    citation: Citation
    verdict: CitationVerdict


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedFinding:
    """`finding` has the status and the citations of now. If lines moved, so did its id; `was` is the one before."""

    was: Finding
    finding: Finding
    citations: tuple[CheckedCitation, ...]

    @property
    def moved(self) -> bool:
        return self.was.id != self.finding.id


class Verifier:
    """Checks findings against one snapshot; keeps what it needs of it between them."""

    def __init__(self, source: Source, *, cannot_read: type[Exception]) -> None:
        """`cannot_read` is what `source.text` raises for a path that is no text."""
        self._source = source
        self._cannot_read = cannot_read
        self._by_blob: dict[str, list[str]] | None = None
        self._by_name: dict[str, list[str]] | None = None

    def check(self, finding: Finding) -> CheckedFinding:
        """A refuted finding stays refuted; an open question is unverified, for there is nothing to check."""
        checked = tuple(self.check_citation(citation) for citation in finding.citations)
        status = _status(finding, checked)
        now = replace(finding, citations=tuple(one.citation for one in checked), status=status)
        return CheckedFinding(was=finding, finding=now, citations=checked)

    def check_citation(self, citation: Citation) -> CheckedCitation:
        text = self._text(citation.path)
        if text is not None:
            if _holds(citation, text):
                now = replace(citation, blob=text.blob)
                return CheckedCitation(was=citation, citation=now, verdict="verified")
            if moved := _found_in(citation, citation.path, text):
                return CheckedCitation(was=citation, citation=moved, verdict="relocated")
        for path in self._candidates(citation):
            other = self._text(path)
            if other is not None and (moved := _found_in(citation, path, other)):
                return CheckedCitation(was=citation, citation=moved, verdict="relocated")
        return CheckedCitation(was=citation, citation=citation, verdict="stale")

    def _text(self, path: str) -> SourceText | None:
        if path not in self._source.files():
            return None
        try:
            return self._source.text(path)
        except (KeyError, self._cannot_read):
            return None

    def _candidates(self, citation: Citation) -> Iterator[str]:
        """Paths that may hold the lines now: the same bytes elsewhere, then files of the same name."""
        if self._by_blob is None or self._by_name is None:
            self._by_blob, self._by_name = _indexed(self._source.files())
        same = self._by_blob.get(citation.blob, [])
        named = self._by_name.get(citation.path.rpartition("/")[2], [])
        others = (path for path in dict.fromkeys([*same, *named]) if path != citation.path)
        return islice(others, _SAME_NAMES)


def _indexed(files: Mapping[str, SourceEntry]) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    by_blob: dict[str, list[str]] = {}
    by_name: dict[str, list[str]] = {}
    for path, entry in files.items():
        by_blob.setdefault(entry.blob, []).append(path)
        by_name.setdefault(path.rpartition("/")[2], []).append(path)
    return by_blob, by_name


def _status(finding: Finding, checked: tuple[CheckedCitation, ...]) -> FindingStatus:
    if finding.status == "refuted":
        return "refuted"
    if not checked:
        return "unverified"
    return "stale" if any(one.verdict == "stale" for one in checked) else "verified"


def _holds(citation: Citation, text: SourceText) -> bool:
    if not 1 <= citation.start <= citation.end <= len(text.lines):
        return False
    quote = "\n".join(text.lines[citation.start - 1 : citation.end])
    return bool(fold(quote)) and quote_hash(quote) == citation.quote_sha256


def _found_in(citation: Citation, path: str, text: SourceText) -> Citation | None:
    """The place nearest to where the lines were, whose text has the quote's hash."""
    folded = FoldedText(text.lines)
    best: Citation | None = None
    for first, last in _windows(citation, folded):
        quote = "\n".join(folded.parts[first : last + 1])
        if quote_hash(quote) != citation.quote_sha256:
            continue
        start, end = folded.numbers[first], folded.numbers[last]
        if best is None or abs(start - citation.start) < abs(best.start - citation.start):
            best = replace(citation, path=path, start=start, end=end, blob=text.blob)
    return best


def _windows(citation: Citation, folded: FoldedText) -> Iterator[tuple[int, int]]:
    """Runs of lines that may be the quote, as places among the lines that are not blank.

    The stored quote tells how many lines it has that are not blank, and how it begins, unless it was cut or redacted.
    """
    lines = [fold(line) for line in citation.quote.split("\n")]
    span = citation.end - citation.start + 1
    filled = sum(1 for line in lines if line)
    cut = len(lines) != span or len(citation.quote) >= QUOTE_LIMIT
    head = next((line for line in lines if line), "")
    if "[redacted:" in head or (cut and len(lines) == 1):
        head = ""
    sizes: Iterable[int] = (filled,)
    if head and (cut or "[redacted:" in citation.quote):
        sizes = range(filled, span + 1)
    for first, line in enumerate(folded.parts):
        if head and line != head:
            continue
        for size in sizes:
            if 0 < size <= len(folded.parts) - first:
                yield first, first + size - 1


# --- citations as text ------------------------------------------------------------------------------------------

_FORMS = (
    re.compile(r"(?P<path>.+)#L(?P<start>\d{1,9})(?:C\d+)?(?:-L?(?P<end>\d{1,9})(?:C\d+)?)?", re.DOTALL),
    re.compile(r"(?P<path>.+):L?(?P<start>\d{1,9})\s?[-\u2013]\s?L?(?P<end>\d{1,9})", re.DOTALL),
    re.compile(r"(?P<path>.+?):L?(?P<start>\d{1,9}):(?P<column>\d{1,9})", re.DOTALL),
    re.compile(r"(?P<path>.+):L?(?P<start>\d{1,9})(?P<end>)", re.DOTALL),
)


@dataclass(frozen=True, slots=True)
class ParsedCitation:
    """What a text names; whether it is there is another question."""

    path: str
    start: int
    end: int


def parse_citation(text: str) -> ParsedCitation | None:
    """`path:12`, `path:12-19`, `path:L12-L19`, `path#L12-L19`, `path:12:5`; None for anything else, line 0 included.

    The path may hold spaces and colons: the last number that can be a line is taken as one.
    """
    text = text.strip().strip("`").strip()
    for form in _FORMS:
        match = form.fullmatch(text)
        if match is None:
            continue
        start = int(match["start"])
        end = int(match.groupdict().get("end") or start)
        path = match["path"].removeprefix("./")
        return ParsedCitation(path, start, end) if path.strip() and 1 <= start <= end else None
    return None
