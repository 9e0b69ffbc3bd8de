"""A recorder that is also a sign of life: shows findings as they come, and closes when its task was stopped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from orchestrator.dispatch import Heartbeat
from orchestrator.view import View
from scratch.findings import Finding
from subagents.engine import Recorder


class WatchedRecorder:
    """Implements Recorder around another one. After its task was stopped every call raises TaskStopped: a thread that
    could not be cancelled can then no longer add to a task whose outcome is already written."""

    def __init__(self, inner: Recorder, heartbeat: Heartbeat, view: View) -> None:
        self._inner = inner
        self._heartbeat = heartbeat
        self._view = view
        self._seen = {finding.id for finding in inner.findings()}

    def record(
        self,
        claim: str,
        *,
        kind: str,
        citations: Sequence[tuple[str, int, int]],
        symbols: Sequence[str] = (),
        confidence: float = 0.8,
        relevance: float = 0.5,
        evidence: Sequence[str] = (),
        data: Mapping[str, object] | None = None,
    ) -> Finding:
        self._heartbeat()
        finding = self._inner.record(
            claim,
            kind=kind,
            citations=citations,
            symbols=symbols,
            confidence=confidence,
            relevance=relevance,
            evidence=evidence,
            data=data,
        )
        self._show(finding)
        return finding

    def question(self, text: str) -> Finding:
        self._heartbeat()
        return self._inner.question(text)

    def note(self, text: str) -> None:
        self._heartbeat()
        self._inner.note(text)

    def evidence(self, data: bytes, *, tool: str, arguments: Mapping[str, object]) -> str:
        self._heartbeat()
        return self._inner.evidence(data, tool=tool, arguments=arguments)

    def shown(self, path: str, start: int, end: int) -> None:
        self._heartbeat()
        self._inner.shown(path, start, end)

    def findings(self) -> Sequence[Finding]:
        return self._inner.findings()

    def _show(self, finding: Finding) -> None:
        if finding.id not in self._seen:
            self._seen.add(finding.id)
            self._view.finding(finding)
