"""The one door through which findings enter: each citation is checked at once, and the finding is durable on return.

The one who made a wrong citation gets an error with the nearest match and can correct it; or it never enters.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from threading import RLock
from typing import Literal

import orjson

from manifests.fields import timestamp
from manifests.sessions import Session
from scratch.evidence import EvidenceStore
from scratch.findings import (
    CITATIONS_LIMIT,
    CLAIM_LIMIT,
    DATA_LIMIT_BYTES,
    FINDING_KINDS,
    QUOTE_LIMIT,
    SYMBOLS_LIMIT,
    Citation,
    Finding,
    FindingKind,
    fold,
    quote_hash,
)
from scratch.quotes import FoldedText
from scratch.redaction import Redactor
from scratch.scratchpad import Range, Scratchpad, add_range, all_findings, covers, replaced
from scratch.source import Source, SourceText

RejectionCode = Literal[
    "path_not_in_snapshot",
    "range_outside_file",
    "range_too_large",
    "quote_not_found",
    "not_shown",
    "empty_claim",
    "claim_too_long",
    "no_citation",
    "too_many",
    "bad_citation",
    "bad_value",
    "data_too_large",
    "unreadable",
]
CitationLike = tuple[str, int, int] | tuple[str, int, int, str]
"""(path, start, end), and optionally the quoted text, by which wrong lines are put right."""

LINES_LIMIT = 1_000
"""A citation of more lines says nothing."""
_NEAREST = 5
_SHORTEST_QUOTE = 8
_TEXTS_CACHED = 64


class CitationRejected(Exception):
    """A finding that was not stored, and why; for the one who made it to correct."""

    def __init__(self, code: RejectionCode, message: str, nearest: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.code: RejectionCode = code
        self.message = message
        self.nearest = tuple(nearest)
        """Nearest paths, or nearest lines as `12: text`."""


class FindingRegistry:
    """All findings of a session, shared by its recorders: what two of them find is stored once. Thread-safe."""

    def __init__(self) -> None:
        self.mutex = RLock()
        self._findings: dict[str, Finding] = {}

    @staticmethod
    def load(session: Session) -> FindingRegistry:
        """With all that the session's scratchpads hold."""
        registry = FindingRegistry()
        registry._findings = all_findings(session)
        return registry

    def get(self, finding_id: str) -> Finding | None:
        return self._findings.get(finding_id)

    def put(self, finding: Finding) -> None:
        self._findings[finding.id] = finding

    def move(self, before: str, finding: Finding) -> None:
        """Put a finding in the place of the one it was at an earlier snapshot."""
        with self.mutex:
            replaced(self._findings, before, finding)

    def all(self) -> list[Finding]:
        with self.mutex:
            return list(self._findings.values())

    def of(self, task: str) -> list[Finding]:
        with self.mutex:
            return [finding for finding in self._findings.values() if task in finding.origins]


@dataclass(frozen=True, slots=True)
class _Checked:
    """A citation that holds."""

    path: str
    start: int
    end: int
    text: SourceText


