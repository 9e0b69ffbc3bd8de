"""Words of a question that the snapshot does not know at all: what makes a question unanswerable here."""

from __future__ import annotations

from subagents.codebase.types import CannotRead
from subagents.engine import Workspace
from subagents.static.question import Question
from subagents.static.relevance import name_words, term_match


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
