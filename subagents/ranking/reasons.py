"""Why a file is among the results, in short words that can be checked: which lines, which names, which commit."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from subagents.ranking.corpus import Corpus
from subagents.ranking.query import Query
from subagents.ranking.record import CODE_FIELD, COMMENT_FIELD, STRING_FIELD, Record
from subagents.ranking.signs import HALF_LIFE_COMMITS, LineView, whole_key
from subagents.ranking.weights import WEIGHTS

if TYPE_CHECKING:
    from subagents.codebase.types import Symbol
    from subagents.ranking.signs import Table

REASONS_SHOWN = 5
_LEAST = 0.15
"""Part of the strongest sign below which one is not worth a line."""
_OF_OTHERS = 0.25
_WORDS_SHOWN = 4
_COMMIT_DIGITS = 10
_OUTRIGHT = frozenset({"named", "frame", "module", "defines", "member"})
"""Signs that name the file or what it defines; they are said first."""
_SAID = {
    "named": "named in the question",
    "frame": "in the traceback",
    "module": "its module is named in the question",
}
_LOWER = {
    "test": "ranked lower: test",
    "side": "ranked lower: example, script, generated or vendored",
    "document": "ranked lower: document",
    "configuration": "ranked lower: configuration",
}


def reasons_for(
    corpus: Corpus, query: Query, table: Table, file: int, symbols: Sequence[Symbol] = ()
) -> tuple[str, ...]:
    """The strongest signs first, at most REASONS_SHOWN; then what speaks against the file, if anything. `symbols` are
    those of the file, in the index's order."""
    values = {name: WEIGHTS[name] * float(table.signs[name][file]) for name in table.signs if name in WEIGHTS}
    if "near" in values:  # mostly the rest once more, and what is said of it is of another file
        values["near"] *= _OF_OTHERS
    least = _LEAST * max(values.values(), default=0.0)
    shown = [name for name, value in values.items() if value > 0 and value >= least]
    weak = [name for name, value in values.items() if 0 < value < least]
    strong = sorted(shown, key=lambda name: (name not in _OUTRIGHT, -values[name], name))
    about = _File(corpus, query, table, file, symbols)
    said: list[str] = []
    for name in [*strong, *sorted(weak, key=lambda name: (-values[name], name))]:
        if len(said) >= REASONS_SHOWN or (said and name in weak):
            break
        text = _SAID.get(name) or about.say(name)
        if name == "frame" and len(query.frames) == 1 and not query.frames[0].name:  # `path:line` alone
            text = "a line of it is given in the question"
        if text and text not in said:
            said.append(text)
    if (lower := _LOWER.get(corpus.role(file))) is not None:
        said.append(lower)
    return tuple(said)