class TaskRecorder:
    """Implements `subagents.engine.Recorder` for one task. Threads may share it."""

    def __init__(
        self,
        session: Session,
        *,
        task: str,
        phase: int,
        source: Source,
        registry: FindingRegistry,
        evidence: EvidenceStore,
        redactor: Redactor,
        cannot_read: type[Exception],
        tool_versions: Mapping[str, str] | None = None,
    ) -> None:
        """`cannot_read` is what `source.text` raises for a path that is no text."""
        self.task = task
        self.phase = phase
        self._source = source
        self._registry = registry
        self._evidence = evidence
        self._redactor = redactor
        self._cannot_read = cannot_read
        self._versions = dict(tool_versions or {})
        self._scratchpad = Scratchpad(session, task)
        self._mutex = RLock()
        state = self._scratchpad.load()
        self._shown: dict[str, list[Range]] = state.shown
        self._notes = state.notes
        self._texts: dict[str, SourceText] = {}

    # --- recording ---

    def record(
        self,
        claim: str,
        *,
        kind: str,
        citations: Sequence[CitationLike],
        symbols: Sequence[str] = (),
        confidence: float = 0.8,
        relevance: float = 0.5,
        evidence: Sequence[str] = (),
        data: Mapping[str, object] | None = None,
    ) -> Finding:
        """Check, store, return. Raises CitationRejected and stores nothing if anything is wrong."""
        known_kind = self._check_values(claim, kind, citations, symbols, (confidence, relevance))
        clean = self._clean_data(data or {})
        checked = [self._check(citation) for citation in citations]
        finding = Finding(
            claim=self._redactor.text(" ".join(claim.split())),
            kind=known_kind,
            symbols=tuple(self._redactor.text(symbol) for symbol in dict.fromkeys(symbols)),
            citations=tuple(dict.fromkeys(self._citation(one) for one in checked)),
            confidence=float(confidence),
            relevance=float(relevance),
            task=self.task,
            phase=self.phase,
            recorded_at=timestamp(),
            evidence=tuple(dict.fromkeys(evidence)),
            data=clean,
            origins=(self.task,),
        )
        return self._store(finding)

    def question(self, text: str) -> Finding:
        """Record an open question."""
        known_kind = self._check_values(text, "open_question", (), (), ())
        claim = self._redactor.text(" ".join(text.split()))
        return self._store(
            Finding(
                claim=claim,
                kind=known_kind,
                symbols=(),
                citations=(),
                confidence=1.0,
                relevance=0.5,
                task=self.task,
                phase=self.phase,
                recorded_at=timestamp(),
                status="unverified",
                origins=(self.task,),
            )
        )

    def _store(self, finding: Finding) -> Finding:
        """Once per session: the second to record it leaves its name only."""
        with self._registry.mutex:
            known = self._registry.get(finding.id)
            if known is None:
                self._evidence.settle(finding.evidence)
                self._scratchpad.append_finding(finding)
                self._registry.put(finding)
                return finding
            if self.task in known.origins:
                return known
            self._scratchpad.append_origin(finding.id)
            merged = known.with_origin(self.task)
            self._registry.put(merged)
            return merged

    def note(self, text: str) -> None:
        with self._mutex:
            self._scratchpad.append_note(text)
            self._notes.append(text)

    def notes(self) -> Sequence[str]:
        """All notes of this task so far, recovered ones included."""
        with self._mutex:
            return tuple(self._notes)

    def evidence(self, data: bytes, *, tool: str, arguments: Mapping[str, object]) -> str:
        """Store raw bytes once; returns `sha256:<hex>`."""
        version = self._versions.get(tool, "")
        return self._evidence.put(data, tool=tool, tool_version=version, arguments=arguments, task=self.task)

    def shown(self, path: str, start: int, end: int) -> None:
        """Say that these lines were shown to this subagent; only shown lines can be cited."""
        if not 1 <= start <= end:
            return
        with self._mutex:
            if add_range(self._shown.setdefault(path, []), start, end):
                self._scratchpad.append_shown(path, start, end)

    def findings(self) -> Sequence[Finding]:
        """All findings of this task so far, recovered ones included."""
        return self._registry.of(self.task)

    # --- checking ---

    def _check_values(
        self,
        claim: str,
        kind: str,
        citations: Sequence[CitationLike],
        symbols: Sequence[str],
        shares: Sequence[float],
    ) -> FindingKind:
        if not claim.strip():
            raise CitationRejected("empty_claim", "the claim is empty: state in one sentence what the lines show")
        if len(claim) > CLAIM_LIMIT:
            raise CitationRejected("claim_too_long", f"{len(claim):,} characters; a claim has {CLAIM_LIMIT:,} at most")
        known = next((one for one in FINDING_KINDS if one == kind), None)
        if known is None:
            raise CitationRejected("bad_value", f"{kind!r} is no kind of finding", FINDING_KINDS)
        if not citations and known != "open_question":
            raise CitationRejected("no_citation", "cite at least one range of lines that shows it")
        if len(citations) > CITATIONS_LIMIT or len(symbols) > SYMBOLS_LIMIT:
            raise CitationRejected("too_many", f"at most {CITATIONS_LIMIT} citations and {SYMBOLS_LIMIT} symbols")
        if any(not isinstance(one, str) or len(one) > 500 for one in symbols):
            raise CitationRejected("bad_value", "a symbol is a name of at most 500 characters")
        for share in shares:
            if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
                raise CitationRejected("bad_value", f"confidence and relevance are from 0 to 1, not {share!r}")
        return known

    def _clean_data(self, data: Mapping[str, object]) -> dict[str, object]:
        try:
            size = len(orjson.dumps(dict(data)))
        except TypeError as error:
            raise CitationRejected("bad_value", f"data is no JSON: {error}") from error
        if size > DATA_LIMIT_BYTES:
            raise CitationRejected("data_too_large", f"data has {size:,} bytes; at most {DATA_LIMIT_BYTES:,}")
        clean = self._redactor.json(data)
        return clean if isinstance(clean, dict) else {}

    def _check(self, citation: CitationLike) -> _Checked:
        path, start, end, quote = _unpacked(citation)
        text = self._text(path)
        if quote and not _stands_at(text, start, end, quote):
            start, end = self._relocated(path, text, start, quote)
        count = len(text.lines)
        if not 1 <= start <= end <= count:
            raise CitationRejected(
                "range_outside_file", f"{path} has lines 1 to {count}, not {start} to {end}", _lines_near(text, start)
            )
        if end - start >= LINES_LIMIT:
            raise CitationRejected("range_too_large", f"{end - start + 1:,} lines; cite at most {LINES_LIMIT:,}")
        if not fold("\n".join(text.lines[start - 1 : end])):
            raise CitationRejected("bad_citation", f"{path}:{start}-{end} is blank", _lines_near(text, start))
        with self._mutex:
            ranges = self._shown.get(path, [])
            if not covers(ranges, start, end):
                raise CitationRejected(
                    "not_shown",
                    f"lines {start} to {end} of {path} were never shown to you: read them before citing them",
                    [f"{path}:{first}-{last}" for first, last in ranges[:_NEAREST]],
                )
        return _Checked(path, start, end, text)

    def _text(self, path: str) -> SourceText:
        cached = self._texts.get(path)
        if cached is not None:
            return cached
        files = self._source.files()
        if path not in files:
            raise CitationRejected(
                "path_not_in_snapshot", f"{path!r} is not in the snapshot", nearest_paths(path, files)
            )
        try:
            text = self._source.text(path)
        except KeyError as error:
            raise CitationRejected("path_not_in_snapshot", f"{path!r} is not in the snapshot") from error
        except self._cannot_read as error:
            raise CitationRejected("unreadable", f"{path!r} cannot be cited: {error}") from error
        if len(self._texts) >= _TEXTS_CACHED:
            self._texts.clear()
        self._texts[path] = text
        return text

    def _relocated(self, path: str, text: SourceText, start: int, quote: str) -> Range:
        folded = fold(quote)
        if len(folded.replace(" ", "")) >= _SHORTEST_QUOTE:
            places = FoldedText(text.lines).find(folded)
            if places:
                return min(places, key=lambda place: abs(place[0] - start))
        raise CitationRejected(
            "quote_not_found", f"the quoted text does not stand in {path}", nearest_lines(text.lines, quote, start)
        )

    def _citation(self, checked: _Checked) -> Citation:
        quote = "\n".join(checked.text.lines[checked.start - 1 : checked.end])
        return Citation(
            path=checked.path,
            start=checked.start,
            end=checked.end,
            blob=checked.text.blob,
            quote=self._redactor.text(quote)[:QUOTE_LIMIT],
            quote_sha256=quote_hash(quote),
        )


