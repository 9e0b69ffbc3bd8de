"""The signs by which files are ranked: each a number a file, computed for one question over one snapshot.

Three rounds. The first looks at all files through postings, paths, commits and imports. The second opens the records of
the most promising ones and looks at lines: which definition, and which passage, holds what is asked. The third looks
at what the best files import and are imported by: an answer is seldom one file alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from subagents.ranking.corpus import Corpus, Found
from subagents.ranking.pathfacts import FACE
from subagents.ranking.places import dotted_places, named_places, traced_places
from subagents.ranking.query import Query
from subagents.ranking.record import (
    COMMENT_FIELD,
    SMALL,
    STRING_FIELD,
    TYPE,
    Record,
    exact_name,
)
from subagents.ranking.words import key_of, keys

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

K1, B = 1.2, 0.75
MESSAGE_K1, MESSAGE_B = 1.0, 0.6
COMMITS_COUNTED = 5
HALF_LIFE_COMMITS = 300
PASSAGE_LINES = 12
SYMBOL_NAME_BONUS = 3.0
SYMBOL_WORDS = 60.0
"""Words in a typical definition, for length control."""
NAMES_ASKED = 400
NEAR_FILES = 20
NEAR_SPREAD = 2.0
"""Of the best NEAR_FILES each counts e**(difference to the best / NEAR_SPREAD)."""
FOCUS = 12.0
"""A question that says little besides a place is about that place: how much more the place counts then."""


@dataclass(slots=True)
class SymbolScores:
    """Scores of one file's definitions, by their place in `CodeIndex.symbols`."""

    places: NDArray[np.int64]
    scores: Numbers
    names: Numbers
    """What the words of the question in each definition's name are worth."""
    lines: NDArray[np.int64]
    is_type: NDArray[np.bool_]


@dataclass(slots=True)
class Table:
    """What was found. `signs` holds one array over all files a sign, scaled where the sign is relative."""

    signs: dict[str, Numbers]
    worth: Numbers
    """What each term of the question is worth here, by its place among them."""
    wanted: NDArray[np.uint32]
    """Keys of the terms, in order, ..."""
    places: NDArray[np.int64]
    """... and the place of each among the terms."""
    likeness: Numbers | None = None
    """How much each commit's message is like the question."""
    mass: Numbers | None = None
    """How much each file counts for those near it."""
    symbols: dict[int, SymbolScores] = field(default_factory=dict)
    defined: dict[int, list[str]] = field(default_factory=lambda: defaultdict(list))
    """Names of the question that a file defines."""


def bm25(
    found: Found, tf: Numbers, keep: NDArray[np.bool_], lengths: Numbers, counted: NDArray[np.bool_], weights: Numbers,
    k1: float, b: float,
) -> Numbers:  # fmt: skip
    """Lucene's BM25 of every file, terms weighted. Rarity and mean length are those of the `counted` files."""

    files = len(lengths)
    term, file, tf = found.term[keep], found.file[keep], tf[keep]
    idf = rarity(term[counted[file]], len(weights), int(counted.sum()))
    mean = float(lengths[counted].mean()) if counted.any() else 1.0
    norm = k1 * (1 - b + b * lengths / max(mean, 1e-9))
    return summed(file, tf / (tf + norm[file]) * (idf * weights)[term], files)


def summed(place: NDArray[np.int64], values: Numbers, size: int) -> Numbers:
    """Values added up by place."""
    import numpy as np

    return np.bincount(place, values, minlength=size).astype(float)


def rarity(term: NDArray[np.int64], terms: int, files: int) -> Numbers:
    import numpy as np

    df = np.bincount(term, minlength=terms)
    idf: Numbers = np.log(1 + (max(files, 1) - np.minimum(df, files) + 0.5) / (df + 0.5))
    return idf


def scaled(values: Numbers, counted: NDArray[np.bool_]) -> Numbers:
    """1 for the most of the counted files; others may exceed it a little at most."""
    import numpy as np

    top = float(values[counted].max()) if counted.any() else 0.0
    top = top if top > 0 else float(values.max(initial=0.0))
    return np.minimum(values / top, 1.0) if top > 0 else np.zeros_like(values)


