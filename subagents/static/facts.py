"""Findings sorted back into facts: by step, in an order that does not depend on when they were recorded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from scratch.findings import Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One finding's payload with typed access; a missing or odd value reads as empty, never fails."""

    id: str
    finding: Finding

    def text(self, key: str) -> str:
        value = self.finding.data.get(key, "")
        return value if isinstance(value, str) else ""

    def number(self, key: str) -> int:
        value = self.finding.data.get(key, 0)
        return int(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else 0

    def real(self, key: str) -> float:
        value = self.finding.data.get(key, 0.0)
        return float(value) if isinstance(value, (int, float)) else 0.0

    def flag(self, key: str) -> bool:
        return self.finding.data.get(key) is True

    def texts(self, key: str) -> list[str]:
        value = self.finding.data.get(key, [])
        return [v for v in value if isinstance(v, str)] if isinstance(value, (list, tuple)) else []

    def numbers(self, key: str) -> list[int]:
        value = self.finding.data.get(key, [])
        return [v for v in value if isinstance(v, int)] if isinstance(value, (list, tuple)) else []

    def rows(self, key: str) -> list[dict[str, object]]:
        value = self.finding.data.get(key, [])
        return [v for v in value if isinstance(v, dict)] if isinstance(value, (list, tuple)) else []


class Facts:
    """All usable findings of a session by `data["step"]`."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self._by_step: dict[str, list[Fact]] = {}
        self.refuted = 0
        for finding in findings:
            if finding.status != "verified":
                self.refuted += 1
                continue
            step = finding.data.get("step")
            if isinstance(step, str):
                self._by_step.setdefault(step, []).append(Fact(id=finding.id, finding=finding))
        for facts in self._by_step.values():
            facts.sort(
                key=lambda f: (
                    f.number("number"),
                    f.number("chain"),
                    f.number("order"),
                    -f.real("score"),
                    f.text("path"),
                    f.number("line"),
                    f.id,
                )
            )

    def all(self, step: str) -> Sequence[Fact]:
        return self._by_step.get(step, ())

    def of_chain(self, step: str, chain: int) -> list[Fact]:
        return [f for f in self.all(step) if f.number("chain") == chain]

    def of_number(self, step: str, number: int) -> list[Fact]:
        return [f for f in self.all(step) if f.number("number") == number]
