"""Documentation as sections: headings of Markdown, reStructuredText, AsciiDoc and plain text, with their lines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class DocSection:
    """One heading and what belongs to it: up to the next heading of any level. Lines from 1, inclusive."""

    path: str
    title: str
    level: int
    start: int
    end: int


_FENCE = re.compile(r"\s{0,3}(```+|~~~+)")
_ATX = re.compile(r"\s{0,3}(#{1,6})\s+(.*?)\s*#*\s*$")
_ASCIIDOC = re.compile(r"(={1,6})\s+(\S.*)$")
_RULE = re.compile(r"""([!-/:-@[-`{-~])\1{2,}\s*$""")


def sections(path: str, language: str, lines: Sequence[str]) -> tuple[DocSection, ...]:
    """In line order. Text before the first heading belongs to a section without title, level 0."""
    if not lines:
        return ()
    found = {"markdown": _markdown, "asciidoc": _asciidoc}.get(language, _underlined)(lines)
    if not found or found[0][0] > 1:
        found.insert(0, (1, 0, ""))
    ends = [start - 1 for start, _, _ in found[1:]] + [len(lines)]
    return tuple(
        DocSection(path=path, title=title, level=level, start=start, end=max(start, end))
        for (start, level, title), end in zip(found, ends, strict=True)
    )


def _markdown(lines: Sequence[str]) -> list[tuple[int, int, str]]:
    found: list[tuple[int, int, str]] = []
    fence = ""
    for number, line in enumerate(lines, 1):
        mark = _FENCE.match(line)
        if mark:
            if not fence:
                fence = mark[1][:3]
            elif mark[1].startswith(fence):
                fence = ""
        elif not fence:
            atx = _ATX.match(line)
            if atx:
                found.append((number, len(atx[1]), atx[2]))
            elif number > 1 and re.fullmatch(r"\s{0,3}(=+|--+)\s*", line) and _is_title(lines[number - 2]):
                found.append((number - 1, 1 if "=" in line else 2, lines[number - 2].strip()))
    return found


def _is_title(line: str) -> bool:
    text = line.strip()
    return bool(text) and not text.startswith((">", "-", "*", "+", "|", "#")) and len(text) < 120


def _asciidoc(lines: Sequence[str]) -> list[tuple[int, int, str]]:
    found = []
    for number, line in enumerate(lines, 1):
        match = _ASCIIDOC.match(line)
        if match:
            found.append((number, len(match[1]), match[2].strip()))
    return found


def _underlined(lines: Sequence[str]) -> list[tuple[int, int, str]]:
    """A title over a rule of punctuation at least as long; levels count in order of first use, as docutils does."""
    found: list[tuple[int, int, str]] = []
    styles: list[str] = []
    for place in range(1, len(lines)):
        rule = _RULE.match(lines[place])
        title = lines[place - 1].rstrip()
        if rule is None or not title or (title[0].isspace() and not (place > 1 and _RULE.match(lines[place - 2]))):
            continue
        if _RULE.match(title) or len(lines[place].rstrip()) < len(title.strip()):
            continue
        over = place > 1 and lines[place - 2].rstrip() == lines[place].rstrip()
        style = rule[1] + ("^" if over else "")
        if style not in styles:
            styles.append(style)
        found.append((place - 1 if over else place, styles.index(style) + 1, title.strip()))
    return found
