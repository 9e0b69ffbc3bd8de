"""Signatures of thinking and compaction blocks: checked without any memory, so a restarted fake still knows its own.

A signature carries the digest of the conversation before the block and a MAC over that digest, the model and the text.
The conversation digest leaves out cache marks (they may move) and thinking blocks (they may be dropped).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from tests.fake_api.canon import plain
from tests.fake_api.prompt import KnownBlock, Message

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


def extend(prefix: bytes, role: str, block: Mapping[str, Any], said: bytes) -> bytes:
    """The digest after one more block, whose essence is `said`; thinking leaves it as it was."""
    kind = block.get("type")
    if kind in THINKING:
        return prefix
    if kind == "compaction":
        text, sealed = block.get("content") or "", block.get("signature") or block.get("encrypted_content")
        seal = verify("compaction", text, sealed)
        if seal is not None:
            return seal.prefix
    return hashlib.sha256(prefix + role.encode() + said).digest()


def prefixes(
    body: Mapping[str, Any], messages: Sequence[Message], known: Sequence[Sequence[KnownBlock]]
) -> tuple[dict[tuple[int, int], bytes], bytes]:
    """The digest of everything before each thinking block (`messages[i].content[j]`), and that of the whole."""
    found: dict[tuple[int, int], bytes] = {}
    prefix = start(body)
    for i, (message, blocks) in enumerate(zip(messages, known, strict=True)):
        for j, block in enumerate(blocks):
            if block.value.get("type") in THINKING:
                found[i, j] = prefix
            else:
                prefix = extend(prefix, message["role"], block.value, block.essence)
    return found, prefix
