"""A request as the model would see it: one flat list of blocks in cache order (tools, system, messages)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import orjson

from tests.fake_api import canon, tokens
from tests.fake_api.catalog import ModelSpec

Message = dict[str, Any]
"""Role and a list of content blocks; string content is already turned into one text block."""


@dataclass(frozen=True, slots=True)
class PromptBlock:
    """One block of the prompt. `digest` is over its bytes without the cache mark."""

    section: str
    role: str
    message: int
    index: int
    value: Mapping[str, Any]
    digest: bytes
    tokens: int
    ttl: str | None


@dataclass(slots=True)
class Prompt:
    """`digests[i]` names everything up to and including block i, and the model that reads it."""

    blocks: list[PromptBlock]
    digests: list[bytes]
    overhead_tokens: int
    scale: float
    cumulative: list[int] = field(default_factory=list)

    @property
    def tokens(self) -> int:
        return self.cumulative[-1] if self.cumulative else self.overhead_tokens


@dataclass(frozen=True, slots=True)
class KnownBlock:
    """A block that was seen before, without its cache mark."""

    value: Mapping[str, Any]
    digest: bytes
    essence: bytes
    tokens: int
    ttl: str | None


class PromptMemo:
    """Remembers messages by the hash of their bytes: a long history is checked and counted once, not at each turn."""

    def __init__(self) -> None:
        self._tokens: dict[bytes, int] = {}
        self._messages: dict[bytes, tuple[KnownBlock, ...]] = {}
        self._chains: dict[tuple[bytes, bytes, int], tuple[list[PromptBlock], list[bytes]]] = {}
        self.valid: set[tuple[bytes, bool, bool]] = set()
        """Messages that passed the checks of `turns.check_messages`, under which rules."""

    def block(self, value: Mapping[str, Any]) -> KnownBlock:
        mark = value.get("cache_control")
        plain = {k: v for k, v in value.items() if k != "cache_control"} if "cache_control" in value else value
        digest = hashlib.sha256(orjson.dumps(plain)).digest()
        known = self._tokens.get(digest)
        if known is None:
            known = self._tokens[digest] = tokens.block_tokens(plain)
        return KnownBlock(
            plain, digest, canon.essence(plain), known, mark.get("ttl", "5m") if isinstance(mark, Mapping) else None
        )

    def message(self, message: Message, digest: bytes | None) -> tuple[KnownBlock, ...]:
        """The blocks of a message; `digest` is that of its bytes, if known."""
        key = digest or message_digest(message)
        known = self._messages.get(key)
        if known is None:
            known = self._messages[key] = tuple(self.block(block) for block in message.get("content") or ())
        return known

    def chain(self, before: bytes, message: Message, key: bytes, number: int) -> tuple[list[PromptBlock], list[bytes]]:
        """Blocks and prefix digests of a message that stands as number `number` after the prefix `before`."""
        known = self._chains.get((before, key, number))
        if known is None:
            known = ([], [])
            self._chains[before, key, number] = known
            for n, block in enumerate(self.message(message, key)):
                before = _append(*known, block, ("messages", message["role"], number, n), before)
        return known


def message_digest(message: Mapping[str, Any]) -> bytes:
    return hashlib.sha256(orjson.dumps(message)).digest()


def normalise(messages: Sequence[Mapping[str, Any]]) -> list[Message]:
    """The same messages with list content; those that have it already are the very same objects.

    Consecutive turns are not merged here: indices stay those of the request.
    """
    return [
        {**m, "content": [{"type": "text", "text": m["content"]}]} if isinstance(m.get("content"), str) else m  # type: ignore[misc]
        for m in messages
    ]


def rendered(messages: Sequence[Message]) -> list[tuple[int, Message]]:
    """What is shown: without system messages that a later user turn has ended (`clear_at`), with original indices."""
    last_user = max((i for i, m in enumerate(messages) if m["role"] == "user"), default=-1)
    return [(i, m) for i, m in enumerate(messages) if m.get("clear_at") != "next_user_message" or i > last_user]


def build(
    body: Mapping[str, Any],
    messages: Sequence[Message],
    spec: ModelSpec,
    memo: PromptMemo,
    known_digests: Mapping[int, bytes] = MappingProxyType({}),
) -> Prompt:
    """Flatten a request. `messages` are those to be shown, after any context edit.

    `known_digests`: digests of messages by the identity of the object.
    """
    blocks: list[PromptBlock] = []
    digests: list[bytes] = []
    tools = list(body.get("tools") or ())
    system = body.get("system") or ()
    if isinstance(system, str):
        system = [{"type": "text", "text": system}]
    rolling = hashlib.sha256(spec.id.encode()).digest()

    for n, tool in enumerate(tools):
        rolling = _append(blocks, digests, memo.block(tool), ("tools", "", -1, n), rolling)
    for n, part in enumerate(system):
        rolling = _append(blocks, digests, memo.block(part), ("system", "", -1, n), rolling)
    rolling = hashlib.sha256(rolling + _message_settings(body)).digest()
    for number, message in rendered(messages):
        key = known_digests.get(id(message)) or message_digest(message)
        more, marks = memo.chain(rolling, message, key, number)
        blocks += more
        digests += marks
        rolling = marks[-1] if marks else rolling
    _automatic_breakpoint(body, blocks)
    prompt = Prompt(blocks, digests, tokens.TOOLS_OVERHEAD if tools else 0, spec.token_scale)
    total, previous = prompt.overhead_tokens, -1
    for block in blocks:
        if block.section == "messages" and block.message != previous:
            total, previous = total + tokens.MESSAGE_OVERHEAD, block.message
        total += block.tokens
        prompt.cumulative.append(round(total * spec.token_scale))
    return prompt


def _append(
    blocks: list[PromptBlock],
    digests: list[bytes],
    known: KnownBlock,
    place: tuple[str, str, int, int],
    before: bytes,
) -> bytes:
    """One more block; returns the digest of the prefix that ends with it."""
    section, role, message, index = place
    after = hashlib.sha256(before + role.encode() + known.digest).digest()
    blocks.append(PromptBlock(section, role, message, index, known.value, known.digest, known.tokens, known.ttl))
    digests.append(after)
    return after


def _message_settings(body: Mapping[str, Any]) -> bytes:
    """Settings that take part in the messages' cache key: a change of any misses the messages, not tools and system."""
    output = body.get("output_config") or {}
    return orjson.dumps([body.get("thinking"), body.get("tool_choice"), output.get("effort")])


def _automatic_breakpoint(body: Mapping[str, Any], blocks: list[PromptBlock]) -> None:
    """Top-level `cache_control`: the mark goes to the last block that can carry one."""
    mark = body.get("cache_control")
    if not isinstance(mark, Mapping):
        return
    for n in range(len(blocks) - 1, -1, -1):
        if blocks[n].value.get("type") not in {"thinking", "redacted_thinking"}:
            blocks[n] = replace(blocks[n], ttl=blocks[n].ttl or mark.get("ttl", "5m"))
            return