class Signs:
    """All signs of one question. Made anew for each question; holds nothing that outlives it."""

    def __init__(self, corpus: Corpus, query: Query) -> None:
        import numpy as np

        self.corpus = corpus
        self.query = query
        self.keys = [term.key for term in query.terms]
        self.weights = np.array([term.weight for term in query.terms])
        self.counted = corpus.is_source
        self.likeness: Numbers | None = None

    # --- first round: every file ---

    def first_round(self) -> Table:
        found, query = self.found, self.query
        raw = {**self.lexical(found), **self.commit_signs()}
        signs = {name: scaled(values, self.counted) for name, values in raw.items()}
        table = Table(signs, self.worth, *self.sorted_keys, self.likeness)
        self.names(table)
        table.signs["named"] = named_places(self.corpus, query)
        table.signs["frame"] = traced_places(self.corpus, query)
        table.signs["module"] = dotted_places(self.corpus, query)
        for name, written in (
            ("named", query.files),
            ("frame", [f.path for f in query.frames]),
            ("module", query.dotted),
        ):
            share = min(1.0, sum(map(len, written)) / max(len(query.text.strip()), 1))
            table.signs[name] = scaled(table.signs[name], self.counted) * (1 + FOCUS * share)
        self.priors(table)
        return table

    @cached_property
    def sorted_keys(self) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """The keys of the question's terms in order, and the place of each among the terms."""
        import numpy as np

        keys = np.array(self.keys, np.uint32)
        order = np.argsort(keys, kind="stable")
        return keys[order], order

    @cached_property
    def found(self) -> Found:
        """Postings of the question's terms, in an order that does not depend on how the index was built."""
        return ordered(self.corpus.store.postings(self.keys), len(self.corpus))

    @cached_property
    def rarity(self) -> Numbers:
        found = self.found
        in_text = found.counts[:, :3].any(axis=1) & self.counted[found.file]
        return rarity(found.term[in_text], len(self.keys), int(self.counted.sum()))

    @cached_property
    def worth(self) -> Numbers:
        """What each term is worth in one place: its weight in the question times its rarity."""
        worth: Numbers = self.rarity * self.weights
        return worth

    def lexical(self, found: Found) -> dict[str, Numbers]:
        lengths, counts = self.corpus.lengths, found.counts
        made: dict[str, Numbers] = {}
        text = counts[:, :3].sum(axis=1, dtype=float)
        made["text"] = bm25(found, text, text > 0, lengths[:, :3].sum(axis=1), self.counted, self.weights, K1, B)
        for name, column in (("comment", COMMENT_FIELD), ("string", STRING_FIELD)):
            tf = counts[:, column].astype(float)
            made[name] = bm25(found, tf, tf > 0, lengths[:, column], self.counted, self.weights, K1, B)
        made["path"] = self.path_words()
        return made

    def path_words(self) -> Numbers:
        import numpy as np

        facts, files = self.corpus.facts, len(self.corpus)
        wanted, order = self.sorted_keys
        if not len(wanted):
            return np.zeros(files)
        at = np.minimum(np.searchsorted(wanted, facts.keys), len(wanted) - 1)
        hit = wanted[at] == facts.keys
        term, file = order[at[hit]], facts.file[hit]
        df = np.bincount(term[self.counted[file]], minlength=len(self.keys))
        idf = np.log(1 + files / np.maximum(df, 1))[term]
        return summed(file, idf * self.weights[term], files) / np.sqrt(1 + facts.size)

    def names(self, table: Table) -> None:
        """Definitions of names that the question writes out, and identifiers it shares with files."""
        import numpy as np

        query, files = self.query, len(self.corpus)
        identifiers = query.identifiers
        asked = [
            *identifiers,
            *(word for word in query.words if len(word) > 3 and word[0].isupper() and word not in identifiers),
        ]
        asked = asked[:NAMES_ASKED]
        pairs = list(query.pairs[:NAMES_ASKED])
        exact = ordered(self.corpus.store.postings([exact_name(name) for name in [*asked, *pairs]]), files)
        proper = ~self.corpus.has_role("test")
        defines, member = np.zeros(files), np.zeros(files)
        for place in np.flatnonzero(np.bincount(exact.term)).tolist():  # np.unique would import numpy.ma, 40 ms
            holders = exact.file[exact.term == place]
            chosen = holders[proper[holders]] if proper[holders].any() else holders
            name = asked[place] if place < len(asked) else pairs[place - len(asked)]
            (defines if place < len(asked) else member)[chosen] += 1 / len(chosen) if place < len(asked) else 1.0
            if len(chosen) <= 20:
                for file in chosen.tolist():
                    table.defined[file].append(name)
        table.signs["defines"] = scaled(defines, self.counted)
        table.signs["member"] = scaled(member, self.counted)
        table.signs["mentions"] = scaled(self.mentions(list(identifiers)[:NAMES_ASKED]), self.counted)

    def mentions(self, identifiers: Sequence[str]) -> Numbers:
        import numpy as np

        whole = sorted({whole_key(name) for name in identifiers})
        found = ordered(self.corpus.store.postings(whole), len(self.corpus))
        there = found.counts[:, :3].any(axis=1)
        term, file = found.term[there], found.file[there]
        counted = self.counted
        df = np.bincount(term[counted[file]], minlength=len(whole))
        worth = np.log(1 + int(counted.sum()) / np.maximum(df, 1))
        return summed(file, worth[term], len(self.corpus))

    # --- history ---

    def commit_signs(self) -> dict[str, Numbers]:
        import numpy as np

        files = len(self.corpus)
        commits = self.corpus.commits
        nothing = np.zeros(files)
        if commits is None or not len(commits.changed) or not self.keys:
            return {"commits": nothing, "recent": nothing}
        linked = self.corpus.changes
        recent = np.zeros(files)
        np.maximum.at(recent, linked.file, 0.5 ** (linked.rank / HALF_LIFE_COMMITS))
        wanted, order = self.sorted_keys
        at = np.minimum(np.searchsorted(wanted, commits.keys), len(wanted) - 1)
        hit = wanted[at] == commits.keys
        owner = np.repeat(np.arange(len(commits.ids)), np.diff(commits.key_ends, prepend=0))
        # only commits that changed a file of this snapshot count, as the others say nothing about any file
        hit &= linked.is_linked[owner]
        term, commit, tf = order[at[hit]], owner[hit], commits.counts[hit].astype(float)
        length = linked.length
        kept = linked.is_linked
        number = int(kept.sum())
        idf = rarity(term, len(self.keys), number)
        norm = MESSAGE_K1 * (
            1 - MESSAGE_B + MESSAGE_B * length / max(float(length[kept].mean()) if number else 1.0, 1e-9)
        )
        self.likeness = summed(commit, tf / (tf + norm[commit]) * (idf * self.weights)[term], len(commits.ids))
        return {
            "commits": self.best_commits(self.likeness),
            "recent": recent,
        }

    def best_commits(self, likeness: Numbers) -> Numbers:
        """Sum of the COMMITS_COUNTED best likenesses, each shared among the files of its commit."""
        import numpy as np

        linked = self.corpus.changes
        value = likeness[linked.commit] * linked.share
        order = np.lexsort((-value, linked.file))
        file, value = linked.file[order], value[order]
        first = np.searchsorted(file, file, "left")
        top = np.arange(len(file)) - first < COMMITS_COUNTED
        return summed(file[top], value[top], len(self.corpus))

    # --- priors ---

    def priors(self, table: Table) -> None:
        import numpy as np

        corpus, query = self.corpus, self.query
        words: Numbers = corpus.lengths[:, :3].sum(axis=1, dtype=float)
        size: Numbers = np.log1p(words)
        table.signs["size"] = size
        table.signs["face"] = (corpus.facts.part >= FACE).astype(float)
        table.signs["test"] = corpus.has_role("test").astype(float)
        table.signs["side"] = corpus.has_role("side").astype(float)
        table.signs["document"] = corpus.has_role("document").astype(float) * (0.3 if query.wants_docs else 1.0)
        configuration = corpus.has_role("configuration").astype(float)
        table.signs["configuration"] = configuration * (0.5 if query.wants_config else 1.0)

    # --- second round: the most promising files ---

    def second_round(self, table: Table, files: Sequence[int]) -> None:
        import numpy as np

        number = len(self.corpus)
        raw = {name: np.zeros(number) for name in ("symbol", "symbol_name", "passage")}
        wanted, order = self.sorted_keys
        worth = self.worth[order]
        for file in files:
            record = self.corpus.record(file)
            if record is None or not len(record.keys) or not len(wanted):
                continue
            view = LineView(record, wanted, worth)
            raw["passage"][file] = view.passage()
            found = view.symbols()
            if found is not None:
                table.symbols[file] = found
                raw["symbol"][file] = float(found.scores.max())
                raw["symbol_name"][file] = float(found.names.max())
        for name, values in raw.items():
            table.signs[name] = scaled(values, self.counted)

    # --- third round: what stands beside the best ---

    def third_round(self, table: Table, files: Sequence[int], scores: Numbers) -> None:
        """`scores` are those after the second round. A file is near to itself, too: what leads by far, leads more."""
        import numpy as np

        number = len(self.corpus)
        mass = np.zeros(number)
        best = sorted(files, key=lambda file: (-scores[file], file))[:NEAR_FILES]
        mass[best] = np.exp((scores[best] - scores[best[:1]]) / NEAR_SPREAD)
        source, target = self.corpus.imports.sources, self.corpus.imports.targets
        outgoing = np.bincount(source, minlength=number)
        incoming = np.bincount(target, minlength=number)
        imported = summed(target, mass[source] / np.sqrt(1 + incoming[target]), number)
        importing = summed(source, mass[target] / np.sqrt(np.maximum(outgoing[source], 1)), number)
        table.mass = mass
        table.signs["near"] = scaled(mass + imported + importing, self.counted)


