"""What several tasks of one session need alike: seeds, grown graph, chains, targets. Computed once, on first use.

Everything here is a pure function of snapshot and question, so a resumed run that computes it again gets the same.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from subagents.codebase.types import FileHit, Symbol
from subagents.engine import Workspace
from subagents.index.brief import RepositoryBrief
from subagents.index.kept_brief import repository_brief
from subagents.static.callgraph import (
    FUNCTION_KINDS,
    TYPE_KINDS,
    Graph,
    GraphBuilder,
    Key,
    Tick,
    dynamic_call,
    is_declaration,
    key_of,
)
from subagents.static.chain import LOW_PRICE, PRICE, Chain, ChainFinder
from subagents.static.deeds import bare_verbs
from subagents.static.flow import Tools
from subagents.static.grep import Grep
from subagents.static.meaning import Meaning
from subagents.static.mentions import Mentions, mentions_of
from subagents.static.prose import candidates, paragraphs, telling_names
from subagents.static.question import Question, parse_question
from subagents.static.relevance import Relevance, name_words, term_match
from subagents.static.remembered import RememberingFinder
from subagents.static.roles import is_changelog, is_prose, path_role
from subagents.static.source import Sources
from subagents.static.targets import Target, resolve

MAX_SEEDS = 24
MAX_ALIKE = 3
NAMED_SCORE = 1.9
"""At least this for what the question names."""
"""Ranked seeds of one simple name, and of one file: what is alike must not crowd out the rest."""
MAX_MEMBERS = 6
MOST_DOERS = 3
"""A verb that more functions are called is everyday speech."""


class Analysis:
    """Lazy and thread-safe: the first task that asks computes, the others wait."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = replace(workspace, finder=RememberingFinder(workspace.finder))
        self.question: Question = parse_question(workspace.question)
        self.sources = Sources(workspace.snapshot)
        self.relevance = Relevance(self.question)
        self.grep = Grep(workspace.snapshot, self.sources)
        self._lock = threading.RLock()
        self._tick: Tick = lambda: None
        self._named_doers: tuple[Symbol, ...] | None = None
        self._seeds: list[tuple[Symbol, float]] | None = None
        self._graph: Graph | None = None
        self._builder: GraphBuilder | None = None
        self._chains: list[Chain] | None = None
        # Of many words one step holds a few, so that each may cost less.
        self._price = PRICE * min(1.0, 2.5 / max(1, len(self.question.strong_terms)))
        self._targets: list[Target] | None = None
        self._mentions: dict[str, Mentions] = {}

    @cached_property
    def tools(self) -> Tools:
        with self._lock:
            return Tools(
                index=self.workspace.index,
                sources=self.sources,
                relevance=self.relevance,
                builder=self._grown()[1],
                grep=self.grep,
                code_paths=self.code_paths,
            )

    @cached_property
    def code_paths(self) -> tuple[str, ...]:
        """Files of code that are no tests, examples or vendored copies."""
        index = self.workspace.index
        from subagents.index.languages import GRAMMARS

        return tuple(p for p in index.paths() if path_role(p) == "code" and index.language(p) in GRAMMARS)

    @cached_property
    def brief(self) -> RepositoryBrief | None:
        """The repository brief; None for an index that does not store what it needs."""
        from subagents.index.code_index import StoredIndex

        index = self.workspace.index
        return repository_brief(self.workspace.snapshot, index) if isinstance(index, StoredIndex) else None

    @cached_property
    def prose_paths(self) -> tuple[str, ...]:
        """Documentation, without change logs and without what came with tests or vendored code."""
        return tuple(
            p
            for p in self.workspace.index.paths()
            if is_prose(p) and not is_changelog(p) and path_role(p) not in ("vendored", "test")
        )

    def targets(self) -> list[Target]:
        with self._lock:
            if self._targets is None:
                self._targets = resolve(self.question, self.workspace.index, self.workspace.finder, self._written)
            return self._targets

    def mentions(self, name: str) -> Mentions:
        """Lines of code, settings and templates that name it, whatever it is."""
        with self._lock:
            if name not in self._mentions:
                paths = [p for p in self.workspace.index.paths() if path_role(p) not in ("vendored", "docs")]
                self._mentions[name] = mentions_of(name, self.workspace.index, self.sources, self.grep, paths)
            return self._mentions[name]

    def _written(self, name: str) -> tuple[str, ...]:
        """Files of code that write this name, unless they import it from elsewhere."""
        mentions = self.mentions(name)
        if mentions.imported and mentions.defined is None:
            return ()
        return tuple(dict.fromkeys(m.path for m in mentions.found if path_role(m.path) in ("code", "config")))

    def seeds(self) -> list[tuple[Symbol, float]]:
        """Functions to grow the call graph from, best first: named ones, ranked ones, methods of ranked classes."""
        with self._lock:
            if self._seeds is None:
                self._seeds = self._find_seeds()
            return self._seeds

    def graph(self, tick: Tick) -> Graph:
        with self._lock:
            self._tick = tick
            return self._grown()[0]

    def chains(self, tick: Tick) -> Sequence[Chain]:
        with self._lock:
            if self._chains is None:
                graph = self.graph(tick)
                self._chains = self._finder(graph, self._price).best()
                if not self._chains:  # words that say little, or a small graph: every step costs less
                    self._price = LOW_PRICE
                    self._chains = self._finder(graph, LOW_PRICE).best()
            return self._chains

    def chain_from(self, root: Key, tick: Tick) -> Chain | None:
        """The chain under one root, whether or not it is among the best."""
        with self._lock:
            graph = self.graph(tick)
            if root not in graph.matches:
                return None
            self.chains(tick)
            return self._finder(graph, self._price).from_root(root)

    def _finder(self, graph: Graph, price: float) -> ChainFinder:
        return ChainFinder(graph, self.question, self.relevance, self.sources, price=price)

    def _grown(self) -> tuple[Graph, GraphBuilder]:
        if self._graph is None or self._builder is None:
            tests = self.question.aspect == "tested"
            self._builder = GraphBuilder(
                self.workspace.index,
                self.sources,
                self.relevance,
                lambda: self._tick(),
                tests=tests,
                meaning=Meaning(
                    self.workspace.index, self.sources, lambda pattern: self.grep.lines(pattern, self.code_paths)
                ),
                told=self.told,
            )
            self._graph = self._builder.grow([symbol for symbol, _ in self.seeds()], self._subjects())
        return self._graph, self._builder

    def _subjects(self) -> list[Symbol]:
        """Functions whose name is all that the question speaks of, is written in it, or is what it asks is done."""
        found = list(self._doers())
        for target in self.targets():
            symbol = target.symbol if target.exact else None
            if symbol is None or symbol.kind not in FUNCTION_KINDS or path_role(symbol.path) != "code":
                continue
            own = name_words(symbol.name)
            said = len(own) == 1 and all(
                any(term_match(t, word) >= 0.85 for word in own) for t in self.question.strong_terms
            )
            if said or self.relevance.is_named(symbol):
                found.append(symbol)
        return found[:4]

    def _doers(self) -> Sequence[Symbol]:
        """Functions called just as what is done ("aborted": `Abort`), if few are and they speak of the rest."""
        if self._named_doers is None:
            verbs = bare_verbs(self.question)
            others = [term for term in self.question.strong_terms if term_match(verbs[0], term) < 0.85] if verbs else []
            known = {
                key_of(symbol): symbol
                for verb in verbs
                for symbol in self.workspace.index.definitions(verb)
                if symbol.name.lower() == verb and symbol.kind in FUNCTION_KINDS and path_role(symbol.path) == "code"
            }
            told = [
                symbol
                for symbol in known.values()
                if any(self.relevance.matches(symbol, ()).by_term.get(term, 0.0) >= 0.3 for term in others)
            ]
            self._named_doers = tuple(told) if len(known) <= MOST_DOERS else ()
        return self._named_doers

    def told(self, names: Sequence[str]) -> Mapping[str, float]:
        """What prose makes of these names: 0 not mentioned, up to 1 where the mention speaks of the question."""
        telling = telling_names(names)
        if not telling:
            return {}
        found: dict[str, float] = {}
        for match, name in self.grep.names(telling, self.prose_paths):
            worth = 0.3 + 0.7 * min(1.0, self.relevance.in_text(match.text))
            found[name] = max(found.get(name, 0.0), worth)
        return found

    def _nominated(self) -> list[tuple[Symbol, float]]:
        """Functions that the best paragraphs of the documentation name: people who know wrote down where to look."""
        scored: list[tuple[float, str, int, str]] = []
        for path in candidates(self.question, self.workspace.index, self.workspace.finder, ())[:14]:
            text = self.sources.text(path)
            for paragraph in paragraphs(text.lines) if text else ():
                score = self.relevance.in_text(paragraph.text) + 0.3 * self.relevance.in_text(paragraph.heading)
                if score >= 0.5:
                    scored.append((-score, path, paragraph.start, paragraph.text))
        found: dict[Key, tuple[Symbol, float]] = {}
        for negative, _, _, text_of in sorted(scored)[:12]:
            for name in dict.fromkeys(
                re.findall(r"([A-Za-z_][\w.]*\w)\(\)|`~?!?\.?([A-Za-z_][\w.]*\w)(?:\(\))?`", text_of)
            ):
                word = (name[0] or name[1]).strip(".")
                if len(word) < 4:
                    continue
                for symbol in self.workspace.index.definitions(word, limit=4)[:2]:
                    about: tuple[Symbol, ...] = (symbol,) if symbol.kind in FUNCTION_KINDS else ()
                    if symbol.kind in TYPE_KINDS and path_role(symbol.path) == "code":
                        about = tuple(self._workers(symbol))
                    for one in about:
                        found.setdefault(key_of(one), (one, 0.4 - 0.3 * negative))
        return list(found.values())[:12]

    def _find_seeds(self) -> list[tuple[Symbol, float]]:
        index, finder = self.workspace.index, self.workspace.finder
        found: dict[Key, tuple[Symbol, float]] = {}
        named: Counter[str] = Counter()

        def keep(symbol: Symbol, score: float) -> None:
            role = path_role(symbol.path)
            if is_declaration(symbol):
                return
            if role in ("vendored", "docs", "config", "example") or (
                role == "test" and self.question.aspect != "tested"
            ):
                return
            if symbol.kind in FUNCTION_KINDS:
                room = index.line_count(symbol.path) // 1000 + 1
                crowd = max(named[symbol.name], named[symbol.path] - room)
                if key_of(symbol) not in found and (crowd < MAX_ALIKE or score >= NAMED_SCORE):
                    named.update((symbol.name, symbol.path))
                    found.setdefault(key_of(symbol), (symbol, score))
            elif symbol.kind in TYPE_KINDS:
                members = self._members(symbol)
                if score < NAMED_SCORE:
                    telling = [m for m in members if self.relevance.says(m.name) or m.name in ("__iter__", "__call__")]
                    members = telling[:2]
                for member in members:
                    keep(member, score if score >= NAMED_SCORE else score * 0.8)

        for target in self.targets():
            if target.symbol is not None and target.exact:
                keep(target.symbol, 2.0)
        for symbol in self._doers():
            keep(symbol, 2.0)
        hits = finder.find_symbols(self.question.search_text, limit=120)
        best = max((hit.score for hit in hits), default=1.0) or 1.0
        ranked = []
        for hit in hits:
            matches = self.relevance.matches(hit.symbol, ())
            whole = 0.4 if len(self.question.strong_terms) > 1 and self.relevance.coverage(matches) > 0.99 else 0.0
            ranked.append((0.5 * hit.score / best + self.relevance.value(matches) + whole, hit.symbol))
        ranked.sort(key=lambda item: (-item[0], item[1].path, item[1].start))
        for score, symbol in ranked:
            keep(symbol, score)
            if len(found) >= MAX_SEEDS:
                break
        for symbol, score in self._nominated():
            keep(symbol, score)
        for file in self._ranked_files():
            telling = [hit.symbol for hit in file.symbols if hit.symbol.kind in FUNCTION_KINDS]
            outer = [s for s in telling if s.qualified.count(".") <= 1 and not s.name.endswith("wrapper")]
            for symbol in outer[:3]:
                if dynamic_call(symbol, self.sources):  # what comes in and what is called for it meet here
                    keep(symbol, 0.5 * file.score)
        for word in _compounds(self.question):
            for symbol in index.definitions(word, limit=3):
                keep(symbol, 0.9)
        return list(found.values())[: MAX_SEEDS + 3 * MAX_MEMBERS]

    def _ranked_files(self) -> Sequence[FileHit]:
        """The best files, where the question asks how one thing comes to another."""
        if not self.question.target_terms:
            return ()
        return self.workspace.finder.find(self.question.search_text, limit=12, include_tests=False)

    def _workers(self, owner: Symbol) -> list[Symbol]:
        """The methods of a class that do most of its work: what people mean who name the class."""
        inside = [s for s in self._members(owner, limit=100) if s.kind == "method" and not s.name.startswith("__init")]
        said = {key_of(s): self.relevance.in_text(f"{s.name} {s.doc}") for s in inside}
        return sorted(inside, key=lambda s: (-(said[key_of(s)] + min(60, s.end - s.start) / 60), s.start))[:2]

    def _members(self, owner: Symbol, limit: int = MAX_MEMBERS) -> list[Symbol]:
        inside = [
            s
            for s in self.workspace.index.symbols(owner.path)
            if s.qualified.rpartition(".")[0] == owner.qualified and s.kind in FUNCTION_KINDS
        ]
        scored = sorted(
            inside,
            key=lambda s: (
                -(
                    self.relevance.in_text(f"{s.name} {s.doc}")
                    + (0.3 if s.name in ("__iter__", "__call__", "run") else 0.0)
                ),
                s.start,
            ),
        )
        return scored[:limit]


def _compounds(question: Question) -> list[str]:
    names = []
    for first, second in question.pairs[:3]:
        names += [first.capitalize() + second.capitalize(), f"{first}_{second}", first.capitalize() + second]
    return names
