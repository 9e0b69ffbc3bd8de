"""What an engine is (design, sections 1 and 3): it plans, investigates and answers; the coordinator does the rest."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from manifests.tasks import Task
from scratch.findings import Citation, Finding
from subagents.codebase.types import CodeIndex, Finder, Skipped, Snapshot


class TaskStopped(Exception):
    """Raised by a heartbeat or a recorder once its task was stopped; ends work that runs in a thread."""


QuestionKind = Literal["how", "where", "dependents", "structure", "impact", "what", "other"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseSummary:
    """The structured digest of a phase's findings that new subagents are started with. Built by code."""

    phase: int
    title: str
    findings: tuple[Finding, ...]
    """Key findings first, bounded; verified ones only."""
    open_questions: tuple[str, ...]
    left_out: int
    """Findings that did not fit."""
    markdown: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """What every subagent of a session may use; shared and read-only."""

    snapshot: Snapshot
    index: CodeIndex
    finder: Finder
    question: str
    link: Callable[[Citation], str] = lambda _: ""
    """A permanent link to cited lines on the web; empty where there is none."""


class Recorder(Protocol):
    """The one door through which findings enter: checks citations at once, durable when it returns.

    Source: scratch.recorder. Raises CitationRejected (with a code and the nearest match) instead of storing.
    """

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
        """`citations` are (path, start, end); the quote is taken from the snapshot. Same finding twice: stored once."""
        ...

    def question(self, text: str) -> Finding:
        """Record an open question."""
        ...

    def note(self, text: str) -> None: ...
    def evidence(self, data: bytes, *, tool: str, arguments: Mapping[str, object]) -> str:
        """Store raw bytes once; returns `sha256:<hex>`."""
        ...

    def shown(self, path: str, start: int, end: int) -> None:
        """Say that these lines were shown to this subagent; only shown lines can be cited."""
        ...

    def findings(self) -> Sequence[Finding]:
        """All findings of this task so far, recovered ones included."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """What a task looked at. Sums over tasks stand in the answer."""

    files_read: frozenset[str] = frozenset()
    skipped: tuple[Skipped, ...] = ()
    truncated: tuple[str, ...] = ()
    """What was cut, e.g. `search 'foo': 200 of 1,934 matches`."""
    timed_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a task ended. `failure` is for people and never a result."""

    status: Literal["finished", "partial", "incomplete", "failed", "stopped"]
    coverage: Coverage = field(default_factory=Coverage)
    usage: Mapping[str, float] = field(default_factory=dict)
    failure: str = ""
    deliverable: str = ""
    """What the task has to show when it recorded no finding, e.g. `none of 12 configuration files names it`.
    A task with neither findings nor this is incomplete, whatever `status` says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskContext:
    """All that one subagent is started with; nobody else's transcript is in it."""

    task: Task
    phase: int
    workspace: Workspace
    summary: PhaseSummary | None
    recorder: Recorder
    heartbeat: Callable[[], None]
    """To be called at every sign of life; a subagent silent for longer than the limit is stopped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The tasks of one phase. `title` is shown in the live view."""

    title: str
    tasks: tuple[Task, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One sentence of an answer, tied to the findings it rests on."""

    text: str
    findings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """`markdown` shows only statements; the report adds coverage, cost and snapshot around it."""

    markdown: str
    statements: tuple[Statement, ...]
    found: bool
    """False: the question could not be answered from this snapshot, and the answer says so."""


class Engine(Protocol):
    """Swappable: `static`, `claude`. Keeps no state: all that is durable goes through recorder and coordinator."""

    @property
    def name(self) -> str: ...
    @property
    def metered(self) -> bool:
        """Whether planning and answering cost money: then results are kept, and reused instead of asked for again."""
        ...

    async def plan(self, workspace: Workspace, phase: int, summaries: Sequence[PhaseSummary]) -> Plan | None:
        """The tasks of phase `phase` (from 1), or None when enough is known. Same input, same plan."""
        ...

    async def investigate(self, context: TaskContext) -> Outcome:
        """Carry out one task. Findings are recorded on the way; cancellation may come at any await."""
        ...

    async def answer(self, workspace: Workspace, findings: Sequence[Finding], coverage: Coverage) -> Answer:
        """From findings alone."""
        ...

    async def close(self) -> None: ...


class Refuter(Protocol):
    """An engine that can put claims to fresh subagents, which try to refute them."""

    async def refute(self, workspace: Workspace, findings: Sequence[Finding], phase: int) -> Plan | None:
        """The tasks, several claims each; None when there is nothing to refute."""
        ...

    def refuted(self, findings: Sequence[Finding]) -> Mapping[str, str]:
        """Ids of findings that these verdicts refute, and why."""
        ...


OnEvent = Callable[[str, Mapping[str, object]], Awaitable[None] | None]