class _File:
    """One file, and what can be said of it."""

    def __init__(self, corpus: Corpus, query: Query, table: Table, file: int, symbols: Sequence[Symbol]) -> None:
        self.corpus, self.query, self.table, self.file, self.symbols = corpus, query, table, file, symbols
        self.record: Record | None = corpus.record(file)
        self._ways: dict[str, Callable[[], str]] = {
            "defines": lambda: self._defines(dotted=False),
            "member": lambda: self._defines(dotted=True),
            "text": lambda: _labelled("text", self._words(self._has(slice(0, 3)))),
            "comment": self._comment,
            "string": lambda: _labelled(
                "string literals", self._words(self._has(slice(STRING_FIELD, STRING_FIELD + 1)))
            ),
            "path": lambda: _labelled("path", self._words(set(corpus.path_keys(file)))),
            "mentions": self._mentions,
            "passage": self._passage,
            "symbol": self._symbol,
            "symbol_name": self._symbol_name,
            "commits": self._commit,
            "recent": self._recent,
            "near": self._neighbour,
        }

    def say(self, name: str) -> str:
        """A sign in words; empty if there is nothing to show for it."""
        way = self._ways.get(name)
        return way() if way is not None else ""

    def _defines(self, *, dotted: bool) -> str:
        names = [name for name in self.table.defined.get(self.file, []) if ("." in name) == dotted]
        return f"defines {', '.join(names[:_WORDS_SHOWN])}" if names else ""

    def _has(self, fields: slice) -> set[int]:
        record = self.record
        return set() if record is None else set(record.keys[record.counts[:, fields].any(axis=1)].tolist())

    def _comment(self) -> str:
        if self.record is None or not self.record.lengths[CODE_FIELD]:  # all of it is prose, and said under "text"
            return ""
        return _labelled("comments", self._words(self._has(slice(COMMENT_FIELD, COMMENT_FIELD + 1))))

    def _mentions(self) -> str:
        there = self._has(slice(0, 3))
        return _labelled("identifiers", [name for name in self.query.identifiers if whole_key(name) in there])

    @cached_property
    def _view(self) -> LineView | None:
        record, wanted = self.record, self.table.wanted
        if record is None or not len(record.keys) or not len(wanted):
            return None
        return LineView(record, wanted, self.table.worth[self.table.places])

    def _passage(self) -> str:
        view = self._view
        found = view.best_lines() if view is not None else None
        if found is None:
            return ""
        first, last, present = found
        where = f"line {first}" if first == last else f"lines {first} to {last}"
        return _labelled(where, self._words(self.table.wanted[present].tolist()))

    def _symbol(self) -> str:
        found, view = self.table.symbols.get(self.file), self._view
        if found is None or view is None:
            return ""
        best = int(found.scores.argmax())
        place = found.places[best : best + 1]
        named = view.named(place)[:, 0].nonzero()[0].tolist()
        return self._definition("in", int(place[0]), {*view.inside(int(place[0])), *named})

    def _symbol_name(self) -> str:
        found, view = self.table.symbols.get(self.file), self._view
        if found is None or view is None:
            return ""
        best = int(found.names.argmax())
        place = found.places[best : best + 1]
        return self._definition("name of", int(place[0]), view.named(place)[:, 0].nonzero()[0].tolist())

    def _definition(self, label: str, place: int, present: Iterable[int]) -> str:
        if place >= len(self.symbols):
            return ""
        words = self._words(self.table.wanted[list(present)].tolist())
        return _labelled(f"{label} {self.symbols[place].qualified}", words)

    def _commit(self) -> str:
        commits, likeness = self.corpus.commits, self.table.likeness
        if commits is None or likeness is None:
            return ""
        linked = self.corpus.changes
        mine = (linked.file == self.file).nonzero()[0]
        if not len(mine):
            return ""
        best = int(linked.commit[mine[(likeness[linked.commit[mine]] * linked.share[mine]).argmax()]])
        begin = int(commits.key_ends[best - 1]) if best else 0
        words = self._words(set(commits.keys[begin : int(commits.key_ends[best])].tolist()))
        return _labelled(f"changed by commit {commits.ids[best][:_COMMIT_DIGITS]}", words)

    def _recent(self) -> str:
        ago = round(-HALF_LIFE_COMMITS * math.log2(float(self.table.signs["recent"][self.file])))
        return f"changed {ago} commit{'s' * (ago != 1)} ago" if ago else "changed by the last commit"

    def _neighbour(self) -> str:
        mass, imports = self.table.mass, self.corpus.imports
        if mass is None:
            return ""
        said: list[tuple[float, str]] = [(float(mass[self.file]), "")]
        for verb, ours, theirs in (
            ("imports", imports.sources, imports.targets),
            ("imported by", imports.targets, imports.sources),
        ):
            for other in theirs[ours == self.file].tolist():
                said.append((float(mass[other]), f"{verb} {self.corpus.paths[other]}, which ranks high"))
        return max(said)[1]

    def _words(self, keys: Iterable[int]) -> list[str]:
        """How the question writes these terms, the rarest first."""
        there, worth, terms = set(keys), self.table.worth, self.query.terms
        ranked = sorted((at for at, term in enumerate(terms) if term.key in there), key=lambda at: (-worth[at], at))
        return [word.lower() if word.istitle() else word for word in (terms[at].word for at in ranked)]


def _labelled(label: str, words: Sequence[str]) -> str:
    shown = list(dict.fromkeys(words))[:_WORDS_SHOWN]
    return f"{label}: {', '.join(shown)}" if shown else ""
