"""What the API refuses about a conversation: roles, tool calls without results, results without calls, prefill."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.fake_api import fields
from tests.fake_api.catalog import ModelSpec
from tests.fake_api.errors import invalid
from tests.fake_api.prompt import Message, message_digest
from tests.fake_api.validation import MAX_MESSAGES, check_block

ROLES = ("user", "assistant", "system")


@dataclass(slots=True)
class Turn:
    """Consecutive messages of one role, which the API reads as one turn."""

    role: str
    first: int
    blocks: list[tuple[str, Mapping[str, Any]]]
    """Where a block stands in the request (`messages.{i}.content.{j}`) and the block."""


def check_messages(
    raw: Any, spec: ModelSpec, betas: frozenset[str], valid: set[tuple[bytes, bool, bool]]
) -> dict[int, bytes]:
    """Each message on its own: role, fields, blocks. `valid` are messages that passed before; it grows.

    Returns the digest of each message by the identity of the object.
    """
    if not isinstance(raw, list):
        raise invalid("messages: Input should be a valid list")
    if not raw:
        raise invalid("messages: at least one message is required")
    if len(raw) > MAX_MESSAGES:
        raise invalid(f"messages: List should have at most {MAX_MESSAGES} items")
    rules = (spec.accepts_system_messages, fields.CLEAR_AT_BETA in betas)
    digests: dict[int, bytes] = {}
    for n, message in enumerate(raw):
        digests[id(message)] = digest = message_digest(message)
        if (digest, *rules) not in valid:
            _check_message(message, f"messages.{n}", spec, betas)
            valid.add((digest, *rules))
    return digests


def _check_message(message: Any, at: str, spec: ModelSpec, betas: frozenset[str]) -> None:
    if not isinstance(message, Mapping):
        raise invalid(f"{at}: Input should be a valid dictionary")
    role = message.get("role")
    if role not in ROLES:
        raise invalid(f"{at}.role: Input should be 'user' or 'assistant'")
    if role == "system" and not spec.accepts_system_messages:
        raise invalid(f"{at}.role: role 'system' is not supported on this model")
    allowed = {"role", "content"}
    if role == "system" and fields.CLEAR_AT_BETA in betas:
        allowed.add("clear_at")
    for name in message:
        if name not in allowed:
            raise invalid(f"{at}.{name}: Extra inputs are not permitted")
    content = message.get("content")
    if content is None:
        raise invalid(f"{at}.content: Field required")
    if isinstance(content, str):
        if not content.strip() and role != "assistant":
            raise invalid(f"{at}: {role} messages must have non-empty content")
        if not content.strip():
            raise invalid("messages: text content blocks must be non-empty")
        return
    if not isinstance(content, list):
        raise invalid(f"{at}.content: Input should be a valid list")
    known = {
        "user": fields.USER_BLOCKS,
        "assistant": fields.ASSISTANT_BLOCKS,
        "system": frozenset({"text", "compaction"}),
    }
    for n, block in enumerate(content):
        check_block(block, f"{at}.content.{n}")
        if block["type"] not in known[role]:
            raise invalid(f"{at}.content.{n}: `{block['type']}` blocks are not permitted in `{role}` messages")


def check_conversation(messages: Sequence[Message], spec: ModelSpec, *, may_end_with_assistant: bool) -> None:
    """The order of turns and the pairing of calls and results. Source: public documentation and observed texts.

    `may_end_with_assistant`: the last message is a paused reply sent back, or the request asks for compaction.
    """
    _check_compaction(messages)
    first = messages[0]
    starts_compacted = bool(first["content"]) and first["content"][0].get("type") == "compaction"
    if first["role"] != "user" and not starts_compacted:
        raise invalid('messages: first message must use the "user" role')
    for n, message in enumerate(messages):
        if not message["content"] and not (message["role"] == "assistant" and n == len(messages) - 1):
            raise invalid(
                f"messages.{n}: all messages must have non-empty content except for the optional final assistant "
                "message"
            )
        if message["role"] == "system" and messages[n - 1]["role"] == "assistant":
            raise invalid(f"messages.{n}: a `system` message must follow a `user` message")
    turns = merge(messages)
    check_pairs(turns)
    if turns and turns[-1].role == "assistant" and not may_end_with_assistant:
        _check_prefill(turns[-1], spec)


def merge(messages: Sequence[Message]) -> list[Turn]:
    """Turns as the API reads them: same-role messages together, system messages apart."""
    turns: list[Turn] = []
    for i, message in enumerate(messages):
        if message["role"] == "system":
            continue
        placed = [(f"messages.{i}.content.{j}", block) for j, block in enumerate(message["content"])]
        if turns and turns[-1].role == message["role"]:
            turns[-1].blocks += placed
        else:
            turns.append(Turn(message["role"], i, placed))
    return turns


def check_pairs(turns: Sequence[Turn]) -> None:
    """Every tool_use is answered once, in the very next user turn, before anything else there; ids are unique."""
    due: list[str] = []
    asked_at = -1
    seen: set[str] = set()
    for turn in [*turns, Turn("user", -1, [])]:
        if turn.role == "assistant":
            asked_at = turn.first
            due = [block["id"] for _, block in turn.blocks if block["type"] == "tool_use"]
            for call in due:
                if call in seen:
                    raise invalid("messages: `tool_use` ids must be unique")
                seen.add(call)
            continue
        pending = turn.first == -1 and turns and turns[-1].role == "assistant"
        if turn.first == -1 and not pending:
            break
        if pending and not due:
            break
        _check_results(turn, due, asked_at)
        due = []


def _check_results(turn: Turn, due: Sequence[str], asked_at: int) -> None:
    leading: list[str] = []
    ended = False
    for at, block in turn.blocks:
        if block["type"] != "tool_result":
            ended = True
            continue
        call = block["tool_use_id"]
        if call not in due:
            raise invalid(
                f"{at}: unexpected `tool_use_id` found in `tool_result` blocks: {call}. Each `tool_result` block must "
                "have a corresponding `tool_use` block in the previous message."
            )
        if call in leading:
            raise invalid(
                f"{at}: each tool_use must have a single result. Found multiple `tool_result` blocks with id: {call}"
            )
        if not ended:
            leading.append(call)
    missing = [call for call in due if call not in leading]
    if missing:
        raise invalid(
            f"messages.{asked_at}: `tool_use` ids were found without `tool_result` blocks immediately after: "
            f"{', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result` block in the "
            "next message."
        )


def _check_prefill(turn: Turn, spec: ModelSpec) -> None:
    if not spec.accepts_prefill:
        raise invalid(
            "This model does not support assistant message prefill. The conversation must end with a user message."
        )
    last = turn.blocks[-1][1] if turn.blocks else {}
    if last.get("type") == "text" and last["text"] != last["text"].rstrip():
        raise invalid("messages: final assistant content cannot end with trailing whitespace")


def _check_compaction(messages: Sequence[Message]) -> None:
    """Blocks of on-demand compaction (they carry a signature) come first, one of them at most."""
    found = [
        (i, j, message["role"])
        for i, message in enumerate(messages)
        for j, block in enumerate(message["content"])
        if block.get("type") == "compaction" and block.get("content") is not None and block.get("signature") is not None
    ]
    if len(found) > 1:
        raise invalid(
            "messages: only one `compaction` block with content is permitted", code="compaction_block_ambiguous"
        )
    for i, j, role in found:
        if (i, j) != (0, 0) or role == "system":
            raise invalid(
                f"messages.{i}.content.{j}: a `compaction` block must be the first block of the conversation",
                code="compaction_block_misplaced",
            )
