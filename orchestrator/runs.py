"""Starts and resumes explorations: session, workspace, engine and coordinator put together, signals turned into state.

What is printed is up to the caller; this module takes and returns values.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from manifests.errors import EngineError, StateError, UsageError
from manifests.fields import timestamp
from manifests.manifest import AnswerStatus, Manifest, SnapshotRecord
from manifests.sessions import Session, SessionEntry, SessionStore
from orchestrator import coverage as coverages
from orchestrator import stored
from orchestrator.coordinator import Coordinator, Result, RunLimits
from orchestrator.engines import Terms, make_engine, prepared
from orchestrator.opening import workspace_of
from orchestrator.pads import SessionPads
from orchestrator.patience import Patience
from orchestrator.report import Report, to_markdown
from orchestrator.settings import Settings
from orchestrator.signals import StopAsked, Stopper, stoppable
from orchestrator.spend import Estimate, SpendLimits, approve
from orchestrator.view import View
from scratch.findings import Citation
from scratch.redaction import Redactor
from subagents.codebase.forges import permalink
from subagents.codebase.repository import head_commit, locate, repository_key
from subagents.codebase.snapshot import open_snapshot
from subagents.codebase.types import Snapshot, SnapshotId
from subagents.engine import Engine


class Interrupted(Exception):
    """The person, or the system, asked us to stop; state is saved. `session` resumes."""

    def __init__(self, session: str) -> None:
        super().__init__(f"interrupted; session {session}")
        self.session = session


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What one call of the command line allows. `agreed` asks a person, shown an estimate; None: nobody is there."""

    limits: RunLimits
    spending: SpendLimits = field(default_factory=SpendLimits)
    given: Mapping[str, float] = field(default_factory=dict)
    """Those limits that were given in this call, by name; the others are what the configuration says."""
    yes: bool = False
    agreed: Callable[[Estimate], bool] | None = None

    def within(self, limits: Mapping[str, float]) -> Call:
        """The same under the limits that a session holds."""
        run, spend = self.limits, self.spending
        return replace(
            self,
            limits=replace(
                run,
                max_agents=int(limits.get("max_agents", run.max_agents)),
                max_minutes=limits.get("max_minutes", run.max_minutes),
            ),
            spending=replace(
                spend,
                max_cost=limits.get("max_cost", spend.max_cost),
                max_tokens=int(limits["max_tokens"]) if "max_tokens" in limits else spend.max_tokens,
            ),
        )

    def approve(self, estimate: Estimate) -> None:
        """Raises UsageError unless somebody agrees to spend this much."""
        approve(estimate, yes=self.yes, agreed=self.agreed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One question to one repository."""

    repo: Path
    question: str
    engine: str
    scope: tuple[str, ...]
    call: Call


_MANIFEST = "manifest.json"
LONGEST_QUESTION = 20_000
"""Characters. A question with a whole issue report in it fits."""


def start(request: Request, settings: Settings, view: View, announce: Callable[[str], None]) -> Report:
    """Explore. `announce` is told the session's id as soon as it can be resumed. Raises Interrupted, LeadlineError."""
    if request.call.limits.verify and request.engine == "static":
        raise _nobody_refutes(request.engine)
    redactor = Redactor()
    question = redactor.text(_checked_question(request.question, request.engine))
    request = replace(request, question=question, repo=request.repo.absolute())
    store = SessionStore(settings.state_dir, redact=redactor.json)
    session = store.create(repository_key(locate(request.repo).root))
    try:
        with (
            stoppable() as stopper,
            prepared(request.engine),
            open_snapshot(
                request.repo,
                scope=request.scope,
                store=session.snapshot_store,
                cache=settings.cache_dir,
                beat=Patience(view, request.call.limits.max_minutes).reading,
            ) as snapshot,
        ):
            manifest = _first_manifest(session, snapshot, request)
            session.write_manifest(manifest)
            announce(session.id)
            return _work(session, manifest, snapshot, request.call, settings, redactor, view, stopper)
    except StopAsked:
        raise Interrupted(session.id if session.has(_MANIFEST) else "") from None
    finally:
        session.close()
        if not session.has(_MANIFEST):
            store.remove(_unborn(session))


def _nobody_refutes(engine: str) -> UsageError:
    return UsageError(
        f"engine {engine!r} has no subagents that could try to refute claims",
        hint="leave --verify out, or use --engine claude",
    )


def _checked_question(text: str, engine: str) -> str:
    question = text.strip()
    if not question:
        raise UsageError("the question is empty", hint='for example: leadline explore . "How is a request handled?"')
    if len(question) > LONGEST_QUESTION:
        raise UsageError(
            f"the question has {len(question):,} characters, at most {LONGEST_QUESTION:,} are read",
            hint="ask in a few sentences",
        )
    if engine == "static":
        from subagents.static.question import parse_question

        if parse_question(question).names_nothing:
            raise UsageError(
                "the question names nothing that could be looked for",
                hint='say in words or names what it is about, for example: "Where is the retry limit set?"',
            )
    return question


def again(
    entry: SessionEntry,
    call: Call,
    settings: Settings,
    view: View,
    announce: Callable[[str], None],
    *,
    takeover: bool = False,
) -> Report:
    """Resume a session at its pinned snapshot. Raises like `start`.

    A finished one is only reported, unless what it rests on is to be verified: then nothing is planned, all else is.
    """
    redactor = Redactor()
    store = SessionStore(settings.state_dir, redact=redactor.json)
    with store.open(entry, takeover=takeover) as session:
        manifest = session.read_manifest()
        if manifest.status == "finished":
            if not call.limits.verify:
                return stored.load_report(session)
            call = replace(call, limits=replace(call.limits, only_failed=True))
        return _go_on(session, manifest, call, settings, redactor, view, announce)


def rebased(entry: SessionEntry, call: Call, settings: Settings, view: View, announce: Callable[[str], None]) -> Report:
    """Go on at what the repository holds now. What was found is followed there; what changed is asked again."""
    redactor = Redactor()
    store = SessionStore(settings.state_dir, redact=redactor.json)
    with store.open(entry) as session:
        manifest = session.read_manifest()
        root = root_of(session, manifest)
        with open_snapshot(root, scope=manifest.scope, store=session.snapshot_store) as snapshot:
            now = SnapshotRecord(**asdict(snapshot.id))
        if now.tree == manifest.snapshot.tree:
            view.say("nothing has changed since")
            if manifest.status == "finished":
                return stored.load_report(session)
        elif manifest.phases:
            stored.set_answer_aside(session, len(manifest.rounds))
            manifest = _left_behind(manifest).with_round(manifest.asked, "rebase")
        return _go_on(session, manifest.with_snapshot(now), call, settings, redactor, view, announce)


def _left_behind(manifest: Manifest) -> Manifest:
    """What had not finished is never taken up again at the old snapshot."""
    for record in manifest.tasks:
        if record.status in ("pending", "running"):
            manifest = manifest.with_task_record(replace(record, status="stopped", failure="the session moved on"))
    return manifest


def further(
    entry: SessionEntry,
    question: str,
    call: Call,
    settings: Settings,
    view: View,
    announce: Callable[[str], None],
) -> Report:
    """Ask one more question in a session: what it found is known, only what is missing is explored.

    A session that was interrupted goes on with the newest question; the one before is left as far as it came.
    """
    redactor = Redactor()
    store = SessionStore(settings.state_dir, redact=redactor.json)
    with store.open(entry) as session:
        manifest = session.read_manifest()
        asked = redactor.text(_checked_question(question, manifest.engine))
        if not (manifest.asked == asked and manifest.status != "finished"):
            stored.set_answer_aside(session, len(manifest.rounds))
            manifest = manifest.with_round(asked, "ask")
        return _go_on(session, manifest, call, settings, redactor, view, announce)


def _go_on(
    session: Session,
    manifest: Manifest,
    call: Call,
    settings: Settings,
    redactor: Redactor,
    view: View,
    announce: Callable[[str], None],
) -> Report:
    pinned = SnapshotId(
        kind=manifest.snapshot.kind,
        commit=manifest.snapshot.commit,
        tree=manifest.snapshot.tree,
        dirty=manifest.snapshot.dirty,
    )
    root = root_of(session, manifest)
    try:
        with (
            stoppable() as stopper,
            prepared(manifest.engine),
            open_snapshot(root, scope=manifest.scope, store=session.snapshot_store, pinned=pinned) as snapshot,
        ):
            manifest = manifest.with_limits(call.given).with_run()
            session.write_manifest(manifest)
            announce(session.id)
            _say_what_moved(root, pinned, view)
            return _work(session, manifest, snapshot, call, settings, redactor, view, stopper)
    except StopAsked:
        raise Interrupted(session.id) from None


def root_of(session: Session, manifest: Manifest) -> Path:
    """Where the repository is. Raises StateError when it is gone."""
    root = Path(manifest.root)
    if not root.exists():
        raise StateError(
            f"the repository of session {session.id} is gone: {manifest.root!r}",
            hint="bring it back to that place, or explore it anew",
        )
    return root


def _say_what_moved(root: Path, pinned: SnapshotId, view: View) -> None:
    """The session goes on at its own snapshot; whoever looks at a newer tree must not be misled."""
    place = locate(root).git
    head = head_commit(place) if place is not None else None
    if pinned.commit is not None and head != pinned.commit:
        view.say(
            f"HEAD has moved from {pinned.commit[:12]} to {(head or 'no commit')[:12]}; "
            f"going on at {pinned.commit[:12]}, as begun"
        )


def _unborn(session: Session) -> SessionEntry:
    return SessionEntry(id=session.id, repository=session.repository, path=session.folder, status="damaged", tasks={})


def _first_manifest(session: Session, snapshot: Snapshot, request: Request) -> Manifest:
    now = timestamp()
    return Manifest(
        session=session.id,
        repository=session.repository,
        root=os.fsencode(request.repo).decode("utf-8", "backslashreplace"),
        question=request.question,
        engine=request.engine,
        snapshot=SnapshotRecord(**asdict(snapshot.id)),
        scope=request.scope,
        limits=request.call.given,
        created_at=now,
        updated_at=now,
    )


def _work(
    session: Session,
    manifest: Manifest,
    snapshot: Snapshot,
    call: Call,
    settings: Settings,
    redactor: Redactor,
    view: View,
    stopper: Stopper,
) -> Report:
    """Index, run the coordinator, keep the report. What ends early leaves a manifest that says how."""
    call = call.within(manifest.limits)
    with workspace_of(snapshot, question=manifest.asked, cache_dir=settings.cache_dir, view=view) as workspace:
        workspace = replace(workspace, link=_linker(Path(manifest.root), snapshot.id))
        pads = SessionPads(session, snapshot, redactor)
        terms = Terms(
            limits=call.spending,
            check_tasks=lambda tasks: coordinator.check_tasks(tasks),
            agents_left=lambda: coordinator.agents_left,
            role_of=lambda task: record.task.role if (record := coordinator.manifest.task(task)) else "",
            earlier=stored.earlier_answers(session, manifest),
        )
        equipment = make_engine(manifest.engine, settings, session, redactor, workspace, terms)
        if call.limits.verify and equipment.refuter is None:
            raise _nobody_refutes(manifest.engine)
        coordinator = Coordinator(
            session=session,
            manifest=manifest,
            workspace=workspace,
            engine=equipment.engine,
            limits=call.limits,
            pads=pads,
            view=view,
            spend=equipment.spend,
            refuter=equipment.refuter,
            approve=lambda estimate: _approved(call, estimate, stopper),
            earlier_answer=lambda: stored.read_answer(session),
        )
        if equipment.spend is not None:
            equipment.spend.load(session)
        try:
            result = asyncio.run(_until_stopped(coordinator, equipment.engine, stopper))
        except asyncio.CancelledError:
            coordinator.save(coordinator.manifest.with_status("interrupted"))
            raise Interrupted(session.id) from None
        except (EngineError, UsageError) as error:
            coordinator.save(coordinator.manifest.with_status("failed", failure=str(error)))
            raise
        return _kept(session, coordinator, result, snapshot, redactor)


def _linker(root: Path, snapshot: SnapshotId) -> Callable[[Citation], str]:
    """Links to cited lines on the forge that the repository came from; none for a tree that is no commit."""
    place = locate(root).git
    commit = snapshot.commit
    if place is None or not place.remote or commit is None or snapshot.dirty:
        return lambda _: ""
    return lambda c: permalink(place.remote, commit, c.path, c.start, c.end)


def _kept(session: Session, coordinator: Coordinator, result: Result, snapshot: Snapshot, redactor: Redactor) -> Report:
    """Write the answer, then the manifest that says so; return what was written."""
    coverage = coverages.report(len(snapshot.files()), result.coverage)
    answer = stored.KeptAnswer(
        answer=result.answer,
        question=coordinator.manifest.asked,
        basis=stored.basis_of(result.findings),
        reason=result.reason,
        coverage=coverage,
        redacted=redactor.counts,
    )
    session.write_document(stored.ANSWER, stored.ANSWER_SCHEMA, answer.to_dict())
    found: AnswerStatus = "complete" if result.answer.found else "not_found"
    manifest = coordinator.manifest.with_answer(found if result.complete else "partial")
    manifest = manifest.with_status("finished" if result.complete else "stopped", failure=result.reason)
    coordinator.save(manifest)
    report = stored.load_report(session)
    session.write_text("answer.md", to_markdown(report))
    return report


def _approved(call: Call, estimate: Estimate, stopper: Stopper) -> None:
    """A signal while a person is asked cancels the work, as one at any other time does."""
    try:
        with stopper.at_once():
            call.approve(estimate)
    except StopAsked:
        raise asyncio.CancelledError from None


async def _until_stopped(coordinator: Coordinator, engine: Engine, stopper: Stopper) -> Result:
    """Run; the first signal cancels, so that everything is saved and closed on the way out."""
    work = asyncio.current_task()
    loop = asyncio.get_running_loop()

    def cancel() -> None:
        if work is not None:
            loop.call_soon_threadsafe(work.cancel)

    with stopper.instead(cancel):
        try:
            return await coordinator.run()
        finally:
            await engine.close()
