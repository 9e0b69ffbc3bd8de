"""Words of a question that the snapshot does not know at all: what makes a question unanswerable here."""

from __future__ import annotations

import re
from dataclasses import dataclass

from subagents.codebase.types import CannotRead
from subagents.engine import Workspace
from subagents.static.grep import Grep
from subagents.static.question import Question, subwords
from subagents.static.relevance import name_words, term_match
from subagents.static.source import Sources


@dataclass(frozen=True, slots=True, kw_only=True)
class Absent:
    """Names written in a question that stand in no path and no text of the snapshot, whatever their case."""

    names: tuple[str, ...]
    files: int
    """Files searched."""
    is_all: bool
    """The question is about nothing else: what is like them is no answer to it."""


def absent_names(question: Question, workspace: Workspace) -> Absent:
    """Looks for each name as written, and for the last part of a dotted one, as a part of a word too.

    A name that ran into a limit of the search is not called absent.
    """
    index, snapshot = workspace.index, workspace.snapshot
    paths = index.paths()
    tails = {name: name.rpartition(".")[2] for name in question.identifiers}
    wanted = {name: tail for name, tail in tails.items() if len(tail) > 2 and not index.definitions(tail, limit=1)}
    absent: list[str] = []
    if wanted:
        low = [path.lower() for path in paths]
        grep = Grep(snapshot, Sources(snapshot))
        for name, tail in wanted.items():
            inside = any(tail.lower() in path for path in low)
            if not inside and not grep.lines(f"(?i){re.escape(tail)}", paths, limit=1) and not grep.timed_out:
                absent.append(name)
    parts = {part for name in absent for part in subwords(name)}
    return Absent(
        names=tuple(absent),
        files=len(paths),
        is_all=bool(absent) and parts.issuperset(question.strong_terms) and not question.paths,
    )


def missing_terms(question: Question, workspace: Workspace) -> list[str]:
    """Strong terms that no symbol, path or ranked text of the snapshot holds, in the question's order."""
    return [term for term in question.strong_terms if not _known(term, workspace)]


def _known(term: str, workspace: Workspace) -> bool:
    index = workspace.index
    if any(
        index.definitions(word, limit=1) or index.references(word, limit=1)
        for word in (term, term.capitalize(), term.upper())
    ):
        return True
    for hit in workspace.finder.find_symbols(term, limit=12):
        symbol = hit.symbol
        words = (
            *name_words(symbol.qualified),
            *name_words(symbol.doc),
            *name_words(symbol.signature),
            *name_words(symbol.path),
        )
        if any(term_match(term, word) >= 0.6 for word in words):
            return True
    for file in workspace.finder.find(term, limit=6):
        if any(term_match(term, word) >= 0.6 for word in name_words(file.path)):
            return True
        try:
            text = workspace.snapshot.text(file.path)
        except CannotRead:
            continue
        if any(
            term_match(term, word) >= 0.85
            for row in text.lines[:4000]
            if term[:4] in row.lower()
            for word in name_words(row)
        ):
            return True
    return False
