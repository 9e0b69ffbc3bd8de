"""`leadline sessions`, `show`, `evidence` and `clean`: what is on disk, read without disturbing who holds it."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from datetime import timedelta

from manifests.envelope import DOCTOR
from manifests.errors import LeadlineError, StateError, UsageError
from manifests.fields import parse_timestamp, utc_now
from manifests.sessions import SessionEntry, SessionStore
from orchestrator.output import print_json, print_text, say
from orchestrator.settings import Settings, load_settings
from orchestrator.terminal import printable_line


def sessions(*, as_json: bool) -> int:
    """List every session of the user, newest first."""
    entries = _store(load_settings(os.environ)).list()
    if as_json:
        print_json({"sessions": [_entry_document(e) for e in entries]})
    elif not entries:
        print_text('no sessions yet; start one: leadline explore REPO "QUESTION"')
    else:
        print_text("\n".join(_entry_text(e) for e in entries))
    return 0


def show(*, session: str, what: str | None, context: str | None, turn: int | None, as_json: bool) -> int:
    """Print the answer of a session, or its findings, tasks, cost, manifest, or the context of one subagent."""
    if turn is not None and context is None:
        raise UsageError("--turn says nothing without --context", hint="name the subagent: --context TASK --turn N")
    if context is not None and what is not None:
        raise UsageError(f"--context and --{what} show different things", hint="give one of them")

    from orchestrator import stored

    settings = load_settings(os.environ)
    store = _store(settings)
    entry = store.resolve(session)
    _refuse_damaged(entry)
    if entry.status != "live" and (problem := next(store.damage(entry), None)):
        raise StateError(f"session {entry.id} is damaged: {problem}", hint=DOCTOR)
    with store.read(entry) as opened:
        if what == "manifest":
            print_json(opened.read_manifest().to_dict())
            return 0
        if what == "cost":
            print_json(stored.cost_document(opened)) if as_json else print_text(stored.cost_text(opened))
            return 0
        if context is not None:
            shown = stored.context_of(opened, context, turn)
            print_json(stored.context_document(shown)) if as_json else print_text(stored.context_text(shown))
            return 0
        report = stored.load_report(opened)
    if what == "findings":
        rows = stored.findings_document(report)
        print_json(rows) if as_json else print_text(stored.findings_text(report))
    elif what == "tasks":
        rows = stored.tasks_document(report)
        print_json(rows) if as_json else print_text(stored.tasks_text(report))
    else:
        from orchestrator.report import to_document, to_markdown

        print_json(to_document(report)) if as_json else print_text(to_markdown(report))
    return 0


def evidence(*, ref: str, session: str | None, as_json: bool) -> int:
    """Print raw evidence; of all sessions of the user unless one is named."""
    from orchestrator.stored import open_evidence

    store = _store(load_settings(os.environ))
    entries = [store.resolve(session)] if session else store.list(deep_check_s=0)
    problems: list[str] = []
    for entry in entries:
        try:
            with store.read(entry) as opened:
                found = open_evidence(opened, ref)
        except StateError as error:
            if session:
                raise
            problems.append(f"session {entry.id}: {error}")
            continue
        if found is None:
            continue
        if as_json:
            print_json({"session": entry.id, **found.document()})
        elif sys.stdout.isatty():
            print_text(found.data.decode("utf-8", "replace"))
        else:
            sys.stdout.buffer.write(found.data)
            sys.stdout.buffer.flush()
        return 0
    for problem in problems:
        say(f"not searched: {problem}")
    where = f"session {session}" if session else f"{len(entries) - len(problems)} sessions"
    raise UsageError(f"no evidence {ref!r} in {where}", hint="leadline show SESSION --findings --json lists references")


def clean(
    *, session: Sequence[str], finished: bool, older_than: int | None, cache: bool, dry_run: bool, as_json: bool
) -> int:
    """Remove what was named; says each. Live sessions are kept, and saying so is exit code 3 when one was named."""
    if not (session or finished or older_than is not None or cache):
        raise UsageError(
            "nothing named to remove", hint="name sessions, or give --finished, --older-than DAYS or --cache"
        )
    settings = load_settings(os.environ)
    store = _store(settings)
    removed: list[str] = []
    kept: list[str] = []
    for entry in _chosen(store, session, finished=finished, older_than=older_than):
        try:
            if entry.status == "live":
                raise StateError(f"session {entry.id} is live", hint="end it first")
            if not dry_run:
                store.remove(entry)
            removed.append(entry.id)
        except StateError as error:
            kept.append(f"{entry.id}: {error}")
    if not dry_run:
        store.sweep()
    if cache:
        removed += _remove_cache(settings, dry_run=dry_run)
    if as_json:
        print_json({"removed": removed, "kept": kept, "dry_run": dry_run})
    else:
        verb = "would remove" if dry_run else "removed"
        print_text("\n".join([*(f"{verb} {r}" for r in removed), *(f"kept {k}" for k in kept)]) or "nothing to remove")
    return StateError.exit_code if kept and session else 0


def _store(settings: Settings) -> SessionStore:
    """For reading and removing only."""
    return SessionStore(settings.state_dir, redact=_nothing_is_written)


def _nothing_is_written(_: object) -> object:
    raise AssertionError("a session opened for reading was written to")


def _refuse_damaged(entry: SessionEntry) -> None:
    if entry.status == "damaged":
        raise StateError(f"session {entry.id} is damaged: {entry.problem}", hint=DOCTOR)


def _chosen(store: SessionStore, names: Sequence[str], *, finished: bool, older_than: int | None) -> list[SessionEntry]:
    chosen = {entry.id: entry for entry in map(store.resolve, names)}
    if finished or older_than is not None:
        for entry in store.list(deep_check_s=0):
            old = older_than is None or _age_exceeds(entry, older_than)
            if old and (not finished or entry.status == "finished"):
                chosen.setdefault(entry.id, entry)
    return list(chosen.values())


def _age_exceeds(entry: SessionEntry, days: int) -> bool:
    try:
        return utc_now() - parse_timestamp(entry.updated_at) > timedelta(days=days)
    except ValueError:
        return False


def _remove_cache(settings: Settings, *, dry_run: bool) -> list[str]:
    import shutil

    if not settings.cache_dir.is_dir():
        return []
    if not dry_run:
        try:
            shutil.rmtree(settings.cache_dir)
        except OSError as error:
            raise LeadlineError(
                f"cannot remove {str(settings.cache_dir)!r}: {os.strerror(error.errno or 0)}",
                hint="check its permissions",
            ) from error
    return [str(settings.cache_dir)]


def _entry_document(entry: SessionEntry) -> dict[str, object]:
    return {
        "session": entry.id,
        "status": entry.status,
        "repository": entry.root,
        "question": entry.question,
        "engine": entry.engine,
        "created": entry.created_at,
        "updated": entry.updated_at,
        "tasks": sum(entry.tasks.values()),
        "tasks_finished": entry.tasks.get("finished", 0),
        "detail": entry.problem,
    }


def _entry_text(entry: SessionEntry) -> str:
    done = f"{entry.tasks.get('finished', 0)}/{sum(entry.tasks.values())} tasks" if entry.tasks else ""
    about = entry.problem or f"{entry.question[:80]}"
    holder = f" pid {entry.holder.pid}" if entry.holder else ""
    return printable_line(f"{entry.id}  {entry.status + holder:<12}  {done:>11}  {entry.root}  {about}")
