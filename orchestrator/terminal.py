"""Text of the explored repository is hostile until proven otherwise: nothing of it reaches a terminal unescaped."""

from __future__ import annotations

import re

# C0 and C1 controls (tab and newline are handled apart), bidirectional controls, zero-width and other invisible
# format characters, line and paragraph separators, tags, lone surrogates. Source: Unicode TR36 and TR39.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)

_TAG_OR_LINK = re.compile(r"(?<!\\)<(?=[A-Za-z/!?])|(?<!\\)\](?=\()")


def printable(text: str) -> str:
    """The same text with every control or invisible character shown as an escape; newlines and tabs stay."""
    return _UNSAFE.sub(lambda m: _escape(m.group()), text)


def printable_json(text: str) -> str:
    """The same for the text of a JSON document, which stays the same: such characters stand in strings only."""
    return _UNSAFE.sub(lambda m: _escape_json(m.group()), text)


def inert(markdown: str) -> str:
    """The same page with HTML tags and links in what it quotes escaped, should it be shown as more than text."""
    return _TAG_OR_LINK.sub(r"\\\g<0>", markdown)


def printable_line(text: str) -> str:
    """Like `printable`, and on one line: newlines and tabs become escapes too."""
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")


def _escape_json(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[n : n + 4]}" for n in range(0, len(units), 4))


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
