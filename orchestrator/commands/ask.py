"""`leadline ask`: one more question in a session, or a small prompt for as many as somebody has."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from manifests.errors import LeadlineError
from manifests.sessions import SessionEntry, SessionStore
from orchestrator import runs, stored
from orchestrator.commands.explore import call_of, reported
from orchestrator.output import print_text, say
from orchestrator.settings import Settings, load_settings
from orchestrator.streams import readable
from orchestrator.terminal import printable

HELP = "/findings  /cost  /context  /compact  /quit; anything else is a question"


def ask(*, session: str, question: str | None, quiet: bool, **options: Any) -> int:
    """Answer one question; without one, read questions until the input ends."""
    settings = load_settings(os.environ)
    entry = SessionStore(settings.state_dir, redact=lambda value: value).resolve(session)
    call, as_json = call_of(settings, options)

    def one(text: str) -> int:
        return reported(
            lambda view, announce: runs.further(entry, text, call, settings, view, announce),
            as_json=as_json,
            quiet=quiet,
        )

    if question is not None:
        return one(readable(question))
    return _Prompt(settings, entry, one).run()


class _Prompt:
    """Reads lines until the end of the input, with history and editing where there is a terminal."""

    def __init__(self, settings: Settings, entry: SessionEntry, answer: Callable[[str], int]) -> None:
        self._settings = settings
        self._entry = entry
        self._answer = answer
        self._last = 0

    def run(self) -> int:
        """Exit code of the last question; 0 when none was asked."""
        interactive = sys.stdin.isatty()
        if interactive:
            import readline  # noqa: F401 - gives input() its history and editing

            say(f"session {self._entry.id}: {printable(self._entry.question)}\n{HELP}")
        while True:
            try:
                line = input("> " if interactive else "").strip()
            except EOFError:
                return self._last
            if line in ("/quit", "/exit"):
                return self._last
            if line:
                self._take(line)

    def _take(self, line: str) -> None:
        try:
            if line.startswith("/"):
                print_text(self._command(line))
            else:
                self._last = self._answer(line)
        except LeadlineError as error:
            self._last = error.exit_code
            say(printable(f"{error}\n  {error.hint}"))

    def _command(self, line: str) -> str:
        store = SessionStore(self._settings.state_dir, redact=lambda value: value)
        if line == "/compact":
            with store.open(self._entry) as session:
                return f"{stored.forget_earlier(session)} earlier answers are no longer sent along; findings stay"
        with store.read(self._entry) as session:
            match line:
                case "/findings":
                    return stored.findings_text(stored.load_report(session))
                case "/cost":
                    return stored.cost_text(session)
                case "/context":
                    earlier = stored.earlier_answers(session, session.read_manifest())
                    return earlier or "nothing is sent along with a question but findings"
        return HELP
