"""How much a definition has to do with the question: words of the question matched against names, owners and bodies.

The search that found the seeds ranks places one by one. Choosing a chain needs values that can be compared along
calls, also for functions that no search would return: hence a small matcher of its own, with weights by rarity inside
the part of the call graph at hand.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from subagents.codebase.types import Symbol
from subagents.static.question import Question, subwords

_ABBREVIATIONS: Mapping[str, str] = {
    "cmd": "command", "cmds": "command", "conn": "connection", "ctx": "context", "cfg": "configuration",
    "conf": "configuration", "config": "configuration", "settings": "configuration", "req": "request",
    "resp": "response", "res": "response", "msg": "message", "arg": "argument", "args": "argument",
    "param": "parameter", "params": "parameter", "func": "function", "fn": "function", "init": "initialize",
    "auth": "authentication", "db": "database", "dict": "dictionary", "dir": "directory", "doc": "documentation",
    "env": "environment", "err": "error", "exc": "error", "exceptions": "error",
    "exec": "execute", "ext": "extension", "fmt": "format",
    "idx": "index", "impl": "implementation", "len": "length", "lib": "library", "mem": "memory", "num": "number",
    "obj": "object", "pkg": "package", "prev": "previous", "proc": "process", "proto": "protocol", "ptr": "pointer",
    "ref": "reference", "repl": "replication", "sched": "schedule", "sess": "session", "sig": "signal",
    "str": "string", "sync": "synchronize", "tmp": "temporary", "tx": "transaction", "util": "utility",
    "val": "value", "var": "variable", "pubsub": "publish", "evict": "eviction", "expire": "expiration",
    "url": "url", "urls": "url", "serde": "serialize",
    "written": "write", "wrote": "write", "sent": "send", "kept": "keep", "built": "build", "chosen": "choose",
    "chose": "choose", "held": "hold", "ran": "run", "found": "find", "made": "make", "drawn": "draw", "drew": "draw",
    "thrown": "throw", "threw": "throw", "caught": "catch", "bound": "bind", "taken": "take", "given": "give",
    "children": "child", "indices": "index", "indexes": "index", "exception": "error", "fails": "error",
    "failure": "error", "failed": "error",
    "cert": "certificate", "certs": "certificate", "addr": "address", "attr": "attribute", "attrs": "attribute",
    "buf": "buffer", "cb": "callback", "dest": "destination", "dst": "destination", "src": "source",
    "elem": "element", "expr": "expression", "hdr": "header", "mgr": "manager", "opt": "option", "opts": "option",
    "perm": "permission", "perms": "permission", "pos": "position", "pwd": "password", "repo": "repository",
    "repos": "repository", "stmt": "statement", "tbl": "table", "txn": "transaction", "dep": "dependency",
    "deps": "dependency", "decl": "declaration", "recv": "receive", "app": "application", "apps": "application",
    "shown": "show", "broken": "break", "frozen": "freeze", "begun": "begin", "began": "begin", "lost": "lose",
}  # fmt: skip
_KIN: Mapping[str, int] = {
    word: group
    for group, words in enumerate(
        ("limit limits limited max maximum maximal cap ceiling quota", "minimum min minimal", "folder directory")
    )
    for word in words.split()
}
"""Nouns that stand for each other in questions and names, by group."""
_SUFFIXES = (
    "izations", "ization", "ations", "ation", "ements", "ement", "ments", "ment", "ities", "ity", "ings", "ing",
    "ions", "ion", "ives", "ive", "ers", "er", "ors", "or", "ied", "ies", "ed", "es", "al", "s", "y", "e",
)  # fmt: skip


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """A crude root: abbreviation spelled out, then one common English ending removed if four letters stay."""
    word = _ABBREVIATIONS.get(word, word)
    for suffix in _SUFFIXES:
        if len(word) - len(suffix) >= 4 and word.endswith(suffix):
            word = word[: -len(suffix)]
            break
    return word[:-1] if len(word) > 4 and word[-1] == word[-2] else word


@lru_cache(maxsize=262144)
def term_match(term: str, word: str) -> float:
    """How surely a word of code means one of the question: 1 same, 0.85 same root or kin, 0.6 one begins the other."""
    if term == word:
        return 1.0
    first, second = stem(term), stem(word)
    if first == second:
        return 0.75 if len(word) < len(_ABBREVIATIONS.get(word, "")) else 0.85  # an abbreviation may mean another
    short, long = sorted((first, second), key=len)
    if len(short) >= 4 and long.startswith(short) and len(long) - len(short) <= 4:
        return 0.6
    kin = _KIN.get(term)
    return 0.85 if kin is not None and kin == _KIN.get(word) else 0.0


@lru_cache(maxsize=65536)
def name_words(name: str) -> tuple[str, ...]:
    return tuple(subwords(name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Matches:
    """Best match per term, by where it was found, before weighting."""

    by_term: Mapping[str, float]
    pairs: int
    """Neighbouring question words that stand together in its own name or in a name that its body uses."""
    named: bool
    """Its own name (or dotted tail) is written in the question."""


class Relevance:
    """Values definitions against one question. Weights are set once by `weigh`, before any `value`."""

    def __init__(self, question: Question) -> None:
        self._question = question
        self._terms = question.terms
        self._weights = {term: 0.3 if term in question.weak_terms else 1.0 for term in question.terms}
        self._identifiers = frozenset(question.identifiers) | frozenset(question.proper)

    @property
    def weights(self) -> Mapping[str, float]:
        return self._weights

    def matches(self, symbol: Symbol, body_names: Iterable[str]) -> Matches:
        own = name_words(symbol.name)
        fields: list[tuple[Sequence[str], float]] = [
            (own, 1.0),
            (name_words(symbol.qualified.rpartition(".")[0]), 0.6),
            (name_words(symbol.doc), 0.5),
            (name_words(symbol.signature), 0.3),
            (name_words(symbol.path.rpartition(".")[0]), 0.35),
        ]
        bodies = [name_words(name) for name in body_names]
        inside = 0.4 if symbol.end - symbol.start < 150 else 0.25  # a long body mentions nearly everything
        by_term: dict[str, float] = {}
        for term in self._terms:
            best = 0.0
            for words, weight in fields:
                if weight > best:
                    best = max(best, weight * max((term_match(term, word) for word in words), default=0.0))
            if best < inside:
                best = max([best, *(inside * term_match(term, word) for words in bodies for word in words)])
            if best:
                by_term[term] = best
        pairs = sum(
            1
            for pair in self._question.pairs
            if adjacent(pair, own)
            or adjacent(pair, name_words(symbol.qualified))
            or any(adjacent(pair, b) for b in bodies)
        )
        return Matches(by_term=by_term, pairs=pairs, named=self.is_named(symbol))

    def own_name(self, symbol: Symbol) -> list[float]:
        """For each term, how well the symbol's own name matches it."""
        own = name_words(symbol.name)
        return [max((term_match(term, word) for word in own), default=0.0) for term in self._question.strong_terms]

    def says(self, name: str) -> bool:
        """Whether a name holds one of the question's words."""
        return any(term_match(term, word) >= 0.6 for term in self._terms for word in name_words(name))

    def asks(self, name: str) -> bool:
        """Whether the question is about this very name."""
        return name.lower() in self._question.strong_terms or name in self._identifiers

    def singles_out(self, symbol: Symbol) -> bool:
        """Whether a word of the question tells this function from others whose name ends alike."""
        own = name_words(symbol.name)[:-1]
        return self.is_named(symbol) or any(
            term_match(term, word) >= 0.85 for term in self._question.strong_terms for word in own
        )

    def is_named(self, symbol: Symbol) -> bool:
        return any(
            symbol.name == name or symbol.qualified == name or symbol.qualified.endswith("." + name)
            for name in self._identifiers
        )

    def weigh(self, pool: Sequence[Matches]) -> None:
        """Rare terms count more: weight 1 for a term few of the pool match, 0.25 for one that all match."""
        if not pool:
            return
        for term in self._terms:
            holding = sum(1 for matches in pool if matches.by_term.get(term, 0.0) >= 0.3)
            rarity = math.log((len(pool) + 1) / (holding + 1)) / math.log(len(pool) + 1)
            base = 0.3 if term in self._question.weak_terms else 1.0
            # What nothing here speaks of must not sink what everything here is about.
            self._weights[term] = base * (0.25 + 0.75 * max(0.0, rarity)) if holding else base * 0.1

    def value(self, matches: Matches) -> float:
        """From 0; about 1 when the name holds every term. Pairs and exact names go beyond."""
        total = sum(self._weights.values()) or 1.0
        value = sum(self._weights[term] * strength for term, strength in matches.by_term.items()) / total
        return value + 0.25 * min(2, matches.pairs) + (0.6 if matches.named else 0.0)

    def coverage(self, matches: Matches) -> float:
        """Share of the question, by weight, that this definition speaks of at all; 1 for what is named."""
        total = sum(self._weights.values()) or 1.0
        held = sum(weight for term, weight in self._weights.items() if matches.by_term.get(term, 0.0) >= 0.3)
        return 1.0 if matches.named else held / total

    def in_text(self, text: str) -> float:
        """The same for free text (a heading, a line of code): share of term weight that occurs, pairs on top."""
        words = name_words(text) if len(text) < 60 else tuple(subwords(text))
        distinct = set(words)
        total = sum(self._weights.values()) or 1.0
        value = sum(
            weight * max((term_match(term, word) for word in distinct), default=0.0)
            for term, weight in self._weights.items()
        )
        pairs = sum(1 for pair in self._question.pairs if adjacent(pair, words))
        named = any(name in text for name in self._question.identifiers)
        return value / total + 0.2 * min(2, pairs) + (0.5 if named else 0.0)


def adjacent(pair: tuple[str, str], words: Sequence[str]) -> bool:
    first, second = pair
    if first + second in words:
        return True
    return any(
        term_match(first, words[at]) >= 0.6 and term_match(second, words[at + 1]) >= 0.6 for at in range(len(words) - 1)
    )
