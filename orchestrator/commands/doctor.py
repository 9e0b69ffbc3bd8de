"""`leadline doctor`: whether sessions are sound, what is damaged, what can be saved; and saving it."""

from __future__ import annotations

import os

from manifests.envelope import TIMELESS
from manifests.errors import StateError, UsageError
from manifests.sessions import SessionEntry, SessionStore
from orchestrator.doctor import Diagnosis, diagnose
from orchestrator.output import print_json, print_text
from orchestrator.settings import load_settings
from orchestrator.terminal import printable_line
from scratch.redaction import Redactor


def doctor(*, session: str | None, repair: bool, as_json: bool) -> int:
    """Check one session or all. 3 if anything is damaged; with `repair`, 0 once what is sound was saved."""
    if repair and session is None:
        raise UsageError("which session is to be repaired?", hint="leadline doctor SESSION --repair")
    redactor = Redactor()
    store = SessionStore(load_settings(os.environ).state_dir, redact=redactor.json, trust=TIMELESS)
    entries = [store.resolve(session)] if session else store.list(deep_check_s=0)
    found = [diagnose(store, entry) for entry in entries]
    if repair and not found[0].sound:
        return _repair(store, entries[0], found[0], redactor, as_json=as_json)
    if as_json:
        print_json({"sessions": [one.document() for one in found]})
    else:
        print_text("\n".join(map(_text, found)) or "no sessions yet")
    return 0 if all(one.sound for one in found) else StateError.exit_code


def _repair(store: SessionStore, entry: SessionEntry, found: Diagnosis, redactor: Redactor, *, as_json: bool) -> int:
    from orchestrator.salvage import salvage

    saved = salvage(store, entry, redactor)
    if as_json:
        body = {"session": saved.session, "kept": dict(saved.kept), "left": list(saved.left)}
        print_json({"sessions": [found.document()], "salvaged": body})
        return 0
    lines = [_text(found), f"saved into {saved.session}: {_counts(saved.kept) or 'the question'}"]
    lines += [printable_line(f"  left behind: {what}") for what in saved.left]
    lines.append(f"  go on: leadline resume {saved.session}")
    print_text("\n".join(lines))
    return 0


def _text(found: Diagnosis) -> str:
    verdict = "sound" if found.sound else f"DAMAGED ({len(found.damage)})"
    lines = [f"{found.session}  {found.status}  {verdict}: checked {_counts(found.checked) or 'nothing'}"]
    lines += [f"  damaged: {what}" for what in found.damage]
    lines += [f"  note: {what}" for what in found.notes]
    if not found.sound:
        lines.append(
            f"  can be saved: {_counts(found.savable) or 'nothing that was found; the question, if the journal has it'}"
        )
        lines.append(f"  {found.hint}")
    return "\n".join(map(printable_line, lines))


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{n:,} {what}" for what, n in counts.items() if n)