class LineView:
    """Where the terms of a question stand in one file."""

    def __init__(self, record: Record, wanted: NDArray[np.uint32], worth: Numbers) -> None:
        import numpy as np

        self.record = record
        at = np.minimum(np.searchsorted(record.keys, wanted), len(record.keys) - 1)
        present = np.flatnonzero(record.keys[at] == wanted)
        at = at[present]
        self.wanted, self.worth = wanted, worth
        self.present = present
        self.value = worth[present]
        ends = record.ends[at].astype(np.int64)
        begins = np.where(at > 0, record.ends[at - 1], 0).astype(np.int64)
        sizes = ends - begins
        self.term = np.repeat(np.arange(len(present)), sizes)
        within = np.arange(len(self.term)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        self.line = record.lines[begins[self.term] + within].astype(np.int64)

    def passage(self) -> float:
        """Worth of the best PASSAGE_LINES lines, each term saturating."""
        return float(self._windows().max()) if len(self.line) else 0.0

    def best_lines(self) -> tuple[int, int, list[int]] | None:
        """(first, last, terms): the lines that `passage` speaks of, without those at their edges that hold nothing, and
        the places in `wanted` of the terms that stand there."""
        if not len(self.line):
            return None
        half = PASSAGE_LINES // 2
        begin = int(self._windows().argmax()) * half
        inside = (self.line >= begin) & (self.line < begin + 2 * half)
        lines = self.line[inside]
        return int(lines.min()), int(lines.max()), sorted(set(self.present[self.term[inside]].tolist()))

    def _windows(self) -> Numbers:
        """Worth of each stretch of PASSAGE_LINES lines, one beginning at every half."""
        import numpy as np

        half = PASSAGE_LINES // 2
        strips = self.record.line_count // half + 2
        counted = np.zeros((strips + 1, len(self.present)))
        np.add.at(counted, (self.line // half, self.term), 1.0)
        window = counted[:-1] + counted[1:]
        worth: Numbers = window / (window + 1.0) @ self.value
        return worth

    def inside(self, place: int) -> list[int]:
        """Places in `wanted` of the terms that stand in one definition."""
        start, finish = int(self.record.starts[place]), int(self.record.finishes[place])
        there = (self.line >= start) & (self.line <= finish)
        return sorted(set(self.present[self.term[there]].tolist()))

    def symbols(self) -> SymbolScores | None:
        import numpy as np

        record = self.record
        places = np.flatnonzero(record.kinds != SMALL)
        if not len(places):
            return None
        starts = record.starts[places].astype(np.int64)
        finishes = np.minimum(record.finishes[places].astype(np.int64), record.line_count)
        step = record.line_count + 3
        stands = self.term * step + self.line
        rows = np.arange(len(self.present))[:, None] * step
        inside = np.searchsorted(stands, (rows + finishes + 1).ravel()) - np.searchsorted(
            stands, (rows + starts).ravel()
        )
        tf = inside.reshape(len(self.present), len(places)).astype(float)
        words = record.words.astype(np.int64)
        length = words[finishes] - words[np.maximum(starts - 1, 0)]
        named = self.named(places)
        norm = 1.2 * (0.4 + 0.6 * length / SYMBOL_WORDS)
        full = np.zeros((len(self.wanted), len(places)))
        full[self.present] = tf
        full += SYMBOL_NAME_BONUS * named
        scores = self.worth @ (full / (full + norm))
        lines = record.finishes[places].astype(np.int64) - starts + 1
        return SymbolScores(places, scores, self.worth @ named, lines, record.kinds[places] == TYPE)

    def named(self, places: NDArray[np.int64]) -> Numbers:
        """1 where a term stands in the name of a definition or of what it is nested in."""
        import numpy as np

        record = self.record
        ends = np.concatenate([[0], record.name_ends]).astype(np.int64)
        sizes = ends[1:] - ends[:-1]
        owner = np.repeat(np.arange(len(sizes)), sizes)
        at = np.minimum(np.searchsorted(self.wanted, record.name_keys), len(self.wanted) - 1)
        hit = self.wanted[at] == record.name_keys
        made = np.zeros((len(self.wanted), len(sizes)))
        made[at[hit], owner[hit]] = 1.0
        return made[:, places]


def ordered(found: Found, files: int) -> Found:
    import numpy as np

    order = np.argsort(found.term * max(files, 1) + found.file, kind="stable")
    return Found(found.term[order], found.file[order], found.counts[order])


def whole_key(name: str) -> int:
    """The key of an identifier as a whole: `=word` when it has several parts, its stem when it is one word."""
    spelt = keys(name)
    return spelt[-1] if spelt else key_of("=" + name.lower())
