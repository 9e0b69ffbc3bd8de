"""Signatures of thinking and compaction blocks: checked without any memory, so a restarted fake still knows its own.

A signature carries the digest of the conversation before the block and a MAC over that digest, the model and the text.
The conversation digest leaves out cache marks (they may move) and thinking blocks (they may be dropped).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from tests.fake_api.prompt import Message

_KEY = b"leadline fake messages api"
THINKING = frozenset({"thinking", "redacted_thinking"})


@dataclass(frozen=True, slots=True)
class Seal:
    """What a valid signature tells."""

    model: str
    prefix: bytes


def sign(kind: str, text: str, model: str, prefix: bytes) -> str:
    """A signature over `text` made by `model` after the conversation named by `prefix`."""
    payload = orjson.dumps([kind, model, prefix.hex()])
    return base64.b64encode(_mac(payload, text) + payload).decode()


def verify(kind: str, text: str, signature: object) -> Seal | None:
    """The seal of a genuine signature over this very text, else None."""
    if not isinstance(signature, str):
        return None
    try:
        raw = base64.b64decode(signature, validate=True)
        mac, payload = raw[:16], raw[16:]
        found, model, prefix = orjson.loads(payload)
    except ValueError:
        return None
    if found != kind or not hmac.compare_digest(mac, _mac(payload, text)):
        return None
    return Seal(model, bytes.fromhex(prefix))


def _mac(payload: bytes, text: str) -> bytes:
    return hmac.new(_KEY, payload + b"\0" + text.encode("utf-8", "surrogatepass"), hashlib.sha256).digest()[:16]


def start(body: Mapping[str, Any]) -> bytes:
    """Digest of tools and system."""
    tools = [plain(tool) for tool in body.get("tools") or ()]
    system = body.get("system") or ()
    if isinstance(system, str):
        system = [{"type": "text", "text": system}]
    parts = [tools, [plain(part) for part in system]]
    return hashlib.sha256(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)).digest()


def extend(prefix: bytes, role: str, block: Mapping[str, Any]) -> bytes:
    """The digest after one more block; thinking leaves it as it was."""
    if block.get("type") in THINKING:
        return prefix
    if block.get("type") == "compaction":
        seal = verify(
            "compaction", block.get("content") or "", block.get("signature") or block.get("encrypted_content")
        )
        if seal is not None:
            return seal.prefix
    return hashlib.sha256(prefix + role.encode() + _essence(block)).digest()


def walk(body: Mapping[str, Any], messages: Sequence[Message]) -> Iterator[tuple[int, int, Mapping[str, Any], bytes]]:
    """(message, block, value, digest of everything before the block) for each block of a conversation."""
    prefix = start(body)
    for i, message in enumerate(messages):
        for j, block in enumerate(message.get("content") or ()):
            yield i, j, block, prefix
            prefix = extend(prefix, message["role"], block)


def end(body: Mapping[str, Any], messages: Sequence[Message]) -> bytes:
    """Digest of the whole conversation."""
    prefix = start(body)
    for message in messages:
        for block in message.get("content") or ():
            prefix = extend(prefix, message["role"], block)
    return prefix


def _essence(block: Mapping[str, Any]) -> bytes:
    """The bytes that stand for a block; text and results in text, which are nearly all, without going through JSON."""
    kind, content = block.get("type"), block.get("content")
    if kind == "text":
        return b"text\0" + str(block["text"]).encode("utf-8", "surrogatepass")
    if isinstance(content, list) and len(content) == 1 and content[0].get("type") == "text":
        content = content[0]["text"]
    if kind == "tool_result" and isinstance(content, str):
        head = f"result\0{block['tool_use_id']}\0{bool(block.get('is_error'))}\0"
        return (head + content).encode("utf-8", "surrogatepass")
    return orjson.dumps(plain(block), option=orjson.OPT_SORT_KEYS)


def plain(block: Mapping[str, Any]) -> dict[str, Any]:
    """A block without its cache mark and without fields that are null or default, which clients add in passing."""
    plain = {k: v for k, v in block.items() if v is not None and k != "cache_control"}
    if plain.get("is_error") is False:
        del plain["is_error"]
    return plain
