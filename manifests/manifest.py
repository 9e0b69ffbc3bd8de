"""Where a session stands: the one document that resume reads. Values and their JSON form; no I/O.

Its size depends on the number of tasks, never on the number of turns: steps go to the journal and the transcripts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from manifests.fields import Fields, Malformed, timestamp
from manifests.schemas import SESSION_STATUSES, SessionStatus
from manifests.tasks import Task, TaskStatus

AnswerStatus = Literal["none", "partial", "complete", "not_found"]
"""`partial` was written after a limit or a failure; `not_found` says what was searched."""
PhaseStatus = Literal["running", "finished"]

TASKS_LIMIT = 10_000
PHASES_LIMIT = 1_000
FAILURE_LIMIT = 10_000
_TEXT_LIMIT = 100_000
_OBJECT_ID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotRecord:
    """Which code the session is about: the same four fields as the code base's `SnapshotId`."""

    kind: Literal["git", "folder"]
    commit: str | None
    tree: str
    dirty: bool

    def to_dict(self) -> dict[str, object]:
        return {"kind": self.kind, "commit": self.commit, "tree": self.tree, "dirty": self.dirty}

    @staticmethod
    def from_dict(value: object) -> SnapshotRecord:
        fields = Fields(value, "snapshot")
        return SnapshotRecord(
            kind=fields.choice("kind", ("git", "folder")),
            commit=fields.match("commit", _OBJECT_ID) if fields.has("commit") else None,
            tree=fields.match("tree", _OBJECT_ID),
            dirty=fields.flag("dirty"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseRecord:
    """One phase: its number from 1, what it is called, and which tasks it has, in the plan's order."""

    n: int
    title: str
    tasks: tuple[str, ...]
    status: PhaseStatus = "running"

    def to_dict(self) -> dict[str, object]:
        return {"n": self.n, "title": self.title, "tasks": list(self.tasks), "status": self.status}

    @staticmethod
    def from_dict(value: object, where: str) -> PhaseRecord:
        fields = Fields(value, where)
        return PhaseRecord(
            n=fields.integer("n", low=1, high=PHASES_LIMIT),
            title=fields.text("title", limit=1_000),
            tasks=fields.texts("tasks", limit=TASKS_LIMIT, each=100),
            status=fields.choice("status", get_args(PhaseStatus)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRecord:
    """One task of the plan and how it stands. `usage` sums over all attempts, so that nothing is charged twice."""

    task: Task
    phase: int
    status: TaskStatus = "pending"
    attempts: int = 0
    failure: str = ""
    usage: Mapping[str, float] = field(default_factory=dict)
    coverage: Mapping[str, float] = field(default_factory=dict)
    """Counts, e.g. files_read, skipped, truncated, timed_out."""
    started_at: str | None = None
    ended_at: str | None = None

    @property
    def id(self) -> str:
        return self.task.id

    def to_dict(self) -> dict[str, object]:
        return {
            "task": task_to_dict(self.task),
            "phase": self.phase,
            "status": self.status,
            "attempts": self.attempts,
            "failure": self.failure,
            "usage": dict(self.usage),
            "coverage": dict(self.coverage),
            "started_at": self.started_at,
            "ended_at": self.ended_at,
        }

    @staticmethod
    def from_dict(value: object, where: str) -> TaskRecord:
        fields = Fields(value, where)
        return TaskRecord(
            task=task_from_dict(fields.raw("task"), where),
            phase=fields.integer("phase", low=1, high=PHASES_LIMIT),
            status=fields.choice("status", get_args(TaskStatus)),
            attempts=fields.integer("attempts", low=0, high=1_000_000),
            failure=fields.text("failure", limit=_TEXT_LIMIT),
            usage=fields.numbers("usage", limit=100),
            coverage=fields.numbers("coverage", limit=100),
            started_at=fields.optional_time("started_at"),
            ended_at=fields.optional_time("ended_at"),
        )


RoundKind = Literal["ask", "rebase"]
ROUNDS_LIMIT = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundRecord:
    """Work that was added to a session after its first question: another one, or the same one at a newer snapshot."""

    question: str
    first_phase: int
    kind: RoundKind

    def to_dict(self) -> dict[str, object]:
        return {"question": self.question, "first_phase": self.first_phase, "kind": self.kind}

    @staticmethod
    def from_dict(value: object, where: str) -> RoundRecord:
        fields = Fields(value, where)
        return RoundRecord(
            question=fields.text("question", limit=_TEXT_LIMIT),
            first_phase=fields.integer("first_phase", low=1, high=PHASES_LIMIT),
            kind=fields.choice("kind", get_args(RoundKind)),
        )


def task_to_dict(task: Task) -> dict[str, object]:
    """JSON values only."""
    return {
        "id": task.id,
        "role": task.role,
        "question": task.question,
        "scope": list(task.scope),
        "deliverable": task.deliverable,
        "depends_on": list(task.depends_on),
        "settings": dict(task.settings),
    }


def task_from_dict(value: object, where: str = "task") -> Task:
    """Raises Malformed."""
    fields = Fields(value, where)
    return Task(
        id=fields.name("id"),
        role=fields.name("role"),
        question=fields.text("question", limit=_TEXT_LIMIT),
        scope=fields.texts("scope", limit=10_000, each=4_096),
        deliverable=fields.text("deliverable", limit=_TEXT_LIMIT, default=""),
        depends_on=fields.texts("depends_on", limit=TASKS_LIMIT, each=100),
        settings=fields.mapping("settings", limit=1_000),
    )


def add_usage(*usages: Mapping[str, float]) -> dict[str, float]:
    """Sums by name."""
    total: dict[str, float] = {}
    for usage in usages:
        for name, amount in usage.items():
            total[name] = total.get(name, 0) + amount
    return total


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """A value: each `with_...` returns the next one. Tasks keep the order in which they were planned."""

    session: str
    repository: str
    """Repository key; names the folder."""
    root: str
    """Where the repository was, for display and for resume."""
    question: str
    engine: str
    engine_settings: Mapping[str, object] = field(default_factory=dict)
    snapshot: SnapshotRecord
    scope: tuple[str, ...] = ()
    created_at: str
    updated_at: str
    status: SessionStatus = "running"
    failure: str = ""
    """Why it stopped or failed; for people."""
    phases: tuple[PhaseRecord, ...] = ()
    tasks: tuple[TaskRecord, ...] = ()
    answer: AnswerStatus = "none"
    overhead: Mapping[str, float] = field(default_factory=dict)
    """Usage outside of tasks: planning, verification, answering."""
    rounds: tuple[RoundRecord, ...] = ()
    """What was added after the first question."""
    limits: Mapping[str, float] = field(default_factory=dict)
    """What was given to hold over the whole session, by name (`max_agents`): a resumed run keeps to it as well."""
    runs: int = 1
    """How often a process worked on it: 1, and one more with each resume."""

    # --- reading ---

    def task(self, task_id: str) -> TaskRecord | None:
        return next((record for record in self.tasks if record.id == task_id), None)

    def tasks_of(self, phase: int) -> tuple[TaskRecord, ...]:
        return tuple(record for record in self.tasks if record.phase == phase)

    @property
    def asked(self) -> str:
        """The question that is being answered: the newest."""
        return self.rounds[-1].question if self.rounds else self.question

    @property
    def phases_before(self) -> int:
        """Number of the last phase of earlier rounds; 0 in the first."""
        return self.rounds[-1].first_phase - 1 if self.rounds else 0

    @property
    def last_phase(self) -> int:
        return max((one.n for one in self.phases), default=0)

    @property
    def counts(self) -> dict[str, int]:
        """How many tasks have which status; every status is there, so that the sum is the number of tasks."""
        counts: dict[str, int] = dict.fromkeys(get_args(TaskStatus), 0)
        for record in self.tasks:
            counts[record.status] += 1
        return counts

    @property
    def usage(self) -> dict[str, float]:
        """All that was used: over tasks and outside of them."""
        return add_usage(self.overhead, *(record.usage for record in self.tasks))

    # --- the next one ---

    def _next(self, **changes: object) -> Manifest:
        return replace(self, updated_at=timestamp(), **changes)  # type: ignore[arg-type]

    def with_status(self, status: SessionStatus, *, failure: str = "") -> Manifest:
        return self._next(status=status, failure=failure[:FAILURE_LIMIT])

    def with_answer(self, answer: AnswerStatus) -> Manifest:
        return self._next(answer=answer)

    def with_overhead(self, usage: Mapping[str, float]) -> Manifest:
        """Charge what was used outside of tasks, on top of what was."""
        return self._next(overhead=add_usage(self.overhead, usage))

    def with_run(self) -> Manifest:
        """A process took the session up again."""
        return self._next(status="running", failure="", runs=self.runs + 1)

    def with_round(self, question: str, kind: RoundKind) -> Manifest:
        """Begin another round behind the phases there are."""
        new = RoundRecord(question=question, first_phase=self.last_phase + 1, kind=kind)
        return self._next(rounds=(*self.rounds, new), answer="none")

    def with_limits(self, given: Mapping[str, float]) -> Manifest:
        """Those given last count; what was not given again stays."""
        return self._next(limits={**self.limits, **given}) if given else self

    def with_snapshot(self, snapshot: SnapshotRecord) -> Manifest:
        return self._next(snapshot=snapshot)

    def with_phase(self, n: int, title: str, tasks: Iterable[Task]) -> Manifest:
        """Add a phase, or plan it again: tasks known by their id keep their record and their result."""
        planned = list(tasks)
        known = {record.id: record for record in self.tasks}
        kept = tuple(record for record in self.tasks if record.phase != n)
        new = tuple(known.get(task.id) or TaskRecord(task=task, phase=n) for task in planned)
        present = {record.id for record in kept}
        phase = PhaseRecord(n=n, title=title, tasks=tuple(task.id for task in planned))
        phases = (*(other for other in self.phases if other.n != n), phase)
        return self._next(
            phases=tuple(sorted(phases, key=lambda one: one.n)),
            tasks=(*kept, *(record for record in new if record.id not in present)),
        )

    def with_phase_finished(self, n: int) -> Manifest:
        return self._next(phases=tuple(replace(one, status="finished") if one.n == n else one for one in self.phases))

    def with_task_started(self, task_id: str) -> Manifest:
        """One more attempt."""
        return self._with_task(
            task_id,
            lambda one: replace(
                one, status="running", attempts=one.attempts + 1, failure="", started_at=timestamp(), ended_at=None
            ),
        )

    def with_task_ended(
        self,
        task_id: str,
        status: TaskStatus,
        *,
        failure: str = "",
        usage: Mapping[str, float] | None = None,
        coverage: Mapping[str, float] | None = None,
    ) -> Manifest:
        """`usage` is that of this attempt and is added; `coverage` replaces."""
        return self._with_task(
            task_id,
            lambda one: replace(
                one,
                status=status,
                failure=failure[:FAILURE_LIMIT],
                usage=add_usage(one.usage, usage or {}),
                coverage=dict(coverage) if coverage is not None else one.coverage,
                ended_at=timestamp(),
            ),
        )

    def with_task_record(self, record: TaskRecord) -> Manifest:
        """Replace the record of one task."""
        return self._with_task(record.id, lambda _: record)

    def _with_task(self, task_id: str, change: Callable[[TaskRecord], TaskRecord]) -> Manifest:
        if self.task(task_id) is None:
            raise KeyError(task_id)
        return self._next(tasks=tuple(change(one) if one.id == task_id else one for one in self.tasks))

    # --- JSON ---

    def about(self) -> dict[str, object]:
        """What the session is about, not where it stands; the journal keeps it, so that it outlives the manifest."""
        return {
            "root": self.root,
            "question": self.asked,
            "engine": {"name": self.engine, "settings": dict(self.engine_settings)},
            "snapshot": self.snapshot.to_dict(),
            "scope": list(self.scope),
            "run": self.runs,
        }

    @staticmethod
    def from_about(body: Mapping[str, object], *, session: str, repository: str) -> Manifest:
        """A session that has not begun, about the same. Raises Malformed."""
        now = timestamp()
        given = {key: body.get(key) for key in ("root", "question", "engine", "snapshot", "scope")}
        empty = {"phases": [], "tasks": [], "overhead": {}, "usage": {}, "status": "interrupted", "failure": ""}
        own = {"session": session, "repository": repository, "created_at": now, "updated_at": now, "answer": "none"}
        return Manifest.from_dict({**given, **empty, **own})

    def to_dict(self) -> dict[str, object]:
        return {
            "session": self.session,
            "repository": self.repository,
            "root": self.root,
            "question": self.question,
            "engine": {"name": self.engine, "settings": dict(self.engine_settings)},
            "snapshot": self.snapshot.to_dict(),
            "scope": list(self.scope),
            "created_at": self.created_at,
            "updated_at": self.updated_at,
            "status": self.status,
            "failure": self.failure,
            "phases": [phase.to_dict() for phase in self.phases],
            "tasks": [record.to_dict() for record in self.tasks],
            "answer": self.answer,
            "overhead": dict(self.overhead),
            "usage": self.usage,
            "rounds": [one.to_dict() for one in self.rounds],
            "limits": dict(self.limits),
            "runs": self.runs,
        }

    @staticmethod
    def from_dict(value: object) -> Manifest:
        """Raises Malformed for anything that the rest of the program could trip over, dangling references included."""
        fields = Fields(value, "manifest")
        engine = Fields(fields.raw("engine"), "engine")
        manifest = Manifest(
            session=fields.name("session"),
            repository=fields.text("repository", limit=300, empty=False),
            root=fields.text("root", limit=10_000),
            question=fields.text("question", limit=_TEXT_LIMIT),
            engine=engine.name("name"),
            engine_settings=engine.mapping("settings", limit=1_000),
            snapshot=SnapshotRecord.from_dict(fields.raw("snapshot")),
            scope=fields.texts("scope", limit=10_000, each=10_000),
            created_at=fields.time("created_at"),
            updated_at=fields.time("updated_at"),
            status=fields.choice("status", SESSION_STATUSES),
            failure=fields.text("failure", limit=_TEXT_LIMIT),
            phases=tuple(
                PhaseRecord.from_dict(one, f"phases[{n}]")
                for n, one in enumerate(fields.items("phases", limit=PHASES_LIMIT))
            ),
            tasks=tuple(
                TaskRecord.from_dict(one, f"tasks[{n}]")
                for n, one in enumerate(fields.items("tasks", limit=TASKS_LIMIT))
            ),
            answer=fields.choice("answer", get_args(AnswerStatus)),
            overhead=fields.numbers("overhead", limit=100),
            rounds=tuple(
                RoundRecord.from_dict(one, f"rounds[{n}]")
                for n, one in enumerate(fields.items("rounds", limit=ROUNDS_LIMIT) if fields.has("rounds") else [])
            ),
            limits=fields.numbers("limits", limit=100),
            runs=fields.integer("runs", low=1, high=1_000_000, default=1),
        )
        _check_references(manifest)
        _check_ledger(manifest, fields.numbers("usage", limit=100))
        return manifest


def _check_references(manifest: Manifest) -> None:
    ids = [record.id for record in manifest.tasks]
    if len(set(ids)) != len(ids):
        raise Malformed("the same task stands twice")
    numbers = [phase.n for phase in manifest.phases]
    if numbers != sorted(set(numbers)):
        raise Malformed("phases are doubled or out of order")
    known, planned = set(ids), set(numbers)
    for phase in manifest.phases:
        if missing := set(phase.tasks) - known:
            raise Malformed(f"phase {phase.n} names tasks that are not there: {sorted(missing)[:3]}")
    for record in manifest.tasks:
        if record.phase not in planned:
            raise Malformed(f"task {record.id} is of phase {record.phase}, which is not there")


def _check_ledger(manifest: Manifest, stated: Mapping[str, float]) -> None:
    computed = manifest.usage
    if stated.keys() != computed.keys() or any(abs(stated[key] - computed[key]) > 1e-6 for key in computed):
        raise Malformed("usage is not the sum of what its tasks used")
