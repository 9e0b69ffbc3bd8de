"""What to know about a list of results: names nobody has, files no grammar reads, why nothing was found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from subagents.ranking.query import parse

if TYPE_CHECKING:
    from subagents.codebase.types import CodeIndex, FileHit, Finder

_NAMES_SHOWN = 5
_FILES_SHOWN = 3


def remarks(finder: Finder, index: CodeIndex, query: str, hits: Sequence[FileHit]) -> tuple[str, ...]:
    """Short sentences without a full stop."""
    if not hits:
        return (_why_nothing(index, query),)
    names = finder.unknown_names(query)[:_NAMES_SHOWN]
    said = [f"no file has `{name}` as a word; what follows resembles it" for name in names]
    without = {one.path: index.language(one.path) for one in index.skipped() if one.reason == "no_grammar"}
    plain = [hit.path for hit in hits if hit.path in without]
    if plain:
        languages = ", ".join(sorted({str(without[path]) for path in plain}))
        files = ", ".join(plain[:_FILES_SHOWN]) + (
            f" and {len(plain) - _FILES_SHOWN} more" * (len(plain) > _FILES_SHOWN)
        )
        said.append(f"no grammar for {languages}: ranked by words, path and history, without definitions ({files})")
    return tuple(said)


def _why_nothing(index: CodeIndex, query: str) -> str:
    if not index.paths():
        return "there is no text here to search"
    if parse(query).is_empty:
        return "the question has no word that tells one file from another; name what to look for"
    return "no file has a word of the question; give names, or words as the code writes them"