def _unpacked(citation: CitationLike) -> tuple[str, int, int, str]:
    if len(citation) not in (3, 4):
        raise CitationRejected("bad_citation", "a citation is a path, a first and a last line")
    path, start, end = citation[:3]
    quote = citation[3] if len(citation) == 4 else ""
    numbers = all(isinstance(one, int) and not isinstance(one, bool) for one in (start, end))
    if not isinstance(path, str) or not isinstance(quote, str) or not numbers:
        raise CitationRejected("bad_citation", "a citation is a path, a first and a last line, both whole numbers")
    return path, start, end, quote


def _stands_at(text: SourceText, start: int, end: int, quote: str) -> bool:
    return 1 <= start <= end <= len(text.lines) and fold(quote) in fold("\n".join(text.lines[start - 1 : end]))


def _lines_near(text: SourceText, line: int) -> list[str]:
    first = max(1, min(line, len(text.lines)) - 2)
    return [f"{n}: {text.lines[n - 1].strip()[:160]}" for n in range(first, min(first + _NEAREST, len(text.lines) + 1))]


def nearest_lines(lines: Sequence[str], quote: str, near: int) -> list[str]:
    """Lines most like the first line of the quote, as `12: text`; bounded in cost on any file."""
    wanted = next((fold(line) for line in quote.splitlines() if line.strip()), "")[:200]
    around = range(max(0, near - 200), min(len(lines), near + 200))
    words = {word for word in wanted.split() if len(word) > 3}
    likely = (n for n, line in enumerate(lines) if len(line) < 2_000 and any(word in line for word in words))
    candidates = {*around, *islice(likely, 300)}
    scored = sorted(candidates, key=lambda n: -_likeness(wanted, fold(lines[n][:400])))[:_NEAREST]
    return [f"{n + 1}: {lines[n].strip()[:160]}" for n in scored if lines[n].strip()]


def _likeness(a: str, b: str) -> float:
    matcher = difflib.SequenceMatcher(None, a, b, autojunk=False)
    return matcher.ratio() if matcher.real_quick_ratio() > 0.3 else 0.0


def nearest_paths(path: str, files: Mapping[str, object]) -> list[str]:
    """Paths of the snapshot that may have been meant: same name elsewhere, then similar ones."""
    name = path.rpartition("/")[2].lower()
    stem = name.partition(".")[0]
    same = [one for one in files if one.lower().rpartition("/")[2] == name]
    if len(same) < _NEAREST and stem:
        same += [one for one in islice((one for one in files if stem in one.lower()), 200) if one not in same]
    if not same:
        head = path.partition("/")[0]
        same = list(islice((one for one in files if one.startswith(head + "/")), 2_000)) or list(islice(files, 2_000))
    return sorted(same, key=lambda one: -difflib.SequenceMatcher(None, path, one, autojunk=False).ratio())[:_NEAREST]
