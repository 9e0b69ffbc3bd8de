"""Text of the explored repository is hostile until proven otherwise: nothing of it reaches a terminal unescaped."""

from __future__ import annotations

import re

# C0 and C1 controls (tab and newline are handled apart), bidirectional controls, zero-width and other invisible
# format characters, line and paragraph separators, tags, lone surrogates. Source: Unicode TR36 and TR39.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


def printable(text: str) -> str:
    """The same text with every control or invisible character shown as an escape; newlines and tabs stay."""
    return _UNSAFE.sub(lambda m: _escape(m.group()), text)


def printable_line(text: str) -> str:
    """Like `printable`, and on one line: newlines and tabs become escapes too."""
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
