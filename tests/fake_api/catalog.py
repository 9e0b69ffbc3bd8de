"""The models that the fake serves: what the SDK names, with the limits and rules that documentation gives them.

Sources: the SDK's `Model` literal (ids), its deprecation table, `ModelInfo` (fields), public documentation (windows,
cache minimum, thinking types, prefill, forced tools). What is not public there is assumed, see
docs/design-notes/fake-api.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

CONTEXT_EDITS = ("clear_tool_uses_20250919", "clear_thinking_20251015", "compact_20260112")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """One model's limits and rules."""

    id: str
    line: str
    released: str
    window_tokens: int = 1_000_000
    max_output_tokens: int = 128_000
    min_cache_tokens: int = 1024
    token_scale: float = 1.0
    thinking_types: frozenset[str] = frozenset({"adaptive", "disabled"})
    thinks_by_default: bool = False
    binds_thinking: bool = False
    refuses_forced_tools: bool = False
    accepts_prefill: bool = False
    accepts_system_messages: bool = True
    accepts_sampling: bool = False
    effort_levels: tuple[str, ...] = ("low", "medium", "high", "xhigh", "max")
    compaction_on_demand: bool = True
    context_edits: tuple[str, ...] = CONTEXT_EDITS
    structured_outputs: bool = True
    lifecycle: str = "active"
    deprecated_at: str | None = None
    retires_at: str | None = None

    @property
    def display_name(self) -> str:
        return self.id.replace("claude-", "Claude ").replace("-", " ").title()


def _models() -> Iterable[ModelSpec]:
    bound = {"binds_thinking": True, "thinks_by_default": True, "min_cache_tokens": 512, "token_scale": 1.3}
    between = frozenset({"adaptive", "between_tools", "disabled"})
    for name in ("fable-5-2", "mythos-5-2", "fable-5-1", "mythos-5-1"):
        line = name.split("-")[0]
        yield ModelSpec(
            id=f"claude-{name}",
            line=line,
            released="2026-09-01",
            refuses_forced_tools=True,
            thinking_types=frozenset({"adaptive"}),
            **bound,
        )
    for name in ("opus-5-5", "sonnet-5-5"):
        yield ModelSpec(
            id=f"claude-{name}",
            line=name.split("-")[0],
            released="2026-10-01",
            refuses_forced_tools=True,
            thinking_types=between,
            **bound,
        )
    yield ModelSpec(
        id="claude-haiku-5-5",
        line="haiku",
        released="2026-10-21",
        window_tokens=200_000,
        max_output_tokens=64_000,
        thinking_types=between,
        **bound,
    )
    for name, minimum in (("opus-5", 512), ("fable-5", 512), ("mythos-5", 512), ("sonnet-5", 1024)):
        yield ModelSpec(
            id=f"claude-{name}",
            line=name.split("-")[0],
            released="2026-06-01",
            min_cache_tokens=minimum,
            token_scale=1.3,
        )
    yield ModelSpec(id="claude-opus-4-8", line="opus", released="2026-05-01", token_scale=1.3)
    yield ModelSpec(
        id="claude-opus-4-7",
        line="opus",
        released="2026-04-01",
        min_cache_tokens=2048,
        token_scale=1.3,
        accepts_system_messages=False,
    )
    older = frozenset({"adaptive", "enabled", "disabled"})
    yield ModelSpec(
        id="claude-mythos-preview",
        line="mythos",
        released="2026-04-01",
        thinking_types=older,
        accepts_system_messages=False,
        compaction_on_demand=False,
        lifecycle="retired",
        deprecated_at="2026-05-01T00:00:00Z",
        retires_at="2026-06-30T00:00:00Z",
    )
    for name, minimum in (("opus-4-6", 4096), ("sonnet-4-6", 1024)):
        yield ModelSpec(
            id=f"claude-{name}",
            line=name.split("-")[0],
            released="2026-02-01",
            min_cache_tokens=minimum,
            thinking_types=older,
            accepts_system_messages=False,
            compaction_on_demand=False,
            accepts_sampling=True,
            effort_levels=("low", "medium", "high", "max"),
        )
    oldest = {
        "window_tokens": 200_000,
        "max_output_tokens": 64_000,
        "thinking_types": frozenset({"enabled", "disabled"}),
        "accepts_prefill": True,
        "accepts_system_messages": False,
        "accepts_sampling": True,
        "compaction_on_demand": False,
        "context_edits": CONTEXT_EDITS[:2],
    }
    for name, minimum, deprecated in (
        ("haiku-4-5", 4096, None),
        ("haiku-4-5-20251001", 4096, None),
        ("opus-4-5", 4096, "2027-01-22T00:00:00Z"),
        ("opus-4-5-20251101", 4096, "2027-01-22T00:00:00Z"),
        ("sonnet-4-5", 1024, "2026-11-30T00:00:00Z"),
        ("sonnet-4-5-20250929", 1024, "2026-11-30T00:00:00Z"),
    ):
        yield ModelSpec(
            id=f"claude-{name}",
            line=name.split("-")[0],
            released="2025-10-01",
            min_cache_tokens=minimum,
            effort_levels=("low", "medium", "high") if name.startswith("opus") else (),
            lifecycle="deprecated" if deprecated else "active",
            deprecated_at="2026-09-01T00:00:00Z" if deprecated else None,
            retires_at=deprecated,
            **oldest,  # type: ignore[arg-type]
        )


