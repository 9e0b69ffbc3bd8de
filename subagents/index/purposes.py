"""What a folder or file is for, in the words of its author: the first sentence of its docstring, comment or README."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from subagents.codebase.textfile import language_of
from subagents.codebase.types import CannotRead, Snapshot
from subagents.index.extract import first_sentence
from subagents.index.languages import GRAMMARS


@dataclass(frozen=True, slots=True, kw_only=True)
class Purpose:
    """`text` is quoted from `path` at `line`; empty when nobody said."""

    text: str
    path: str
    line: int


_DOC_FILES: Final = (
    "README.md", "README.rst", "README.txt", "README", "README.adoc", "readme.md", "__init__.py", "doc.go",
    "package-info.java", "mod.rs", "lib.rs", "main.rs", "index.ts", "index.js", "index.tsx",
)  # fmt: skip
_MARKUP: Final = re.compile(r"^\s*(?:[#=*_~`>|<!\[-]|\.\. |:\w+:|\|)")
_LICENSE: Final = re.compile(
    r"copyright|licen[sc]e|spdx|all rights reserved|redistribut|warrant|permission is hereby", re.IGNORECASE
)


def purpose_of_folder(snapshot: Snapshot, folder: str, files: Sequence[str]) -> Purpose:
    """`files` are the paths right in the folder. README first, then the file that speaks for the package."""
    by_name = {path.rpartition("/")[2]: path for path in files}
    last = folder.rpartition("/")[2]
    candidates = [by_name[name] for name in (*_DOC_FILES, f"{last}.go", f"{last}.py", f"{last}.rs") if name in by_name]
    candidates += [path for path in files if path.endswith(".go") and not path.endswith("_test.go")][:3]
    for path in dict.fromkeys(candidates):
        found = purpose_of_file(snapshot, path)
        if found.text:
            return found
    code = [path for path in files if language_of(path) in GRAMMARS]
    return Purpose(text="", path=next(iter([*candidates, *code, *files]), folder), line=1)


def purpose_of_file(snapshot: Snapshot, path: str) -> Purpose:
    try:
        lines = snapshot.text(path).lines[:120]
    except (CannotRead, KeyError):
        return Purpose(text="", path=path, line=1)
    if path.rpartition("/")[2].lower().startswith("readme"):
        line, text = _prose(lines)
    elif path.endswith((".py", ".pyi")):
        line, text = _docstring(lines)
    else:
        line, text = _comment(lines, path)
    return Purpose(text=text, path=path, line=line)


def _prose(lines: Sequence[str]) -> tuple[int, str]:
    """The first paragraph of a README that is a sentence, not a title, badge or rule."""
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if len(text) < 20 or _MARKUP.match(line) or text.count("](") > 1 or " " not in text:
            continue
        below = lines[number].strip() if number < len(lines) else ""
        if below and set(below) <= set("=-~^#*"):
            continue
        paragraph = []
        for following in lines[number - 1 :]:
            if not following.strip():
                break
            paragraph.append(following.strip())
        return number, first_sentence(" ".join(paragraph))
    return 1, ""


def _docstring(lines: Sequence[str]) -> tuple[int, str]:
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        match = re.match(r'[rRuU]?("""|\'\'\'|"|\')(.*)', text)
        if match is None:
            return 1, ""
        mark, rest = match.groups()
        parts = [rest.partition(mark)[0]]
        where = number
        if mark not in rest:
            for following in lines[number:]:
                if mark in following:
                    parts.append(following.partition(mark)[0].strip())
                    break
                parts.append(following.strip())
        while parts and not parts[0].strip():
            parts.pop(0)
            where += 1
        return where, first_sentence("\n".join(parts))
    return 1, ""


def _comment(lines: Sequence[str], path: str) -> tuple[int, str]:
    """The first comment that is no licence: `//!` and `/** */` at the top, or what precedes a Go package clause."""
    block: list[tuple[int, str]] = []
    inner = path.endswith(".rs")  # `//` speaks of the next item, only `//!` of the file
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if inner and not text.startswith("//!") and text.startswith("//"):
            continue
        if text.startswith(("//", "/*", "*", "#", '"""')) and not text.startswith(
            ("#include", "#!", "#[", "#if", "#def")
        ):
            block.append((number, text.strip("/*#! \t")))
            continue
        spoken = [(n, t) for n, t in block if t and not t.startswith(("@", "eslint", "+build", "go:", "-*-", "vim:"))]
        if spoken and not any(_LICENSE.search(t) for _, t in spoken[:6]):
            return spoken[0][0], first_sentence("\n".join(t for _, t in spoken))
        block = []
        if text and not path.endswith(".go") and number > 40:
            break
        if path.endswith(".go") and text.startswith("package "):
            break
    return 1, ""
