"""Findings that contradict each other, as those who recorded them said: asked again, else stated side by side.

Nothing is guessed here. That two claims disagree is a judgement, made by the subagent that read the lines and named
the finding its own contradicts; code keeps the pair together until one of the two is refuted or stale.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scratch.findings import Finding

KEY = "contradicts"
"""Of a finding's data: ids of the findings it contradicts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction:
    """`later` was recorded as contradicting `earlier`."""

    earlier: Finding
    later: Finding

    @property
    def ids(self) -> frozenset[str]:
        return frozenset((self.earlier.id, self.later.id))

    @property
    def line(self) -> str:
        return f"{_said(self.earlier)} against {_said(self.later)}"


def _said(finding: Finding) -> str:
    where = ", ".join(citation.where for citation in finding.citations)
    return f"[{finding.id}] {' '.join(finding.claim.split())} ({where})"


def contradictions(facts: Sequence[Finding]) -> list[Contradiction]:
    """Each pair once, in order of recording. `facts`: what may be stated as fact; nothing else contradicts anything."""
    by_id = {finding.id: finding for finding in facts}
    found: dict[frozenset[str], Contradiction] = {}
    for finding in facts:
        named = finding.data.get(KEY)
        for other in named if isinstance(named, list) else ():
            earlier = by_id.get(str(other))
            if earlier is not None and earlier is not finding:
                pair = Contradiction(earlier=earlier, later=finding)
                found.setdefault(pair.ids, pair)
    return list(found.values())


def not_side_by_side(pairs: Sequence[Contradiction], statements: Sequence[Sequence[str]]) -> list[Contradiction]:
    """Pairs of which something is stated, but no statement rests on both. `statements`: finding ids of each."""
    stated = [frozenset(ids) for ids in statements]
    return [
        pair for pair in pairs if any(pair.ids & ids for ids in stated) and not any(pair.ids <= ids for ids in stated)
    ]
