"""`leadline explore` and `leadline resume`: the answer on stdout, how it went on stderr and in the exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from manifests.errors import LeadlineError, UsageError
from manifests.sessions import SessionEntry, SessionStore
from orchestrator import engines, runs
from orchestrator.coordinator import RunLimits
from orchestrator.output import print_json, print_text, say
from orchestrator.report import Report, to_document, to_markdown
from orchestrator.settings import Settings, load_settings
from orchestrator.spend import Estimate, SpendLimits
from orchestrator.streams import readable
from orchestrator.terminal import printable
from orchestrator.view import View, make_view
from subagents.codebase.repository import locate, repository_key

_KEPT = ("max_agents", "max_minutes", "max_cost", "max_tokens")
"""Options that hold for the whole session, resumed runs included."""
_EXIT = {"answered": 0, "not_found": 0, "partial": 5}


def explore(*, repo: str, question: str, engine: str, scope: Sequence[str], quiet: bool, **options: Any) -> int:
    """Explore and print the answer."""
    settings = load_settings(os.environ)
    name, why = engines.choose(engine, settings)
    if not quiet:
        say(f"engine {name}: {why}")
    call, as_json = call_of(settings, options)
    request = runs.Request(repo=Path(repo), question=readable(question), engine=name, scope=tuple(scope), call=call)
    return reported(lambda view, announce: runs.start(request, settings, view, announce), as_json=as_json, quiet=quiet)


def resume(
    *, session: str | None, takeover: bool, retry_failed: bool, rebase: bool, quiet: bool, **options: Any
) -> int:
    """Go on with a session and print the answer."""
    settings = load_settings(os.environ)
    entry = _to_resume(settings, session)
    call, as_json = call_of(settings, options)
    call = replace(call, limits=replace(call.limits, only_failed=retry_failed))
    if rebase:
        return reported(
            lambda view, announce: runs.rebased(entry, call, settings, view, announce), as_json=as_json, quiet=quiet
        )
    if not quiet and entry.status == "finished" and not call.limits.verify:
        say(f"session {entry.id} is finished; nothing runs again")
        if unfinished := sum(entry.tasks.values()) - entry.tasks.get("finished", 0):
            say(f"{unfinished} subagents of earlier questions did not finish: `leadline ask` such a question again")
    return reported(
        lambda view, announce: runs.again(entry, call, settings, view, announce, takeover=takeover),
        as_json=as_json,
        quiet=quiet,
    )


def call_of(settings: Settings, options: Mapping[str, Any]) -> tuple[runs.Call, bool]:
    """(what this call allows, whether it prints JSON) out of the options that explore, resume and ask share."""
    limits = RunLimits(
        parallel=options["parallel"] or settings.parallel,
        max_agents=options["max_agents"] or settings.max_agents,
        max_minutes=options["max_minutes"] or settings.max_minutes,
        silence_s=settings.silence_s,
        verify=options["verify"],
    )
    spending = SpendLimits(
        max_cost=options["max_cost"],
        max_tokens=options["max_tokens"],
        ask_above_cost=settings.ask_above_cost,
        ask_above_tokens=settings.ask_above_tokens,
    )
    given = {name: options[name] for name in _KEPT if options[name] is not None}
    call = runs.Call(limits=limits, spending=spending, given=given, yes=options["yes"], agreed=agreed_at_terminal())
    return call, options["as_json"]


def agreed_at_terminal() -> Callable[[Estimate], bool] | None:
    """How a person is asked, or None when nobody is there."""
    return _agreed if sys.stdin.isatty() and sys.stderr.isatty() else None


def _agreed(estimate: Estimate) -> bool:
    try:
        return click.confirm(printable(f"{estimate.line}. Go on?"), default=False, err=True)
    except click.Abort:  # the end of input
        return False


def _to_resume(settings: Settings, session: str | None) -> SessionEntry:
    store = SessionStore(settings.state_dir, redact=lambda value: value)
    if session is not None:
        return store.resolve(session)
    located = locate(Path.cwd())
    entry = store.newest_interrupted(repository_key(located.root))
    if entry is None:
        raise UsageError(
            f"no interrupted session of {str(located.root)!r}",
            hint="`leadline sessions` lists all; name one: leadline resume SESSION",
        )
    return entry


def reported(work: Callable[[View, Callable[[str], None]], Report], *, as_json: bool, quiet: bool) -> int:
    view = make_view(quiet=quiet, stream=sys.stderr)
    known: list[str] = []

    def announce(session: str) -> None:
        known.append(session)
        view.say(f"session {session}")

    try:
        report = work(view, announce)
    except runs.Interrupted as stop:
        view.close()
        if stop.session:
            say(f"interrupted; everything found so far is kept. Go on with: leadline resume {stop.session}")
        else:
            say("interrupted before the session began; nothing to resume")
        return 130
    except LeadlineError as error:
        view.close()
        if known and error.exit_code in (2, 4):
            error.hint += f"; go on with: leadline resume {known[-1]}"
        raise
    finally:
        view.close()
    print_json(to_document(report)) if as_json else print_text(to_markdown(report))
    return _EXIT[report.status]
