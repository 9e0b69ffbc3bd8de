"""Safe Markdown: names and quotes of a repository put into an answer cannot leave their place.

A name may hold backticks, pipes, line breaks, HTML or Mermaid syntax; none of it may end a code span, a table cell or
a diagram label.
"""

from __future__ import annotations

import re
import unicodedata

_ROLE = re.compile(r"(?::[a-z:+-]+:)?`[~!]*\.?([A-Za-z_][^`<]*?)(?:\s*<[^`>]*>)?`(?:_{1,2})?")


def plain(text: str) -> str:
    """On one line, without control, format and bidirectional characters."""
    folded = " ".join(text.split())
    return "".join(c for c in folded if unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp"))


def visible(text: str) -> str:
    """A path on one line: what cannot be seen in it is written as an escape, so that no other path can be meant."""
    return "".join(
        c if c == " " or c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in text
    )


def code(text: str) -> str:
    """A code span that holds exactly this text, backticks included; what cannot be seen is written as an escape."""
    text = visible(re.sub(r"[ \t]+", " ", text.strip()))
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if text.startswith("`") or text.endswith("`") or not text else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def prose(text: str) -> str:
    """Free text of the repository as running text: HTML and Markdown that could act is made inert."""
    text = _ROLE.sub(r"`\1`", plain(text).replace("``", "`"))
    if text.count("`") % 2:
        text = text.replace("`", "")
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(p if p.startswith("`") else _inert(p) for p in parts)


def cell(text: str) -> str:
    """What may stand in a table cell (already Markdown): pipes escaped, no line breaks."""
    return " ".join(text.split()).replace("|", "\\|")


def label(text: str, width: int = 48) -> str:
    """A Mermaid label, to be put between double quotes: entities for everything with a meaning there."""
    text = plain(text)
    if len(text) > width:
        text = text[: width - 1] + "…"
    safe = []
    for character in text:
        if character.isalnum() or character in " _.,:-/+*=!?'" or (ord(character) > 127 and character.isprintable()):
            safe.append(character)
        else:
            safe.append(f"#{ord(character)};")
    joined = "".join(safe)
    return joined if joined.strip() else "#32;"


def _inert(text: str) -> str:
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    text = re.sub(r"([\\\[\]*|])", r"\\\1", text)
    return re.sub(r"(?<!\w)_|_(?!\w)", r"\\_", text)
