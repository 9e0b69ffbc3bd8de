"""What a subagent found: claims and the lines of code they rest on (design, section 6). No I/O here."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

import orjson

from manifests.fields import Fields, Malformed

FindingKind = Literal["structure", "flow", "behaviour", "decision", "risk", "open_question"]
FindingStatus = Literal["verified", "unverified", "stale", "refuted"]
FINDING_KINDS: tuple[FindingKind, ...] = get_args(FindingKind)
FINDING_STATUSES: tuple[FindingStatus, ...] = get_args(FindingStatus)

CLAIM_LIMIT = 2_000
"""Characters; a claim is one sentence."""
SYMBOLS_LIMIT = 50
CITATIONS_LIMIT = 50
QUOTE_LIMIT = 4_000
"""Characters of a quote that are stored; the hash is of the whole."""
DATA_LIMIT_BYTES = 4_096
_PATH_LIMIT = 4_096 * 4
_ORIGINS_LIMIT = 10_000
_BLOB = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_REFERENCE = re.compile(r"sha256:[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """Lines of one blob of the snapshot. Lines count from 1 and `end` is included.

    `path` is a path key of the snapshot (see subagents.codebase.snapshot), `blob` the git blob id of the file's
    bytes, `quote` the cited lines as shown to the subagent (decoded, lines joined by newline, redacted when stored),
    `quote_sha256` the hash of the white-space-folded, unredacted quote: the check uses this, never `quote`.
    """

    path: str
    start: int
    end: int
    blob: str
    quote: str
    quote_sha256: str

    def __post_init__(self) -> None:
        if not 1 <= self.start <= self.end:
            raise ValueError(f"not a range of lines: {self.start}-{self.end}")

    @property
    def where(self) -> str:
        """`path:start-end`, or `path:line` for one line."""
        return f"{self.path}:{self.start}" if self.start == self.end else f"{self.path}:{self.start}-{self.end}"

    def to_dict(self) -> dict[str, object]:
        return {
            "path": self.path,
            "start": self.start,
            "end": self.end,
            "blob": self.blob,
            "quote": self.quote,
            "quote_sha256": self.quote_sha256,
        }

    @staticmethod
    def from_dict(value: object) -> Citation:
        """Raises Malformed."""
        fields = Fields(value, "citation")
        start = fields.integer("start", low=1, high=1 << 31)
        return Citation(
            path=fields.text("path", limit=_PATH_LIMIT, empty=False),
            start=start,
            end=fields.integer("end", low=start, high=1 << 31),
            blob=fields.match("blob", _BLOB),
            quote=fields.text("quote", limit=QUOTE_LIMIT * 2),
            quote_sha256=fields.match("quote_sha256", _SHA256),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One confirmed claim. `id` is a hash of its content, so the same finding made twice is one finding."""

    claim: str
    kind: FindingKind
    symbols: tuple[str, ...]
    citations: tuple[Citation, ...]
    confidence: float
    relevance: float
    task: str
    phase: int
    recorded_at: str
    status: FindingStatus = "verified"
    evidence: tuple[str, ...] = ()
    """Evidence references, `sha256:<64 hex>`."""
    data: Mapping[str, object] = field(default_factory=dict)
    """Small JSON object (4 kB at most) for code that renders findings, e.g. a call step."""
    origins: tuple[str, ...] = ()
    """Ids of all tasks that recorded this very finding; the first is `task`."""

    def __post_init__(self) -> None:
        if not self.claim.strip():
            raise ValueError("a finding needs a claim")
        if not self.citations and self.kind != "open_question":
            raise ValueError("a finding needs at least one citation")
        for name in ("confidence", "relevance"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ValueError(f"{name} is not between 0 and 1: {getattr(self, name)!r}")

    @property
    def id(self) -> str:
        """`f` and 16 hex digits over claim (white space folded), kind, symbols, citations (path, lines, blob), data."""
        body = {
            "claim": " ".join(self.claim.split()),
            "kind": self.kind,
            "symbols": sorted(self.symbols),
            "citations": sorted([c.path, c.start, c.end, c.blob] for c in self.citations),
            "data": dict(self.data),
        }
        return "f" + hashlib.sha256(orjson.dumps(body, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]

    def with_origin(self, task: str) -> Finding:
        """The same finding, recorded by one more task."""
        return self if task in self.origins else replace(self, origins=(*self.origins, task))

    def to_dict(self) -> dict[str, object]:
        """JSON values only; `id` is there for readers and checked when read back."""
        return {
            "id": self.id,
            "claim": self.claim,
            "kind": self.kind,
            "status": self.status,
            "confidence": self.confidence,
            "relevance": self.relevance,
            "symbols": list(self.symbols),
            "citations": [citation.to_dict() for citation in self.citations],
            "task": self.task,
            "phase": self.phase,
            "recorded_at": self.recorded_at,
            "evidence": list(self.evidence),
            "data": dict(self.data),
            "origins": list(self.origins),
        }

    @staticmethod
    def from_dict(value: object) -> Finding:
        """Untrusted: sizes, types and ranges are checked, and that the id is that of the content. Raises Malformed."""
        fields = Fields(value, "finding")
        data = fields.mapping("data", limit=200)
        if len(orjson.dumps(data)) > DATA_LIMIT_BYTES:
            raise Malformed(f"finding: data is larger than {DATA_LIMIT_BYTES} bytes")
        evidence = fields.texts("evidence", limit=100, each=71)
        if not all(_REFERENCE.fullmatch(reference) for reference in evidence):
            raise Malformed("finding: an evidence reference is none")
        try:
            finding = Finding(
                claim=fields.text("claim", limit=CLAIM_LIMIT, empty=False),
                kind=fields.choice("kind", FINDING_KINDS),
                symbols=fields.texts("symbols", limit=SYMBOLS_LIMIT, each=500),
                citations=tuple(Citation.from_dict(one) for one in fields.items("citations", limit=CITATIONS_LIMIT)),
                confidence=fields.number("confidence", low=0, high=1),
                relevance=fields.number("relevance", low=0, high=1),
                task=fields.name("task"),
                phase=fields.integer("phase", low=1, high=1_000_000),
                recorded_at=fields.time("recorded_at"),
                status=fields.choice("status", FINDING_STATUSES),
                evidence=evidence,
                data=data,
                origins=fields.texts("origins", limit=_ORIGINS_LIMIT, each=100),
            )
        except Malformed:
            raise
        except ValueError as problem:
            raise Malformed(f"finding: {problem}") from problem
        if finding.id != fields.text("id", limit=40):
            raise Malformed("finding: its id is not that of its content")
        return finding


def fold(text: str) -> str:
    """White space folded: what two quotes must agree in to be the same."""
    return " ".join(text.split())


def quote_hash(text: str) -> str:
    """SHA-256 (hex) of the folded quote, before any redaction."""
    return hashlib.sha256(fold(text).encode("utf-8", "surrogatepass")).hexdigest()
