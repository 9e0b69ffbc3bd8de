"""Thinking that comes back: genuine, unaltered, and on the newest models only after the very same conversation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.fake_api import fields, signing
from tests.fake_api.catalog import ModelSpec
from tests.fake_api.errors import invalid
from tests.fake_api.prompt import Message


@dataclass(slots=True)
class ThinkingCheck:
    """Messages as the model will see them, and what the response reports about dropped blocks."""

    messages: list[Message]
    transformations: list[dict[str, str]] = field(default_factory=list)


def check(
    body: Mapping[str, Any],
    messages: Sequence[Message],
    spec: ModelSpec,
    prefixes: Mapping[tuple[int, int], bytes],
) -> ThinkingCheck:
    """Refuse altered blocks; drop or refuse blocks that another model or another conversation made.

    `prefixes`: where thinking blocks stand (message, block), and the digest of the conversation before each.
    """
    if not prefixes:
        _check_manual(body, messages)
        return ThinkingCheck(list(messages))
    dropped: dict[tuple[int, int], str] = {}
    drop_allowed = _drops(body)
    for (i, j), prefix in prefixes.items():
        block = messages[i]["content"][j]
        where = f"messages.{i}.content.{j}"
        text, signature = _text_and_signature(block)
        seal = signing.verify(block["type"], text, signature)
        if seal is None:
            name = "signature" if block["type"] == "thinking" else "data"
            raise invalid(f"{where}: Invalid `{name}` in `{block['type']}` block")
        if not spec.binds_thinking:
            continue
        if seal.model != spec.id:
            dropped[i, j] = "model_binding_mismatch"
        elif (i, j) in dropped:
            continue
        elif seal.prefix != prefix:
            if not drop_allowed:
                raise invalid(
                    f"{where}: this `{block['type']}` block was created in a different conversation, or the messages, "
                    "system prompt or tools before it have changed since. Send the conversation unchanged, remove the "
                    "block, or set `thinking.block_binding.prefix_mismatch_behavior` to 'drop_block'."
                )
            for later in range(j, len(messages[i]["content"])):
                if messages[i]["content"][later].get("type") not in signing.THINKING:
                    break
                dropped[i, later] = "prefix_binding_mismatch"
    kept = _without(messages, dropped)
    _check_manual(body, kept)
    report = [
        {"type": "thinking_dropped", "path": f"messages.{i}.content.{j}", "reason": reason}
        for (i, j), reason in sorted(dropped.items())
    ]
    return ThinkingCheck(kept, report)


def _drops(body: Mapping[str, Any]) -> bool:
    binding = (body.get("thinking") or {}).get("block_binding") or {}
    return bool(binding.get("prefix_mismatch_behavior") == "drop_block")


def _text_and_signature(block: Mapping[str, Any]) -> tuple[str, object]:
    if block["type"] == "thinking":
        return block["thinking"], block["signature"]
    return "", block["data"]


def _without(messages: Sequence[Message], dropped: Mapping[tuple[int, int], str]) -> list[Message]:
    touched = {i for i, _ in dropped}
    return [
        {**m, "content": [b for j, b in enumerate(m["content"]) if (i, j) not in dropped]} if i in touched else m
        for i, m in enumerate(messages)
    ]


def _check_manual(body: Mapping[str, Any], messages: Sequence[Message]) -> None:
    """With `thinking.type: enabled` the assistant turn of a running tool loop must start with its thinking."""
    if (body.get("thinking") or {}).get("type") != "enabled":
        return
    last = next((i for i in range(len(messages) - 1, -1, -1) if messages[i]["role"] == "assistant"), None)
    if last is None:
        return
    content = messages[last]["content"]
    kinds = [block["type"] for block in content]
    if "tool_use" in kinds and kinds[0] not in signing.THINKING:
        raise invalid(
            f"messages.{last}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{kinds[0]}`. When "
            "`thinking` is enabled, a final `assistant` message must start with a thinking block (preceding the "
            "lastmost set of `tool_use` and `tool_result` blocks). To avoid this requirement, disable `thinking`."
        )


def is_active(body: Mapping[str, Any], spec: ModelSpec) -> bool:
    """Whether a reply to this request starts with thinking."""
    config = body.get("thinking")
    if config is None:
        return spec.thinks_by_default
    return config.get("type") in {"enabled", "adaptive"}


def shown(body: Mapping[str, Any]) -> bool:
    """False when `display` is `omitted`: the block comes with its signature and no text."""
    return (body.get("thinking") or {}).get("display") != "omitted"


def reports(betas: frozenset[str], spec: ModelSpec) -> bool:
    """Whether the response carries `input_transformations`."""
    return fields.BINDING_BETA in betas and bool(spec.thinking_types - {"disabled"})
