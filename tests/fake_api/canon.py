"""When two blocks are the same to a signature: cache marks, null fields and defaults aside."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import orjson


def essence(block: Mapping[str, Any]) -> bytes:
    """Digest of what a block says."""
    return hashlib.sha256(_bytes(block)).digest()


def _bytes(block: Mapping[str, Any]) -> bytes:
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
