"""Which stretches of a source text are comments and which are string literals, without parsing it.

A scanner of one regular expression for a family of languages: it may be wrong inside exotic literals, which costs a
word counted in the wrong field, and it runs at the speed of the regular-expression engine on any input, broken code
included. A Python docstring counts as a comment.
"""

from __future__ import annotations

import re

CODE, COMMENT, STRING = 0, 1, 2

_DOUBLE = r'"(?:[^"\\\n]++|\\.)*+"'
_SINGLE = r"'(?:[^'\\\n]++|\\.)*+'"
_CHARACTER = r"'(?:\\.|[^'\\\n])'"
_SLASHES = r"//[^\n]*+|/\*(?:[^*]++|\*(?!/))*+(?:\*/)?"

_PYTHON = re.compile(
    r'(?P<c>"""(?:[^"\\]++|\\.|"(?!""))*+(?:""")?'
    rf"|'''(?:[^'\\]++|\\.|'(?!''))*+(?:''')?|\#[^\n]*+)|{_DOUBLE}|{_SINGLE}",
    re.DOTALL,
)
_C = re.compile(rf"(?P<c>{_SLASHES})|{_DOUBLE}|{_CHARACTER}|`[^`]*+`")
_SCRIPT = re.compile(rf"(?P<c>{_SLASHES})|{_DOUBLE}|{_SINGLE}|`(?:[^`\\]++|\\.)*+`", re.DOTALL)
_PHP = re.compile(rf"(?P<c>{_SLASHES}|\#(?!\[)[^\n]*+)|{_DOUBLE}|{_SINGLE}")
_HASH = re.compile(rf"(?P<c>\#(?!\{{)[^\n]*+)|{_DOUBLE}|{_SINGLE}")

_SCANNERS = {
    "python": _PYTHON,
    "javascript": _SCRIPT,
    "typescript": _SCRIPT,
    "tsx": _SCRIPT,
    "php": _PHP,
    "ruby": _HASH,
    "bash": _HASH,
    "yaml": _HASH,
    "toml": _HASH,
    "make": _HASH,
    "makefile": _HASH,
    "dockerfile": _HASH,
    "r": _HASH,
    "perl": _HASH,
    "elixir": _HASH,
}  # fmt: skip
_PROSE = frozenset({"markdown", "rst", "asciidoc", "text", None})


def spans(text: str, language: str | None) -> list[tuple[int, int, int]]:
    """(start, end, what it is), covering the text in order; `what` is CODE, COMMENT or STRING."""
    if language in _PROSE:
        return [(0, len(text), COMMENT)]
    found: list[tuple[int, int, int]] = []
    at = 0
    for match in _SCANNERS.get(language or "", _C).finditer(text):
        start, end = match.span()
        if start > at:
            found.append((at, start, CODE))
        found.append((start, end, COMMENT if match.lastgroup else STRING))
        at = end
    if at < len(text):
        found.append((at, len(text), CODE))
    return found
