"""A real repository, session and engine for whole runs against the fake API."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from manifests.sessions import Session, SessionEntry, SessionStore
from manifests.tasks import Task, task_id
from scratch.evidence import EvidenceStore
from scratch.recorder import FindingRegistry, TaskRecorder
from scratch.redaction import Redactor
from subagents.claude.brake import Brake, BrakePolicy
from subagents.claude.budget import TaskLimits
from subagents.claude.config import ClaudeSettings
from subagents.claude.engine import ClaudeEngine
from subagents.claude.ledger import Entry
from subagents.claude.store import SessionEngineStore
from subagents.codebase.snapshot import open_snapshot
from subagents.codebase.types import CannotRead, CodeIndex, FileHit, SymbolHit
from subagents.engine import Outcome, PhaseSummary, TaskContext, Workspace
from subagents.index.opening import open_index

GIT_ENV = {
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org",
    "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z",
    "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "PATH": os.environ["PATH"],
}


def make_repository(folder: Path, files: dict[str, str]) -> Path:
    """A git repository with one commit."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for command in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "All of it"]):
        subprocess.run(["git", *command], cwd=folder, env={**GIT_ENV, "HOME": str(folder)}, check=True)
    return folder


def modules(count: int, *, functions: int = 12, body: int = 6) -> dict[str, str]:
    """`count` Python files that import and call each other, with unlike contents."""
    files = {"README.md": "# Sample\n\nHandles orders.\n"}
    for n in range(count):
        lines = [f'"""Module {n}: handles orders of kind {n}."""', ""]
        if n:
            lines.append(f"from shop.part{n - 1} import handle_{n - 1}_0")
        for f in range(functions):
            lines += [
                "",
                "",
                f"def handle_{n}_{f}(order, limit={n * 100 + f}):",
                f'    """Handle step {f} of kind {n}."""',
            ]
            lines += [
                f"    order = order.apply(limit, stage={f}, weight={n * 7 + i}, name='part {n} {f} {i}')"
                for i in range(body)
            ]
            if n:
                lines.append(f"    return handle_{n - 1}_0(order)")
            else:
                lines.append("    return order")
        files[f"shop/part{n}.py"] = "\n".join(lines) + "\n"
    return files


@dataclass
class IndexFinder:
    """Ranks by names that occur in the query; enough of a Finder for tests of what uses one."""

    index: CodeIndex

    def find(self, query: str, *, limit: int = 20, include_tests: bool = True) -> Sequence[FileHit]:
        words = {word.lower() for word in query.split()}
        hits = []
        for path in self.index.paths():
            symbols = self.index.symbols(path)
            score = sum(1.0 for w in words if w in path.lower()) + 0.5
            hits.append(
                FileHit(
                    path=path,
                    score=score,
                    reasons=("name",),
                    symbols=tuple(SymbolHit(symbol=s, score=1.0) for s in symbols[:2]),
                )
            )
        return sorted(hits, key=lambda h: (-h.score, h.path))[:limit]

    def find_symbols(self, query: str, *, limit: int = 20) -> Sequence[SymbolHit]:
        return [s for hit in self.find(query, limit=limit) for s in hit.symbols][:limit]


@dataclass
class World:
    """One repository and one session on it."""

    workspace: Workspace
    session: Session
    redactor: Redactor
    registry: FindingRegistry
    evidence: EvidenceStore
    entries: list[Entry] = field(default_factory=list)
    beats: int = 0

    def task(self, question: str = "How are orders handled?", **fields: Any) -> Task:
        scope = tuple(fields.get("scope", ()))
        settings = dict(fields.get("settings", {}))
        deliverable = str(fields.get("deliverable", "the functions that handle orders"))
        identity = task_id(
            role="investigate",
            question=question,
            scope=scope,
            deliverable=deliverable,
            snapshot_tree=self.workspace.snapshot.id.tree,
            settings=settings,
        )
        return Task(
            id=identity,
            role=str(fields.get("role", "investigate")),
            question=question,
            scope=scope,
            deliverable=deliverable,
            settings=settings,
        )

    def recorder(self, task: Task, phase: int = 1) -> TaskRecorder:
        return TaskRecorder(
            self.session,
            task=task.id,
            phase=phase,
            source=self.workspace.snapshot,
            registry=self.registry,
            evidence=self.evidence,
            redactor=self.redactor,
            cannot_read=CannotRead,
        )

    def context(self, task: Task, summary: PhaseSummary | None = None) -> TaskContext:
        def beat() -> None:
            self.beats += 1

        return TaskContext(
            task=task,
            phase=1,
            workspace=self.workspace,
            summary=summary,
            recorder=self.recorder(task),
            heartbeat=beat,
        )

    def engine(self, settings: ClaudeSettings, *, brake: Brake | None = None) -> ClaudeEngine:
        return ClaudeEngine(
            settings,
            SessionEngineStore(self.session, self.evidence, self.redactor),
            brake=brake or quick_brake(),
            on_entry=self.entries.append,
        )

    async def run(self, settings: ClaudeSettings, task: Task | None = None, **engine: Any) -> Outcome:
        made = self.engine(settings, **engine)
        try:
            return await made.investigate(self.context(task or self.task()))
        finally:
            await made.close()


def quick_brake(**policy: Any) -> Brake:
    return Brake(BrakePolicy(**{"base_s": 0.002, "longest_s": 0.02, "outage_limit_s": 20.0, **policy}))


def settings_for(api: Any, **changes: Any) -> ClaudeSettings:
    """Settings that reach a fake API; 60 turns at most unless told otherwise."""
    limits = TaskLimits(max_turns=changes.pop("max_turns", 60))
    return ClaudeSettings(
        **{
            "base_url": api.base_url,
            "api_key": api.api_key,
            "model": "claude-opus-5",
            "limits": limits,
            "timeout_s": 20.0,
            **changes,
        }
    )


@contextmanager
def opened(repository: Path, cache: Path) -> Iterator[Workspace]:
    """A repository frozen and indexed; may be shared by many sessions."""
    snapshot = open_snapshot(repository)
    index = open_index(snapshot, cache, workers=1)
    try:
        yield Workspace(snapshot=snapshot, index=index, finder=IndexFinder(index), question="How are orders handled?")
    finally:
        index.close()
        snapshot.close()


@contextmanager
def session_on(
    workspace: Workspace, state: Path, session: Callable[[SessionStore], Session] | None = None
) -> Iterator[World]:
    """A session, new unless `session` opens another one."""
    redactor = Redactor()
    store = SessionStore(state, redact=redactor.json)
    held = session(store) if session else store.create(workspace.snapshot.repository_key)
    try:
        yield World(
            workspace=workspace,
            session=held,
            redactor=redactor,
            registry=FindingRegistry.load(held),
            evidence=EvidenceStore(held, redact=redactor.data),
        )
    finally:
        held.close()


@contextmanager
def world(
    tmp_path: Path, repository: Path, *, session: Callable[[SessionStore], Session] | None = None
) -> Iterator[World]:
    with (
        opened(repository, tmp_path / "cache") as workspace,
        session_on(workspace, tmp_path / "state", session) as made,
    ):
        yield made


def newest(store: SessionStore) -> Session:
    """The one session of a store, opened again for writing; it needs no manifest for that."""
    (folder,) = store.root.glob("*/*-*-*")
    entry = SessionEntry(id=folder.name, repository=folder.parent.name, path=folder, status="interrupted", tasks={})
    return store.open(entry)
