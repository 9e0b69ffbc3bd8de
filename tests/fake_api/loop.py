"""The plainest possible agent loop, for the tests of the fake's models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.fake_api import samples

Tool = Callable[[str, Mapping[str, Any]], str]

FILES = {"src/app.py": 120, "src/util/text.py": 30, "docs/guide.md": 70}


def library(name: str, arguments: Mapping[str, Any]) -> str:
    """Tools over three files whose line n says so."""
    if not all(isinstance(value, str | int) or name == "record_finding" for value in arguments.values()):
        return "error: bad arguments"
    if name == "find":
        return "\n".join(f"{path}:1 something about {arguments.get('query')}" for path in FILES)
    if name == "read":
        path, start = str(arguments.get("path")), arguments.get("start", 1)
        last = min(FILES.get(path, 0), arguments.get("end", 10_000))
        return "\n".join(f"{n:6}\tline {n} of {path}" for n in range(start, last + 1)) or "error: no such lines"
    return "recorded f0123456789abcdef"


def run(
    client: Any, tool: Tool = library, *, model: str = samples.PLAIN, task: str, most: int = 40, **settings: Any
) -> list[dict[str, Any]]:
    """Talk to the model until it ends its turn, and return the whole conversation."""
    messages: list[dict[str, Any]] = [samples.user(task)]
    for _ in range(most):
        message = client.messages.create(
            model=model, max_tokens=4000, messages=messages, tools=samples.TOOLS, **settings
        )
        messages.append(samples.said(message))
        if message.stop_reason != "tool_use":
            return messages
        calls = [b for b in message.content if b.type == "tool_use"]
        messages.append(samples.user(*(samples.result(b.id, tool(b.name, b.input)) for b in calls)))
    return messages


def calls(messages: list[dict[str, Any]], name: str = "") -> list[dict[str, Any]]:
    """All calls of a tool, as blocks."""
    blocks = [b for m in messages if m["role"] == "assistant" for b in m["content"] if b["type"] == "tool_use"]
    return [b for b in blocks if not name or b["name"] == name]
