"""Ranked search: the sum of weighted signs, in three rounds, with the reasons in plain words."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from subagents.codebase.types import CannotRead, CodeIndex, FileHit, Snapshot, Symbol, SymbolHit
from subagents.ranking.corpus import Corpus, DamagedTerms, MemoryStore, Store, stored_corpus
from subagents.ranking.history import Commits, read_commits
from subagents.ranking.places import entries_inside, pointed_at
from subagents.ranking.query import Query, parse
from subagents.ranking.reasons import reasons_for
from subagents.ranking.record import Record
from subagents.ranking.signs import Signs, Table
from subagents.ranking.weights import PRIORS, SYMBOL_WEIGHTS, WEIGHTS
from subagents.ranking.words import keys, parts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

POOL = 100
"""Files looked at line by line."""
SYMBOLS_A_FILE = 5
_QUERIES_KEPT = 8


@dataclass(frozen=True, slots=True)
class Ranking:
    """One question over one corpus: the signs, and all files by score."""

    query: Query
    table: Table
    scores: NDArray[np.float64]
    order: tuple[int, ...]
    """Files that show anything of what is asked, best first."""


class RankedFinder:
    """A `Finder`; see that protocol. Made by `open_finder`. Thread-safe."""

    def __init__(self, index: CodeIndex, corpus: Corpus, snapshot: Snapshot) -> None:
        self._index = index
        self._snapshot = snapshot
        self.corpus = corpus
        self._known: OrderedDict[str, Ranking] = OrderedDict()
        self._lock = Lock()

    def find(self, query: str, *, limit: int = 20, include_tests: bool = True) -> Sequence[FileHit]:
        """Files, best first. A score is 1 for the best file; each unit of weight below divides it by e."""
        import numpy as np

        ranking = self.rank(query)
        if not ranking.order or limit <= 0:
            return ()
        chosen = [f for f in ranking.order if include_tests or self.corpus.role(f) != "test"][:limit]
        if not chosen:
            return ()
        best = float(ranking.scores[chosen[0]])
        entries = entries_inside(self.corpus, ranking.query)
        hits = []
        for file in chosen:
            path = self.corpus.paths[file]
            symbols = self._index.symbols(path) if file in ranking.table.symbols else ()
            hits.append(
                FileHit(
                    path=path,
                    score=round(float(np.exp(ranking.scores[file] - best)), 6),
                    reasons=reasons_for(self.corpus, ranking.query, ranking.table, file, symbols),
                    symbols=tuple(_best_symbols(ranking, file, symbols, pointed_at(entries, file, symbols))),
                )
            )
        return tuple(hits)

    def find_symbols(self, query: str, *, limit: int = 20) -> Sequence[SymbolHit]:
        """Definitions of the files looked at line by line, best first; scores as in `find`."""
        import numpy as np

        ranking = self.rank(query)
        scored = symbol_scores(ranking)
        if scored is None or limit <= 0:
            return ()
        files, places, scores = scored
        best = float(scores.max())
        hits: list[SymbolHit] = []
        for at in np.lexsort((places, files, -scores)).tolist():
            symbols = self._index.symbols(self.corpus.paths[files[at]])
            if places[at] < len(symbols):
                score = round(float(np.exp(scores[at] - best)), 6)
                hits.append(SymbolHit(symbol=symbols[places[at]], score=score))
            if len(hits) >= limit:
                break
        return tuple(hits)

    def unknown_names(self, query: str) -> tuple[str, ...]:
        """Identifiers of the question, as written, that no file holds as one word: what is found resembles them."""
        names = [name for name in self.rank(query).query.identifiers if len(parts(name)) > 1 and len(name) > 3]
        wanted = [keys(name)[-1] for name in names]
        held = set(self.corpus.store.postings(wanted).term.tolist()) if wanted else set()
        in_paths = set(self.corpus.facts.keys.tolist()) if wanted else set()
        held |= {at for at, key in enumerate(wanted) if key in in_paths}
        return tuple(name for at, name in enumerate(names) if at not in held)

    def rank(self, text: str) -> Ranking:
        """All files ranked. The last few questions are remembered: `find` and `find_symbols` mostly come in pairs."""
        with self._lock:
            if text in self._known:
                self._known.move_to_end(text)
                return self._known[text]
        query = parse(text)
        try:
            ranking = rank(self.corpus, query)
        except DamagedTerms:  # the index proper may be whole: do without what was stored for ranking
            self.corpus = corpus_from_texts(self._snapshot, self._index, self.corpus.commits)
            ranking = rank(self.corpus, query)
        with self._lock:
            self._known[text] = ranking
            while len(self._known) > _QUERIES_KEPT:
                self._known.popitem(last=False)
        return ranking


def _best_symbols(ranking: Ranking, file: int, symbols: Sequence[Symbol], pointed: Sequence[int]) -> list[SymbolHit]:
    """Those that the question points at, then those that hold what is asked. `symbols` are those of the file, in the
    index's order, `pointed` places among them."""
    import numpy as np

    found = ranking.table.symbols.get(file)
    if found is None:
        return []
    top = float(found.scores.max())
    hits = [SymbolHit(symbol=symbols[place], score=1.0) for place in pointed]
    for at in np.lexsort((found.places, -found.scores))[:SYMBOLS_A_FILE].tolist():
        if found.scores[at] > 0 and found.places[at] < len(symbols) and found.places[at] not in pointed:
            hits.append(SymbolHit(symbol=symbols[found.places[at]], score=round(float(found.scores[at]) / top, 6)))
    return hits[:SYMBOLS_A_FILE]


