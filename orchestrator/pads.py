"""The scratchpads of one session as the coordinator uses them: one recorder a task, one registry for all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from manifests.sessions import Session
from manifests.tasks import Task
from scratch.evidence import EvidenceStore
from scratch.findings import Finding, FindingStatus
from scratch.recorder import FindingRegistry, TaskRecorder
from scratch.redaction import Redactor
from scratch.scratchpad import Scratchpad
from scratch.verify import Verifier
from subagents.codebase.types import CannotRead, Snapshot

VERIFIER = "verification"
"""Name of the scratchpad that holds changes of status found by checking citations again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CarriedOver:
    """What became of findings at a later snapshot. `moved`: how many stand at other lines now."""

    moved: int
    stale: tuple[Finding, ...]


class SessionPads:
    """Implements coordinator.Pads on a session that this process holds."""

    def __init__(self, session: Session, snapshot: Snapshot, redactor: Redactor) -> None:
        self._session = session
        self._snapshot = snapshot
        self._redactor = redactor
        self._registry = FindingRegistry.load(session)
        self._evidence = EvidenceStore(session, redact=redactor.data)
        self._recorders: dict[str, TaskRecorder] = {}

    def recorder(self, task: Task, phase: int) -> TaskRecorder:
        """The one recorder of this task; made on first use with what an earlier attempt recorded."""
        if task.id not in self._recorders:
            self._recorders[task.id] = TaskRecorder(
                self._session,
                task=task.id,
                phase=phase,
                source=self._snapshot,
                registry=self._registry,
                evidence=self._evidence,
                redactor=self._redactor,
                cannot_read=CannotRead,
            )
        return self._recorders[task.id]

    def findings(self) -> Sequence[Finding]:
        """Every finding once, in an order that does not depend on which subagent was quicker."""
        return in_order(self._registry.all())

    def mark(self, finding: str, status: FindingStatus, reason: str) -> None:
        """Change the status of a finding, durably; one that is not there is left alone."""
        known = self._registry.get(finding)
        if known is not None and known.status != status:
            Scratchpad(self._session, VERIFIER).append_status(finding, status, reason)
            self._registry.put(replace(known, status=status))

    def carry_over(self) -> CarriedOver:
        """Look for every cited line in this snapshot, which is later than the one the findings were made at.

        Lines that moved are followed; findings whose lines changed are marked. Doing it twice changes nothing more.
        """
        verifier = Verifier(self._snapshot, cannot_read=CannotRead)
        pad = Scratchpad(self._session, VERIFIER)
        moved = 0
        stale: list[Finding] = []
        for finding in self.findings():
            if not finding.citations:
                continue
            checked = verifier.check(finding)
            if checked.finding.status == "stale":
                stale.append(finding)
                self.mark(finding.id, "stale", "the lines it cites were changed")
            elif checked.moved:
                pad.append_moved(finding.id, checked.finding)
                self._registry.move(finding.id, checked.finding)
                moved += any(one.verdict == "relocated" for one in checked.citations)
        return CarriedOver(moved=moved, stale=tuple(stale))

    def recheck(self) -> Counter[str]:
        """Check every citation against the snapshot again; what fails is marked, durably. Counts by status."""
        counts: Counter[str] = Counter()
        verifier = Verifier(self._snapshot, cannot_read=CannotRead)
        for finding in self.findings():
            if finding.kind == "open_question" or finding.status == "refuted":
                counts[finding.status] += 1
                continue
            checked = verifier.check(finding)
            status = "stale" if checked.moved else checked.finding.status
            counts[status] += 1
            self.mark(finding.id, status, "its citations were checked again")
        return counts


def in_order(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """By phase, then the most relevant first, then by id."""
    return tuple(sorted(findings, key=lambda f: (f.phase, -f.relevance * f.confidence, f.id)))
