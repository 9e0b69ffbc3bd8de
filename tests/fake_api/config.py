"""Settings by name, so that the fake can be started as a process from plain JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.fake_api import faults as fault_rules
from tests.fake_api.catalog import with_overrides
from tests.fake_api.faults import Fault, FaultPlan
from tests.fake_api.limits import RateLimit
from tests.fake_api.models.base import Model
from tests.fake_api.models.registry import make_model
from tests.fake_api.persona import ANTHROPIC, COMPATIBLE, Persona
from tests.fake_api.service import Settings

PERSONAS: Mapping[str, Persona] = {"anthropic": ANTHROPIC, "compatible": COMPATIBLE}


def settings(
    *,
    model: Model | str | Mapping[str, Any] = "standard",
    models: Mapping[str, Model | str | Mapping[str, Any]] | None = None,
    window_tokens: int | None = None,
    max_output_tokens: int | None = None,
    specs: Mapping[str, Mapping[str, Any]] | None = None,
    persona: Persona | str = ANTHROPIC,
    faults: FaultPlan | Mapping[str, Any] | None = None,
    limit: RateLimit | Mapping[str, Any] | None = None,
    **rest: Any,
) -> Settings:
    """`model` answers for all model ids that `models` does not name; a behaviour is an object or a name, see registry.

    `window_tokens` and `max_output_tokens` hold for all models; `specs` changes fields of single ones.
    """
    everywhere: dict[str, Any] = {}
    if window_tokens is not None:
        everywhere["window_tokens"] = window_tokens
    if max_output_tokens is not None:
        everywhere["max_output_tokens"] = max_output_tokens
    players = {"*": make_model(model), **{name: make_model(m) for name, m in (models or {}).items()}}
    return Settings(
        specs=with_overrides(specs or {}, everywhere),
        models=players,
        persona=PERSONAS[persona] if isinstance(persona, str) else persona,
        faults=faults if isinstance(faults, FaultPlan) else _plan(faults or {}),
        limit=limit if isinstance(limit, RateLimit) else RateLimit(**(limit or {})),
        **rest,
    )


def _plan(given: Mapping[str, Any]) -> FaultPlan:
    plan = FaultPlan()
    if "by_number" in given:
        plan.add(fault_rules.by_number({int(n): Fault(**fault) for n, fault in given["by_number"].items()}))
    if "seed" in given:
        plan.add(fault_rules.seeded(given["seed"], given.get("rate", 0.1), most=given.get("most")))
    return plan