def rank(corpus: Corpus, query: Query) -> Ranking:
    import numpy as np

    if query.is_empty or not len(corpus):
        nothing = Table({}, np.zeros(0), np.zeros(0, np.uint32), np.zeros(0, np.int64))
        return Ranking(query, nothing, np.zeros(len(corpus)), ())
    signs = Signs(corpus, query)
    table = signs.first_round()
    first = weighted(table, len(corpus))
    evidence = shows(table, len(corpus))
    order = np.lexsort((np.arange(len(corpus)), -first))
    pool = [file for file in order.tolist() if evidence[file]][:POOL]
    signs.second_round(table, pool)
    signs.third_round(table, pool, weighted(table, len(corpus)))
    scores = weighted(table, len(corpus))
    final = np.lexsort((np.arange(len(corpus)), -scores))
    return Ranking(query, table, scores, tuple(file for file in final.tolist() if evidence[file]))


def weighted(table: Table, files: int) -> NDArray[np.float64]:
    import numpy as np

    total = np.zeros(files)
    for name, weight in WEIGHTS.items():
        if name in table.signs:
            total += weight * table.signs[name]
    return total


def shows(table: Table, files: int) -> NDArray[np.bool_]:
    """Files with any sign of what is asked; that a file changed lately is no such sign, nor are priors."""
    import numpy as np

    shown = np.zeros(files, bool)
    for name, values in table.signs.items():
        if name not in PRIORS and name not in ("recent", "near"):
            shown |= values > 0
    return shown


def symbol_scores(
    ranking: Ranking,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]] | None:
    """(files, places, scores), parallel, of all definitions looked at."""
    import numpy as np

    table = ranking.table
    if not table.symbols:
        return None
    several = list(table.symbols.values())
    files = np.concatenate([np.full(len(found.places), file) for file, found in table.symbols.items()])
    places = np.concatenate([found.places for found in several])
    words = np.concatenate([found.scores for found in several])
    names = np.concatenate([found.names for found in several])
    lines = np.concatenate([found.lines for found in several])
    is_type = np.concatenate([found.is_type for found in several])
    top = float(words.max())
    if top <= 0:
        return None
    scores = (
        SYMBOL_WEIGHTS["file"] * ranking.scores[files]
        + SYMBOL_WEIGHTS["words"] * words / top
        + SYMBOL_WEIGHTS["name"] * names / max(float(names.max()), 1e-9)
        + SYMBOL_WEIGHTS["length"] * np.log1p(lines)
        + SYMBOL_WEIGHTS["type"] * is_type
    )
    shown = words > 0
    return files[shown], places[shown], scores[shown]


def open_finder(snapshot: Snapshot, index: CodeIndex, cache_dir: Path) -> RankedFinder:
    """Ranked search over a snapshot and its index, both of which stay the caller's. Commits are kept in `cache_dir`."""
    commits = read_commits(snapshot, cache_dir / snapshot.repository_key)
    return RankedFinder(index, _corpus(snapshot, index, commits), snapshot)


def corpus_from_texts(snapshot: Snapshot, index: CodeIndex, commits: Commits | None = None) -> Corpus:
    """A corpus made from the files themselves, for an index that stores no terms."""
    paths, store = _read_all(snapshot, index)
    return Corpus(paths, store, index.import_edges(), commits)


def _corpus(snapshot: Snapshot, index: CodeIndex, commits: Commits | None) -> Corpus:
    from subagents.index.code_index import StoredIndex

    if isinstance(index, StoredIndex):
        rows = index.rows("SELECT name FROM sqlite_master WHERE name IN ('terms_segment', 'terms_listing')")
        if len(rows) == 2:
            with suppress(DamagedTerms):
                return stored_corpus(index, commits)
    return corpus_from_texts(snapshot, index, commits)


def _read_all(snapshot: Snapshot, index: CodeIndex) -> tuple[list[str], Store]:
    from subagents.ranking.record import decode, encode

    paths = sorted(index.paths())
    records: list[Record | None] = []
    for path in paths:
        try:
            text = "\n".join(snapshot.text(path).lines)
        except (CannotRead, KeyError):
            records.append(None)
            continue
        records.append(decode(encode(text, index.language(path), index.symbols(path))))
    return paths, MemoryStore(records)
