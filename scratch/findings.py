"""What a subagent found: claims and the lines of code they rest on (design, section 6). No I/O here."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import orjson

FindingKind = Literal["structure", "flow", "behaviour", "decision", "risk", "open_question"]
FindingStatus = Literal["verified", "unverified", "stale", "refuted"]


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


def fold(text: str) -> str:
    """White space folded: what two quotes must agree in to be the same."""
    return " ".join(text.split())


def quote_hash(text: str) -> str:
    """SHA-256 (hex) of the folded quote, before any redaction."""
    return hashlib.sha256(fold(text).encode("utf-8", "surrogatepass")).hexdigest()
