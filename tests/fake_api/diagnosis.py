"""Cache diagnostics: why a request could not reuse the prefix of the one it names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.fake_api.prompt import Prompt


@dataclass(slots=True)
class _Fingerprint:
    model: str
    parts: dict[str, list[bytes]]
    prompt_tokens: int
    settings: object


class Diagnosis:
    """Remembers the prompts of requests that asked for diagnostics."""

    def __init__(self) -> None:
        self._known: dict[str, _Fingerprint] = {}

    def explain(self, message_id: str, body: Mapping[str, Any], prompt: Prompt) -> dict[str, Any] | None:
        """The `diagnostics` of the response; None when nothing diverged or nothing was asked."""
        asked = body.get("diagnostics")
        if asked is None:
            return None
        now = _fingerprint(body, prompt)
        self._known[message_id] = now
        previous_id = asked.get("previous_message_id")
        if previous_id is None:
            return None
        before = self._known.get(previous_id)
        if before is None:
            return {"cache_miss_reason": {"type": "previous_message_not_found"}}
        reason = _reason(before, now, prompt)
        return None if reason is None else {"cache_miss_reason": reason}


def _fingerprint(body: Mapping[str, Any], prompt: Prompt) -> _Fingerprint:
    parts: dict[str, list[bytes]] = {"tools": [], "system": [], "messages": []}
    for block in prompt.blocks:
        parts[block.section].append(block.digest)
    settings = [body.get("thinking"), body.get("tool_choice"), (body.get("output_config") or {}).get("effort")]
    return _Fingerprint(body["model"], parts, prompt.tokens, settings)


def _reason(before: _Fingerprint, now: _Fingerprint, prompt: Prompt) -> dict[str, Any] | None:
    if before.model != now.model:
        return {"type": "model_changed", "cache_missed_input_tokens": before.prompt_tokens}
    for section in ("tools", "system"):
        if before.parts[section] != now.parts[section]:
            return {"type": f"{section}_changed", "cache_missed_input_tokens": before.prompt_tokens}
    old, new = before.parts["messages"], now.parts["messages"]
    if new[: len(old)] != old:
        same = next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
        at = len(now.parts["tools"]) + len(now.parts["system"]) + same
        kept = prompt.cumulative[at - 1] if at else 0
        return {"type": "messages_changed", "cache_missed_input_tokens": max(0, before.prompt_tokens - kept)}
    if before.settings != now.settings:
        return {"type": "unavailable"}
    return None
