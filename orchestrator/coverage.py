"""What was looked at and what was not: adds up over tasks and stands in every answer (design, section 3.8)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from subagents.codebase.types import Skipped
from subagents.engine import Coverage

_NAMED = 5
"""Up to so many paths of one reason are named one by one; more become one pattern a folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedGroup:
    """`path` is a path key, or a pattern ending in `/**` when it stands for `count` files below a folder."""

    path: str
    reason: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CoverageReport:
    files_total: int
    files_read: int
    skipped: tuple[SkippedGroup, ...]
    truncated: tuple[str, ...]
    timed_out: tuple[str, ...]

    @property
    def partial(self) -> bool:
        """Whether anything was cut, timed out or could not be read although it was wanted."""
        return bool(self.truncated or self.timed_out) or any(
            g.reason in ("unreadable", "changed_while_reading", "time_limit", "parse_timeout") for g in self.skipped
        )


def merge(parts: Iterable[Coverage]) -> Coverage:
    """The union; the order of `truncated` and `timed_out` is kept, repeats dropped."""
    read: set[str] = set()
    skipped: dict[tuple[str, str], Skipped] = {}
    truncated: dict[str, None] = {}
    timed_out: dict[str, None] = {}
    for part in parts:
        read |= part.files_read
        skipped |= {(s.path, s.reason): s for s in part.skipped}
        truncated |= dict.fromkeys(part.truncated)
        timed_out |= dict.fromkeys(part.timed_out)
    return Coverage(
        files_read=frozenset(read),
        skipped=tuple(skipped[k] for k in sorted(skipped)),
        truncated=tuple(truncated),
        timed_out=tuple(timed_out),
    )


def report(total: int, coverage: Coverage) -> CoverageReport:
    """Counts for a person: skipped paths by reason, named when few, else one pattern a top-level folder."""
    by_reason: dict[str, list[str]] = defaultdict(list)
    for item in coverage.skipped:
        by_reason[item.reason].append(item.path)
    groups: list[SkippedGroup] = []
    for reason, paths in sorted(by_reason.items()):
        if len(paths) <= _NAMED:
            groups += [SkippedGroup(path=p, reason=reason, count=1) for p in sorted(paths)]
        else:
            groups += _patterns(reason, paths)
    return CoverageReport(
        files_total=total,
        files_read=len(coverage.files_read),
        skipped=tuple(groups),
        truncated=coverage.truncated,
        timed_out=coverage.timed_out,
    )


def _patterns(reason: str, paths: Sequence[str]) -> list[SkippedGroup]:
    counts = Counter(p.split("/", 1)[0] + "/**" if "/" in p else "*" for p in paths)
    if len(counts) > 12:
        return [SkippedGroup(path="**", reason=reason, count=len(paths))]
    return [
        SkippedGroup(path=p, reason=reason, count=n) for p, n in sorted(counts.items(), key=lambda x: (-x[1], x[0]))
    ]


def to_dict(coverage: Coverage) -> dict[str, object]:
    """JSON form of one task's coverage, as the outcome document holds it."""
    return {
        "files_read": sorted(coverage.files_read),
        "skipped": [[s.path, s.reason, s.detail] for s in coverage.skipped],
        "truncated": list(coverage.truncated),
        "timed_out": list(coverage.timed_out),
    }


def from_dict(body: Mapping[str, object]) -> Coverage:
    """The inverse of `to_dict`. Raises ValueError on anything else, since state read back is untrusted input."""

    def strings(key: str) -> list[str]:
        value = body.get(key)
        if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
            raise ValueError(f"coverage.{key} is not a list of texts")
        return value

    skipped = body.get("skipped")
    rows = []
    for row in skipped if isinstance(skipped, list) else [None]:
        if not (isinstance(row, list) and len(row) == 3 and all(isinstance(v, str) for v in row)):
            raise ValueError("coverage.skipped holds something else than path, reason, detail")
        rows.append(Skipped(row[0], row[1], row[2]))
    return Coverage(
        files_read=frozenset(strings("files_read")),
        skipped=tuple(rows),
        truncated=tuple(strings("truncated")),
        timed_out=tuple(strings("timed_out")),
    )
