"""What a model is to the fake: a function of the request, with a little memory per conversation if it needs one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from tests.fake_api.catalog import ModelSpec
from tests.fake_api.reply import Reply


@dataclass(slots=True, kw_only=True)
class Call:
    """One request as a model sees it: after context edits, and only what it may read."""

    number: int
    """Counts requests that reached a model, from 0."""
    body: Mapping[str, Any]
    spec: ModelSpec
    messages: Sequence[Mapping[str, Any]]
    """List content only; string content is turned into a text block."""
    conversation: str
    """The same for all turns of a conversation: the task id that it names, else a hash of its first user text."""
    turn: int
    """How many different requests of this conversation came before; the same request sent again keeps its turn."""
    thinking_active: bool
    memory: dict[str, Any] = field(default_factory=dict)
    """Kept per conversation and model; survives as long as the server."""

    @property
    def tools(self) -> Sequence[Mapping[str, Any]]:
        return list(self.body.get("tools") or ())

    @property
    def system(self) -> str:
        system = self.body.get("system") or ""
        return system if isinstance(system, str) else "\n\n".join(block["text"] for block in system)

    @property
    def output_schema(self) -> Mapping[str, Any] | None:
        """The JSON schema that the reply must keep to, if any."""
        form = (self.body.get("output_config") or {}).get("format")
        return form["schema"] if form else None

    @property
    def forced_tool(self) -> str | None:
        choice = self.body.get("tool_choice") or {}
        return choice.get("name") if choice.get("type") == "tool" else None

    def text(self) -> str:
        """Everything readable: system, then all messages, results included."""
        return "\n".join([self.system, *(block_text(b) for m in self.messages for b in m["content"])])

    def user_text(self) -> str:
        """Text blocks of user turns."""
        return "\n".join(
            b["text"] for m in self.messages if m["role"] != "assistant" for b in m["content"] if b["type"] == "text"
        )


class Model(Protocol):
    """A behaviour. `summarise` is asked for compaction; without it the fake writes a plain summary."""

    def reply(self, call: Call) -> Reply: ...


def block_text(block: Mapping[str, Any]) -> str:
    """The readable text of one block."""
    match block.get("type"):
        case "text":
            return str(block["text"])
        case "tool_result":
            content = block.get("content")
            if isinstance(content, str):
                return content
            return "\n".join(block_text(part) for part in content or ())
        case "compaction":
            return str(block.get("content") or "")
        case _:
            return ""
