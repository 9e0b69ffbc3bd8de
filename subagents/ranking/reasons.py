"""Why a file is among the results, in short plain words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from subagents.ranking.corpus import Corpus
from subagents.ranking.query import Query
from subagents.ranking.record import COMMENT_FIELD, STRING_FIELD
from subagents.ranking.weights import WEIGHTS

if TYPE_CHECKING:
    from subagents.ranking.signs import Table

REASONS_SHOWN = 5
_LEAST = 0.15
"""Part of the strongest sign below which one is not worth a line."""
_WORDS_SHOWN = 4
_OUTRIGHT = frozenset({"named", "frame", "module", "defines", "member"})
"""Signs that name the file or what it defines; they are said first."""
_SAID = {
    "named": "named in the question",
    "frame": "in the traceback",
    "module": "its module is named in the question",
    "recent": "changed lately",
    "commits": "past commits with such messages changed it",
    "importers": "imported by files that match",
    "symbol": "one definition holds most of what is asked",
    "symbol_name": "definitions named like what is asked",
    "passage": "a few lines hold most of what is asked",
    "mentions": "uses the identifiers written in the question",
}
_WITH_WORDS = {
    "text": "text",
    "path": "path",
    "string": "string literals",
    "comment": "comments",
}


def reasons_for(corpus: Corpus, query: Query, table: Table, file: int) -> tuple[str, ...]:
    """The strongest signs first, at most REASONS_SHOWN; then what speaks against the file, if anything."""
    values = {name: WEIGHTS[name] * float(table.signs[name][file]) for name in table.signs if name in WEIGHTS}
    strong = sorted(
        (name for name, value in values.items() if value > 0),
        key=lambda name: (name not in _OUTRIGHT, -values[name], name),
    )
    said: list[str] = []
    for name in strong:
        if len(said) >= REASONS_SHOWN or values[name] < _LEAST * max(values.values()):
            break
        text = _say(corpus, query, table, file, name)
        if text and text not in said:
            said.append(text)
    role = corpus.role(file)
    if role in ("test", "side", "document", "configuration"):
        said.append({"side": "ranked lower: example, script, generated or vendored"}.get(role, f"ranked lower: {role}"))
    return tuple(said)


def _say(corpus: Corpus, query: Query, table: Table, file: int, name: str) -> str:
    if name in ("defines", "member"):
        names = table.defined.get(file, [])
        wanted = [one for one in names if ("." in one) == (name == "member")]
        return f"defines {', '.join(wanted[:_WORDS_SHOWN])}" if wanted else ""
    if name in _WITH_WORDS:
        words = _words(corpus, query, table, file, name)
        return f"{_WITH_WORDS[name]}: {', '.join(words)}" if words else ""
    return _SAID.get(name, "")


def _words(corpus: Corpus, query: Query, table: Table, file: int, name: str) -> list[str]:
    """The rarest words of the question found in one field of the file."""
    if name == "path":
        has = set(corpus.path_keys(file))
        return _spelt([term.word for term in query.terms if term.key in has])
    record = corpus.record(file)
    if record is None:
        return []
    counts = {"text": record.counts[:, :3].max(axis=1), "comment": record.counts[:, COMMENT_FIELD]}
    there = set(record.keys[counts.get(name, record.counts[:, STRING_FIELD]) > 0].tolist())
    worth = table.worth
    ranked = sorted(
        (place for place, term in enumerate(query.terms) if term.key in there), key=lambda place: (-worth[place], place)
    )
    return _spelt([query.terms[place].word for place in ranked])


def _spelt(words: list[str]) -> list[str]:
    return list(dict.fromkeys(word.lower() if word.istitle() else word for word in words))[:_WORDS_SHOWN]
