"""Compaction: the summary block, its signature, and the requests that may ask for one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.fake_api import signing
from tests.fake_api.errors import invalid
from tests.fake_api.models.base import Call, block_text
from tests.fake_api.prompt import Message
from tests.fake_api.reply import Block


def check_request(body: Mapping[str, Any], messages: Sequence[Message]) -> None:
    """What a request with `compaction` may not have. Source: the SDK's types and error classes."""
    config = body.get("compaction")
    if config is None:
        return
    if config.get("type") != "summarize":
        raise invalid("compaction.type: Input should be 'summarize'")
    for name in config.keys() - {"type", "instructions"}:
        raise invalid(f"compaction.{name}: Extra inputs are not permitted")
    if body.get("context_management") is not None:
        raise invalid("compaction: cannot be combined with `context_management`")
    if body.get("stop_sequences"):
        raise invalid("compaction: cannot be combined with `stop_sequences`")
    if (body.get("output_config") or {}).get("format"):
        raise invalid("compaction: cannot be combined with `output_config.format`")
    if (body.get("tool_choice") or {}).get("type") in {"any", "tool"}:
        raise invalid("compaction: cannot be combined with a `tool_choice` that forces tool use")
    if not any(m["role"] != "system" and m["content"] for m in messages):
        raise invalid("compaction: there is nothing to summarize", code="compaction_nothing_to_summarize")
    last = messages[-1]
    if last["role"] == "assistant" and any(block["type"] == "tool_use" for block in last["content"]):
        raise invalid(
            "compaction: the conversation ends on an `assistant` turn that is not finished",
            code="compaction_incomplete_turn",
        )


def check_signatures(messages: Sequence[Message]) -> None:
    """A compaction block that comes back is what was returned."""
    for i, message in enumerate(messages):
        for j, block in enumerate(message["content"]):
            if block.get("type") != "compaction" or block.get("content") is None:
                continue
            seal = block.get("signature") or block.get("encrypted_content")
            if signing.verify("compaction", block["content"], seal) is not None:
                continue
            genuine = isinstance(seal, str) and len(seal) > 40
            code = "compaction_content_mismatch" if genuine else "compaction_signature_invalid"
            raise invalid(f"messages.{i}.content.{j}: the `compaction` block is not as it was returned", code=code)


def block(summary: str, model: str, prefix: bytes, *, on_demand: bool) -> Block:
    """A signed block. Automatic compaction seals it in `encrypted_content`, on-demand compaction in `signature`."""
    seal = signing.sign("compaction", summary, model, prefix)
    if on_demand:
        return {
            "type": "compaction",
            "content": summary,
            "encrypted_content": None,
            "signature": seal,
            "tool_changes": [],
        }
    return {"type": "compaction", "content": summary, "encrypted_content": seal}


def plain_summary(call: Call, instructions: str | None) -> str:
    """What the fake writes when the model has no opinion: the start of every text, user turns first."""
    lines = [f"Summary of {len(call.messages)} messages."]
    if instructions:
        lines.append(f"Instructions followed: {instructions[:200]}")
    for message in call.messages:
        for part in message["content"]:
            if part["type"] in {"text", "compaction"}:
                lines.append(f"{message['role']}: {block_text(part)[:2000]}")
    return "\n".join(lines)