MODELS: Mapping[str, ModelSpec] = {spec.id: spec for spec in _models()}


def with_overrides(overrides: Mapping[str, Mapping[str, Any]], everywhere: Mapping[str, Any]) -> dict[str, ModelSpec]:
    """The catalogue with some fields set differently; an unknown id is a new model."""
    models = {name: replace(spec, **everywhere) for name, spec in MODELS.items()}
    for name, changes in overrides.items():
        base = models.get(name) or ModelSpec(id=name, line="custom", released="2026-01-01")
        models[name] = replace(base, **changes)
    return models


def model_info(spec: ModelSpec) -> dict[str, Any]:
    """`BetaModelInfo` (`ModelInfo` and a little more) as GET /v1/models/{id} answers it."""
    return {
        "type": "model",
        "id": spec.id,
        "display_name": spec.display_name,
        "created_at": f"{spec.released}T00:00:00Z",
        "lifecycle": spec.lifecycle,
        "deprecated_at": spec.deprecated_at,
        "retires_at": spec.retires_at,
        "line": spec.line if spec.line in {"opus", "sonnet", "haiku", "fable", "mythos"} else None,
        "max_input_tokens": spec.window_tokens,
        "max_tokens": spec.max_output_tokens,
        "capabilities": _capabilities(spec),
        "allowed_fallback_models": [],
    }


def _capabilities(spec: ModelSpec) -> dict[str, Any]:
    def has(flag: bool) -> dict[str, bool]:
        return {"supported": flag}

    types = ("adaptive", "between_tools", "disabled", "enabled")
    return {
        "batch": has(True),
        "citations": has(True),
        "code_execution": has(True),
        "compaction": {
            "supported": spec.compaction_on_demand,
            "summarize": has(spec.compaction_on_demand),
        },
        "context_management": {
            "supported": bool(spec.context_edits),
            **{name: has(name in spec.context_edits) for name in CONTEXT_EDITS},
        },
        "effort": {
            "supported": bool(spec.effort_levels),
            **{level: has(level in spec.effort_levels) for level in ("low", "medium", "high", "xhigh", "max")},
        },
        "image_input": has(True),
        "pdf_input": has(True),
        "server_tools": {"supported": True, "code_execution": has(True), "web_search": has(True)},
        "structured_outputs": has(spec.structured_outputs),
        "thinking": {
            "supported": bool(spec.thinking_types - {"disabled"}),
            "types": {name: has(name in spec.thinking_types) for name in types},
        },
    }
