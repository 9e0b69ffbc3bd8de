"""Turns of a conversation as typed values, and their two spellings: the transcript's and the Messages API's.

The record keeps what was said; what is sent is computed from it. Blocks that carry a signature are kept exactly as
they came, key by key, because the API checks them against the very bytes it signed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Param = dict[str, Any]
"""A JSON object on its way to the API. Built here and in `assemble`, nowhere else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    text: str
    kind: Literal["text"] = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """A call. `broken` holds the raw argument text when it is no JSON object (cut, or garbage): never run, answered
    with an error, and sent back with empty arguments, since the API takes nothing but an object there."""

    id: str
    name: str
    input: Mapping[str, object]
    broken: str = ""
    kind: Literal["tool_use"] = "tool_use"


@dataclass(frozen=True, slots=True, kw_only=True)
class Signed:
    """A block that must go back untouched or not at all: thinking, redacted thinking, compaction, server tools."""

    raw: Mapping[str, object]
    kind: Literal["signed"] = "signed"

    @property
    def type(self) -> str:
        return str(self.raw["type"])

    @property
    def is_thinking(self) -> bool:
        return self.type in THINKING


Block = Text | ToolUse | Signed
THINKING = ("thinking", "redacted_thinking")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What one call gave. `digest` is what stands for `text` once it is cleared: made by the tool when it ran."""

    tool_use_id: str
    tool: str
    text: str
    digest: str = ""
    is_error: bool = False
    evidence: str = ""
    """`sha256:` reference of the raw output."""
    keep: bool = False
    """Never cleared: the tool is excluded from clearing."""
    log: str = ""
    """One line for the list of calls that survives compaction."""
    shown: tuple[tuple[str, int, int], ...] = ()
    """(path, first, last) of the lines of code in `text`, so that a later process knows what may be cited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistantTurn:
    blocks: tuple[Block, ...]
    stop_reason: str = ""
    message_id: str = ""

    @property
    def calls(self) -> tuple[ToolUse, ...]:
        return tuple(b for b in self.blocks if isinstance(b, ToolUse))

    @property
    def text(self) -> str:
        return "\n".join(b.text for b in self.blocks if isinstance(b, Text) and b.text.strip())

    @property
    def thinks(self) -> bool:
        return any(isinstance(b, Signed) and b.is_thinking for b in self.blocks)


@dataclass(frozen=True, slots=True, kw_only=True)
class UserTurn:
    """Results first, then notices of the program, then the state block (whole, a delta, or empty)."""

    results: tuple[ToolResult, ...] = ()
    notices: tuple[str, ...] = ()
    state: str = ""
    state_whole: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One step: a reply and what the program answered. `user` is missing only for the last reply of a run."""

    number: int
    assistant: AssistantTurn
    user: UserTurn | None = None


# --- the transcript's spelling ----------------------------------------------------------------------------------


def block_to_json(block: Block) -> Param:
    if isinstance(block, Text):
        return {"type": "text", "text": block.text}
    if isinstance(block, ToolUse):
        body: Param = {"type": "tool_use", "id": block.id, "name": block.name, "input": dict(block.input)}
        return {**body, "broken": block.broken} if block.broken else body
    return dict(block.raw)


def block_from_json(body: Mapping[str, Any]) -> Block:
    """Raises KeyError or TypeError for what `block_to_json` cannot have written."""
    match body["type"]:
        case "text":
            return Text(text=str(body["text"]))
        case "tool_use":
            return ToolUse(
                id=str(body["id"]),
                name=str(body["name"]),
                input=dict(body["input"]),
                broken=str(body.get("broken", "")),
            )
        case _:
            return Signed(raw=dict(body))


def result_to_json(result: ToolResult) -> Param:
    body: Param = {"id": result.tool_use_id, "tool": result.tool, "text": result.text}
    for name in ("digest", "evidence", "log"):
        if value := getattr(result, name):
            body[name] = value
    if result.is_error:
        body["error"] = True
    if result.keep:
        body["keep"] = True
    if result.shown:
        body["shown"] = [list(lines) for lines in result.shown]
    return body


def result_from_json(body: Mapping[str, Any]) -> ToolResult:
    return ToolResult(
        tool_use_id=str(body["id"]),
        tool=str(body["tool"]),
        text=str(body["text"]),
        digest=str(body.get("digest", "")),
        is_error=bool(body.get("error", False)),
        evidence=str(body.get("evidence", "")),
        keep=bool(body.get("keep", False)),
        log=str(body.get("log", "")),
        shown=tuple((str(path), int(first), int(last)) for path, first, last in body.get("shown", ())),
    )


# --- the API's spelling -----------------------------------------------------------------------------------------

EMPTY_REPLY = "(empty reply)"
EMPTY_RESULT = "(no output)"


def text_param(text: str) -> Param:
    return {"type": "text", "text": text}


def assistant_params(turn: AssistantTurn, *, thinking: bool) -> list[Param]:
    """Content of an assistant message: never empty, no blank text, and never ending in a thinking block."""
    content: list[Param] = []
    for block in turn.blocks:
        match block:
            case Text():
                if block.text.strip():
                    content.append(text_param(block.text))
            case ToolUse():
                arguments = {} if block.broken else dict(block.input)
                content.append({"type": "tool_use", "id": block.id, "name": block.name, "input": arguments})
            case Signed():
                if thinking or not block.is_thinking:
                    content.append(dict(block.raw))
    if not content or content[-1]["type"] in THINKING:
        content.append(text_param(EMPTY_REPLY))
    return content


def result_param(result: ToolResult, *, cleared: bool) -> Param:
    text = result.digest if cleared and result.digest else result.text
    body: Param = {
        "type": "tool_result",
        "tool_use_id": result.tool_use_id,
        "content": text if text.strip() else EMPTY_RESULT,
    }
    if result.is_error:
        body["is_error"] = True
    return body


def user_params(turn: UserTurn, *, cleared: bool, state: bool) -> list[Param]:
    """Content of a user message: results first. `state` says whether its state block is sent (again)."""
    content = [result_param(result, cleared=cleared and not result.keep) for result in turn.results]
    content.extend(text_param(notice) for notice in turn.notices if notice.strip())
    if state and turn.state.strip():
        content.append(text_param(turn.state))
    if not content:
        content.append(text_param("Go on."))
    return content


# --- usage ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one reply. None: the provider did not report it, which is not zero."""

    uncached: int | None = None
    write_5m: int | None = None
    write_1h: int | None = None
    read: int | None = None
    output: int | None = None
    thinking: int | None = None
    extra_input: int = 0
    """Input of server-side compactions, which stands in no other figure."""
    extra_output: int = 0

    @property
    def input_total(self) -> int | None:
        """Everything the model was shown, or None when not even the uncached part is known."""
        if self.uncached is None:
            return None
        return self.uncached + (self.write_5m or 0) + (self.write_1h or 0) + (self.read or 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A complete answer of the endpoint, typed."""

    turn: AssistantTurn
    usage: Usage
    model: str = ""
    applied_edits: tuple[Mapping[str, object], ...] = ()
    cache_miss: str = ""
    """The API's own reason for a cache miss, where it offers one."""
    counted_input: int = 0
    """Our own estimate of the request, the bound for what was not reported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request, ready to send. `body` holds the arguments of `messages.create` except `stream`."""

    body: Param
    betas: tuple[str, ...] = ()
    labels: tuple[str, ...] = field(default=(), compare=False)

    @property
    def messages(self) -> Sequence[Param]:
        return self.body["messages"]  # type: ignore[no-any-return]
