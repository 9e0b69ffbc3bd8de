"""Settings: flag beats environment beats the user's own file beats default. Never read from the explored repository."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from manifests.errors import UsageError

_CREDENTIALS = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_BASE_URL",
    "CLAUDE_CODE_USE_BEDROCK",
    "LEADLINE_PROVIDER",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the person configured. `file` holds the parsed configuration file, one table a subject."""

    state_dir: Path
    cache_dir: Path
    parallel: int = 4
    max_agents: int = 40
    max_minutes: float = 60.0
    silence_s: float = 300.0
    ask_above_cost: float = 5.0
    ask_above_tokens: int = 3_000_000
    """Nobody is asked below these: in money if a price is configured, else in uncached input tokens."""
    file: Mapping[str, object] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_credentials(self) -> bool:
        """Whether anything is configured that a model endpoint could be reached with."""
        claude = self.file.get("claude")
        configured = isinstance(claude, Mapping) and any(
            claude.get(k) for k in ("api_key", "auth_token", "base_url", "provider")
        )
        return configured or any(self.environment.get(name) for name in _CREDENTIALS)


def load_settings(environment: Mapping[str, str]) -> Settings:
    """Roots, limits and the user's file. Raises UsageError for a file that cannot be parsed or a wrong value."""
    state = environment.get("LEADLINE_STATE_DIR") or _user_folder("state", environment)
    cache = environment.get("LEADLINE_CACHE_DIR") or _user_folder("cache", environment)
    config = Path(environment.get("LEADLINE_CONFIG") or _user_folder("config", environment) / "config.toml")
    parsed = _read_file(config, required=bool(environment.get("LEADLINE_CONFIG")))
    _known(parsed, _TABLES, config, "")
    limits = parsed.get("limits", {})
    if not isinstance(limits, Mapping):
        raise UsageError(f"{config}: `limits` is not a table", hint="write [limits] and one setting a line below it")
    _known(limits, _LIMITS, config, "limits.")
    return Settings(
        state_dir=Path(state).expanduser().absolute(),
        cache_dir=Path(cache).expanduser().absolute(),
        parallel=int(_number(limits, "parallel", 4, config, least=1)),
        max_agents=int(_number(limits, "max_agents", 40, config, least=1)),
        max_minutes=_number(limits, "max_minutes", 60.0, config, least=0.01),
        silence_s=_number(limits, "silence_seconds", 300.0, config, least=1),
        ask_above_cost=_number(limits, "ask_above_cost", 5.0, config, least=0),
        ask_above_tokens=int(_number(limits, "ask_above_tokens", 3_000_000, config, least=0)),
        file=parsed,
        environment=dict(environment),
    )


_TABLES = ("claude", "limits")
_LIMITS = ("parallel", "max_agents", "max_minutes", "silence_seconds", "ask_above_cost", "ask_above_tokens")


def _known(table: Mapping[str, object], names: Sequence[str], source: Path, before: str) -> None:
    """A setting that nobody reads is a mistake of whoever wrote it: a limit that does not hold, for instance."""
    for name in table:
        if name not in names:
            raise UsageError(f"{source}: unknown setting {before}{name}", hint=f"known are {', '.join(names)}")


_XDG = {"state": ".local/state", "cache": ".cache", "config": ".config"}


def _user_folder(kind: Literal["state", "cache", "config"], environment: Mapping[str, str]) -> Path:
    """The platform's own place. On Linux the same as platformdirs says, whose import takes 17 ms of each command."""
    system: str = sys.platform
    if system == "linux":
        stated = environment.get(f"XDG_{kind.upper()}_HOME", "").strip()
        return Path(stated or f"~/{_XDG[kind]}", "leadline").expanduser()
    import platformdirs

    find = {
        "state": platformdirs.user_state_path,
        "cache": platformdirs.user_cache_path,
        "config": platformdirs.user_config_path,
    }
    return find[kind]("leadline")


def _read_file(path: Path, *, required: bool) -> Mapping[str, object]:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        if required:
            raise UsageError(f"no configuration file at {path}", hint="correct or unset LEADLINE_CONFIG") from None
        return {}
    except OSError as error:
        raise UsageError(
            f"cannot read {path}: {os.strerror(error.errno or 0)}", hint="check its permissions"
        ) from error
    import tomllib

    try:
        return tomllib.loads(data.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not valid TOML: {error}", hint="correct the file, or move it away") from error


def _number(table: Mapping[str, object], key: str, default: float, source: Path, *, least: float) -> float:
    value = table.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or value < least:
        raise UsageError(f"{source}: limits.{key} is {value!r}", hint=f"give a number of at least {least:g}")
    return float(value)
