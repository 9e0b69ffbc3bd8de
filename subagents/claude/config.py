"""How the model is reached and asked: configuration, typed. No window, output limit or price is a constant here.

Defaults name no model either: the newest of a line is taken out of the SDK's own list when a client is made.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Literal, get_args

from manifests.errors import UsageError
from subagents.claude.budget import TaskLimits
from subagents.claude.history import ClearingMode
from subagents.claude.prices import Prices, prices_from

Provider = Literal["anthropic", "bedrock", "vertex", "foundry"]
Thinking = Literal["default", "adaptive", "disabled", "between_tools", "enabled"]
Effort = Literal["", "low", "medium", "high", "xhigh", "max"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaudeSettings:
    """Everything a person may set under `[claude]`. Empty and None mean: what the endpoint or the SDK says."""

    provider: Provider = "anthropic"
    base_url: str = ""
    api_key: str = field(default="", repr=False)
    auth_token: str = field(default="", repr=False)
    region: str = ""
    project: str = ""
    resource: str = ""
    model: str = ""
    """Of subagents. Empty: the newest of `model_line` in the SDK's list."""
    model_line: str = "sonnet"
    coordinator_model: str = ""
    """Plans and answers; empty: `model`."""
    verify_model: str = ""
    thinking: Thinking = "default"
    thinking_budget_tokens: int = 0
    """Only with `thinking = "enabled"`, for models that still take a budget."""
    effort: Effort = ""
    window_tokens: int | None = None
    max_output_tokens: int | None = None
    reply_tokens: int | None = None
    """Asked for as `max_tokens`; default: an eighth of the window, at most the model's output limit."""
    margin: float = 0.08
    binds_thinking: bool | None = None
    """Whether thinking must come back after an unchanged prefix. None: assumed as soon as signed thinking is seen."""
    cache: bool = True
    cache_ttl: Literal["5m", "1h"] = "5m"
    clearing: ClearingMode | Literal["auto"] = "auto"
    server_side: bool | None = None
    """Context management of the API. None: where the model's capabilities report it and thinking is bound."""
    diagnostics: bool = False
    """Ask the API for its own reasons of cache misses (a beta)."""
    strict_tools: bool | None = None
    """Strict tool schemas. None: where the model's capabilities report structured outputs."""
    timeout_s: float = 600.0
    outage_limit_s: float = 900.0
    parallel_requests: int = 16
    fan_out: int | None = None
    """Most subagents of one phase. None: decided from the question and where its hits are."""
    max_phases: int = 3
    prices: Mapping[str, object] = field(default_factory=dict)
    limits: TaskLimits = field(default_factory=TaskLimits)

    def __post_init__(self) -> None:
        if not 0 <= self.margin < 1:
            raise UsageError(f"claude.margin is {self.margin!r}", hint="give a share between 0 and 1")
        if self.thinking == "enabled" and self.thinking_budget_tokens < 1024:
            raise UsageError(
                f"claude.thinking_budget_tokens is {self.thinking_budget_tokens}",
                hint="give at least 1024, or use thinking = 'adaptive'",
            )

    def prices_of(self, model: str) -> Prices:
        return prices_from(self.prices, model)


def settings_from(table: Mapping[str, object], environment: Mapping[str, str]) -> ClaudeSettings:
    """Settings out of the `[claude]` table and the environment, which wins.

    Raises UsageError for an unknown key and for a value of the wrong kind.
    """
    known = {f.name: f for f in fields(ClaudeSettings)}
    values: dict[str, object] = {}
    for name, value in table.items():
        if name not in known:
            raise UsageError(f"unknown setting claude.{name}", hint=f"known are {', '.join(sorted(known))}")
        values[name] = _limits(value) if name == "limits" else _checked(name, value)
    for name, variable in (
        ("provider", "LEADLINE_PROVIDER"),
        ("model", "LEADLINE_MODEL"),
        ("effort", "LEADLINE_EFFORT"),
        ("base_url", "ANTHROPIC_BASE_URL"),
    ):
        if given := environment.get(variable):
            values[name] = _checked(name, given)
    for name, variable in (("window_tokens", "LEADLINE_WINDOW_TOKENS"), ("reply_tokens", "LEADLINE_REPLY_TOKENS")):
        if given := environment.get(variable):
            if not given.isdigit():
                raise UsageError(f"{variable} is {given!r}", hint="give a number of tokens")
            values[name] = int(given)
    for name, variable in (("api_key", "ANTHROPIC_API_KEY"), ("auth_token", "ANTHROPIC_AUTH_TOKEN")):
        if name in values:
            values[name] = _header_value(str(values[name]), f"claude.{name}")
        elif given := environment.get(variable):
            bare = _header_value(given, variable)
            if bare != given:  # else left to the SDK, which knows what comes first
                values[name] = bare
    if address := values.get("base_url"):
        _check_address(str(address))
    settings = ClaudeSettings(**values)  # type: ignore[arg-type]
    for name in settings.prices:
        settings.prices_of(name)
    if settings.api_key or settings.auth_token:
        from scratch.redaction import know_own_secrets

        know_own_secrets((settings.api_key, settings.auth_token))
    return settings


def _header_value(key: str, name: str) -> str:
    """The key without white space around it. No other character of it is ever printed."""
    bare = key.strip()
    if not all("!" <= character <= "~" for character in bare):
        raise UsageError(
            f"{name} holds a character that no key has: white space, a control character or one beyond ASCII",
            hint="copy the key again",
        )
    return bare


