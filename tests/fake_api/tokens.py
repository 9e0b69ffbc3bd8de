"""A deterministic stand-in for the tokenizer: counts by kind of byte, so prose and code differ as they do in reality.

The real tokenizer is not public. Per byte: letters, digits and `_` 1/4.4 token, white space 1/8, punctuation 1/1.7,
other bytes (UTF-8 beyond ASCII) 1/2.2; times the model's `token_scale`. A client that counts locally is therefore
wrong by a factor that depends on the content, as it is with the real API, and must calibrate by the usage it is told.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import orjson

MESSAGE_OVERHEAD = 4
"""Tokens for the frame of one turn (assumed)."""
BLOCK_OVERHEAD = 3
"""Tokens for the frame of one content block (assumed)."""
TOOLS_OVERHEAD = 300
"""Tokens of the hidden prompt that explains tool use; the documentation gives 290 to 500 by model."""

_WORD = bytes(b for b in range(128) if chr(b).isalnum() or chr(b) == "_")
_SPACE = b" \t\r\n\f\v"
_HIGH = bytes(range(128, 256))


def count_bytes(data: bytes) -> int:
    """Tokens of raw text; 0 for nothing."""
    if not data:
        return 0
    rest = data.translate(None, _WORD)
    words = len(data) - len(rest)
    rest2 = rest.translate(None, _SPACE)
    spaces = len(rest) - len(rest2)
    punctuation = len(rest2.translate(None, _HIGH))
    high = len(rest2) - punctuation
    return max(1, math.ceil(words / 4.4 + spaces / 8 + punctuation / 1.7 + high / 2.2))


def count_text(text: str) -> int:
    """Tokens of a text."""
    return count_bytes(text.encode("utf-8", "surrogatepass"))


def block_tokens(block: Mapping[str, Any]) -> int:
    """Tokens of one content block, frame included, at scale 1."""
    return BLOCK_OVERHEAD + count_bytes(block_bytes(block))


def block_bytes(block: Mapping[str, Any]) -> bytes:
    """What of a block the model would read."""
    match block.get("type"):
        case "text":
            return _utf8(block.get("text"))
        case "thinking":
            return _utf8(block.get("thinking"))
        case "redacted_thinking":
            return _utf8(block.get("data"))[:400]
        case "compaction":
            return _utf8(block.get("content"))
        case "tool_use":
            return _utf8(block.get("name")) + b" " + _json(block.get("input"))
        case "tool_result":
            content = block.get("content")
            if isinstance(content, str):
                return _utf8(content)
            return b"\n".join(block_bytes(part) for part in content or () if isinstance(part, dict))
        case _:
            return _json(dict(block))


def _utf8(value: object) -> bytes:
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else b""


def _json(value: object) -> bytes:
    return orjson.dumps(value) if value else b""
