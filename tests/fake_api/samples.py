"""Small requests that the tests start from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

READ: dict[str, Any] = {
    "name": "read",
    "description": "Read lines of a file.",
    "input_schema": {
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "start": {"type": "integer"},
            "end": {"type": "integer"},
        },
        "required": ["path"],
        "additionalProperties": False,
    },
}
FIND: dict[str, Any] = {
    "name": "find",
    "description": "Find the files that matter for a question.",
    "input_schema": {
        "type": "object",
        "properties": {"query": {"type": "string"}},
        "required": ["query"],
        "additionalProperties": False,
    },
}
RECORD: dict[str, Any] = {
    "name": "record_finding",
    "description": "Record one finding.",
    "input_schema": {
        "type": "object",
        "properties": {
            "claim": {"type": "string"},
            "kind": {"type": "string", "enum": ["structure", "flow", "behaviour"]},
            "citations": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "path": {"type": "string"},
                        "start": {"type": "integer"},
                        "end": {"type": "integer"},
                    },
                    "required": ["path", "start", "end"],
                    "additionalProperties": False,
                },
            },
        },
        "required": ["claim", "kind", "citations"],
        "additionalProperties": False,
    },
}
TOOLS = [FIND, READ, RECORD]
PLAIN = "claude-opus-5"
"""A model without bound thinking, which does not think unless asked."""
BOUND = "claude-opus-5-5"
"""A model that binds thinking to what came before it."""
MANUAL = "claude-haiku-4-5"
"""A model with `thinking.type: enabled`, prefill and sampling parameters."""


def user(*blocks: str | dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": b} if isinstance(b, str) else b for b in blocks]}


def assistant(*blocks: str | dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": [{"type": "text", "text": b} if isinstance(b, str) else b for b in blocks]}


def use(call: str, name: str = "read", **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call, "name": name, "input": arguments or {"path": "a.py"}}


def result(call: str, content: str = "1: x") -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call, "content": content}


def said(message: Any) -> dict[str, Any]:
    """A reply of the SDK as it goes back."""
    return {"role": "assistant", "content": [block.to_dict() for block in message.content]}


def answers(message: Any, text: str = "1: x") -> dict[str, Any]:
    """Results for all calls of a reply."""
    return user(*(result(b.id, text) for b in message.content if b.type == "tool_use"))


def marked(block: dict[str, Any], ttl: str | None = None) -> dict[str, Any]:
    return {**block, "cache_control": {"type": "ephemeral", **({"ttl": ttl} if ttl else {})}}


def words(count: int, seed: str = "w") -> str:
    """About `count` tokens of text that repeats nothing else."""
    return " ".join(f"{seed}{n}" for n in range(count))


def conversation(turns: int, size: int = 200) -> list[dict[str, Any]]:
    """A history of tool calls, ending in a user turn."""
    messages: list[dict[str, Any]] = [user("Question: where is it?")]
    for n in range(turns):
        messages += [assistant(use(f"toolu_{n}")), user(result(f"toolu_{n}", words(size, f"r{n}x")))]
    return messages


def roles(messages: Sequence[dict[str, Any]]) -> str:
    return "".join(m["role"][0] for m in messages)