def _check_address(address: str) -> None:
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(address)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        good = False
    if not good:
        raise UsageError(
            f"the address of the endpoint is {address!r}",
            hint="give ANTHROPIC_BASE_URL (or claude.base_url) as http://HOST:PORT or https://HOST",
        )


_CHOICES: Mapping[str, tuple[str, ...]] = {
    "provider": get_args(Provider),
    "thinking": get_args(Thinking),
    "effort": get_args(Effort),
    "cache_ttl": ("5m", "1h"),
    "clearing": (*get_args(ClearingMode), "auto"),
}
_NUMBERS = {
    "window_tokens",
    "max_output_tokens",
    "reply_tokens",
    "thinking_budget_tokens",
    "parallel_requests",
    "fan_out",
    "max_phases",
}
_FLOATS = {"margin", "timeout_s", "outage_limit_s"}
_FLAGS = {"binds_thinking", "cache", "server_side", "diagnostics", "strict_tools"}


def _checked(name: str, value: object) -> object:
    if name in _CHOICES:
        good, wanted = value in _CHOICES[name], f"one of {', '.join(repr(c) for c in _CHOICES[name])}"
    elif name in _NUMBERS:
        good, wanted = isinstance(value, int) and not isinstance(value, bool) and value > 0, "a whole number above 0"
    elif name in _FLOATS:
        good, wanted = isinstance(value, int | float) and not isinstance(value, bool) and value >= 0, "a number"
    elif name in _FLAGS:
        good, wanted = isinstance(value, bool), "true or false"
    elif name == "prices":
        good, wanted = isinstance(value, Mapping), "a table, one entry a model"
    else:
        good, wanted = isinstance(value, str), "a text"
    if not good:
        raise UsageError(f"claude.{name} is {value!r}", hint=f"give {wanted}")
    return value


def _limits(value: object) -> TaskLimits:
    known = {f.name for f in fields(TaskLimits)}
    if not isinstance(value, Mapping) or set(value) - known:
        raise UsageError(f"claude.limits is {value!r}", hint=f"a table with {', '.join(sorted(known))}")
    for name, number in value.items():
        if isinstance(number, bool) or not isinstance(number, int | float) or number <= 0:
            raise UsageError(f"claude.limits.{name} is {number!r}", hint="give a number above 0")
    return TaskLimits(**value)


def newest_model(names: Iterable[str], line: str) -> str:
    """The newest `claude-<line>-<major>[-<minor>]` of a list of model names; dated names are other spellings of those.

    Raises UsageError when the list has none of that line.
    """
    pattern = re.compile(rf"claude-{re.escape(line)}-(\d{{1,2}})(?:-(\d{{1,2}}))?\Z")
    found = [(int(m[1]), int(m[2] or 0), name) for name in names if (m := pattern.match(name))]
    if not found:
        raise UsageError(f"no model of the line {line!r} is known", hint="set claude.model to the model's full name")
    return max(found)[2]


# --- what the endpoint says about a model -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """What is known of one model, from the endpoint and from configuration; both windows are decided here."""

    model: str
    window_tokens: int
    reply_tokens: int
    source: str
    """Where the window comes from: `models api` or `configuration`."""
    can_clear: bool = False
    """`clear_tool_uses` is among its context edits."""
    can_compact: bool = False
    structured_outputs: bool = False
    thinking_types: frozenset[str] | None = None
    effort_levels: frozenset[str] | None = None
    """None: the endpoint does not say."""


def facts_from(info: Mapping[str, object] | None, settings: ClaudeSettings, model: str) -> ModelFacts:
    """Facts out of a ModelInfo (as JSON; None when there is none) and the settings, which win.

    Raises UsageError when neither knows the window.
    """
    info = info or {}
    reported = _int(info.get("max_input_tokens")) or _served_window(info)
    window = settings.window_tokens or reported
    if not window:
        raise UsageError(
            f"the endpoint does not say how large the window of {model!r} is",
            hint="set claude.window_tokens (or LEADLINE_WINDOW_TOKENS) to what the server was started with",
        )
    most = settings.max_output_tokens or _int(info.get("max_tokens")) or window // 2
    reply = min(settings.reply_tokens or window // 8, most)
    capabilities = info.get("capabilities")
    caps = capabilities if isinstance(capabilities, Mapping) else {}
    management = _table(caps.get("context_management"))
    thinking = _table(_table(caps.get("thinking")).get("types"))
    effort = _table(caps.get("effort"))
    return ModelFacts(
        model=model,
        window_tokens=window,
        reply_tokens=max(1, reply),
        source="configuration" if settings.window_tokens else "models api",
        can_clear=_supported(management.get("clear_tool_uses_20250919")),
        can_compact=_supported(management.get("compact_20260112")),
        structured_outputs=_supported(caps.get("structured_outputs")),
        thinking_types=_supported_ones(thinking),
        effort_levels=_supported_ones(effort),
    )


def _served_window(info: Mapping[str, object]) -> int | None:
    """llama.cpp's server says what it was started with in an extra field."""
    return _int(_table(info.get("meta")).get("n_ctx"))


def _table(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _supported_ones(table: Mapping[str, object]) -> frozenset[str] | None:
    return frozenset(name for name, value in table.items() if _supported(value)) if table else None


def _supported(value: object) -> bool:
    return _table(value).get("supported") is True


def _int(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
