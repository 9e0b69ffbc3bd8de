"""Which engine carries a session out."""

from __future__ import annotations

from manifests.errors import UsageError
from manifests.sessions import Session
from orchestrator.settings import Settings
from subagents.engine import Engine


def choose(asked: str, settings: Settings) -> tuple[str, str]:
    """(engine, why) for `auto`, `static` or `claude`."""
    if asked != "auto":
        return asked, "as asked"
    if settings.has_credentials:
        return "claude", "credentials are configured"
    return "static", "no credentials are configured"


def make_engine(name: str, settings: Settings, session: Session) -> Engine:
    """The engine by its name; heavy imports happen here."""
    match name:
        case "static":
            from subagents.static import StaticEngine

            return StaticEngine()
        case other:
            raise UsageError(f"engine {other!r} is not available", hint="use --engine static")
