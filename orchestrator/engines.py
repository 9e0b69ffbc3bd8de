"""Which engine carries a session out, and what the coordinator gives it to keep to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from manifests.errors import UsageError
from manifests.sessions import Session
from manifests.tasks import Task
from orchestrator.settings import Settings
from orchestrator.spend import Spend, SpendLimits
from scratch.redaction import Redactor
from subagents.engine import Engine, Refuter, Workspace

if TYPE_CHECKING:
    from subagents.claude.config import ClaudeSettings


def choose(asked: str, settings: Settings) -> tuple[str, str]:
    """(engine, why) for `auto`, `static` or `claude`. Raises UsageError for a configuration that cannot be used."""
    if asked == "claude" and not settings.has_credentials:
        check_credentials(settings)
    name, why = asked, "as asked"
    if asked == "auto":
        name = "claude" if settings.has_credentials else "static"
        why = "credentials are configured" if settings.has_credentials else "no credentials are configured"
    if name == "claude":
        configured(settings)
    return name, why


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What an engine has to keep to."""

    limits: SpendLimits
    check_tasks: Callable[[Sequence[Task]], Sequence[str]]
    agents_left: Callable[[], int]
    role_of: Callable[[str], str]
    """Role of a task by its id; empty for what is no task."""
    earlier: str
    """Questions asked before in this session, and their answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Equipment:
    """An engine, and what comes with one that costs money."""

    engine: Engine
    spend: Spend | None = None
    """Empty: what earlier processes spent is to be loaded."""
    refuter: Refuter | None = None


def prepared(name: str) -> AbstractContextManager[None]:
    """Meanwhile, what takes long and needs nothing of a session, beside the opening of snapshot and index."""
    if name != "claude":
        return nullcontext()
    from subagents.claude.sdk import imported_ahead

    return imported_ahead()


def make_engine(
    name: str, settings: Settings, session: Session, redactor: Redactor, workspace: Workspace, terms: Terms
) -> Equipment:
    """The engine by its name; heavy imports happen here. Raises UsageError for a configuration it cannot use."""
    match name:
        case "static":
            from subagents.static import StaticEngine

            return Equipment(engine=StaticEngine())
        case "claude":
            return _claude(settings, session, redactor, workspace, terms)
        case other:
            raise UsageError(f"engine {other!r} is not available", hint="use --engine static")


def check_credentials(settings: Settings) -> None:
    """Raise UsageError when the SDK, which knows more places than we do, finds nothing to authenticate with."""
    from subagents.claude.client import make_endpoint

    make_endpoint(configured(settings))


def configured(settings: Settings) -> ClaudeSettings:
    """The `[claude]` table and the environment. Raises UsageError."""
    from subagents.claude.config import settings_from

    table = settings.file.get("claude", {})
    if not isinstance(table, Mapping):
        raise UsageError("`claude` in the configuration is no table", hint="write [claude] and its settings below it")
    return settings_from(table, settings.environment)


def _claude(settings: Settings, session: Session, redactor: Redactor, workspace: Workspace, terms: Terms) -> Equipment:
    from scratch.evidence import EvidenceStore
    from subagents.claude.client import model_of
    from subagents.claude.engine import ClaudeEngine
    from subagents.claude.ledger import Entry
    from subagents.claude.prices import Prices
    from subagents.claude.store import SessionEngineStore

    claude = configured(settings)
    store = SessionEngineStore(session, EvidenceStore(session, redact=redactor.data), redactor)
    engine = ClaudeEngine(
        claude,
        store,
        check_tasks=terms.check_tasks,
        agents_left=terms.agents_left,
        earlier=terms.earlier,
    )
    by_role: dict[str, Prices] = {}

    def price_of(entry: Entry) -> Prices:
        role = "coordinate" if entry.kind in ("plan", "answer") else (entry.task and terms.role_of(entry.task))
        if role not in by_role:
            by_role[role] = claude.prices_of(model_of(claude, role=role))
        return by_role[role]

    spend = Spend(terms.limits, price_of, prefix_tokens=engine.prefix_tokens(workspace))
    engine.on_entry = spend.add
    engine.session_limit = spend.near
    engine.answer_room = spend.room
    return Equipment(engine=engine, spend=spend, refuter=engine)
