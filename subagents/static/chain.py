"""Choosing the chain that answers "how": one root, and of all it reaches the few calls that matter, in calling order.

A chain is a tree cut out of the call graph. Each function is worth its relevance less a price for taking it up, so a
function that no word of the question names is kept exactly when something worth more than the price hangs below it:
this is how the step between two named ones is found. Roots compete by what their trees cover of the question.
"""

from __future__ import annotations

import heapq
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from subagents.codebase.types import Symbol
from subagents.static.callgraph import FUNCTION_KINDS, TYPE_KINDS, Edge, Graph, Key, ordered_by_line
from subagents.static.question import Question
from subagents.static.relevance import Relevance, adjacent, name_words, stem
from subagents.static.roles import aside
from subagents.static.source import Guard, Sources, attributes
from subagents.static.wordlists import words

PRICE = 0.30
"""What a step must be worth, itself or by what hangs below it."""
LOW_PRICE = 0.02
DECAY = 0.85
MAX_STEPS = 13
MAX_CHILDREN = 5
MAX_DEPTH = 6
MAX_FEEDING = 4
MAX_ROOTS = 100
MANY_CALLERS = 5

_DISPATCHED = words(
    "implementation handler handlers view views function functions callback callbacks method methods controller "
    "controllers endpoint endpoints hook hooks listener listeners receiver receivers plugin plugins command commands "
    "action"
)
"""What is called through a table: a chain that arrives there ends in a call through one."""
_CONSTRUCTORS = ("__init__", "constructor", "__new__", "new")
_NAMES = re.compile(r"[A-Za-z_]\w*")
_STORED = re.compile(r"^\s*([A-Za-z_]\w*)(?:\.|->)[\w.>-]+\s*=(?!=)(.*)$")
_ASSIGNED = re.compile(r"^\s*(?:let |var |const |auto |mut )*([\w.*\s,>-]{1,80}?)\s*(?::[^=]{1,60})?(?::=|=)(?!=)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One call of the chain; `edge` is None for the root. Steps are in calling order, callers before callees."""

    symbol: Symbol
    edge: Edge | None
    parent: int
    """Index of the calling step in the chain; -1 for the root."""
    depth: int
    value: float
    guard: Guard | None = None
    feeding: bool = False
    """Taken up because a kept step needs its result, not for its own sake."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    steps: tuple[Step, ...]
    score: float
    covered: tuple[str, ...]

    @property
    def root(self) -> Symbol:
        return self.steps[0].symbol

    def keys(self) -> set[Key]:
        return {_key(s) for s in self.steps}


class ChainFinder:
    """Finds chains in one grown graph."""

    def __init__(
        self, graph: Graph, question: Question, relevance: Relevance, sources: Sources, *, price: float = PRICE
    ) -> None:
        self._graph = graph
        self._question = question
        self._relevance = relevance
        self._sources = sources
        self._price = price
        self._gains: dict[Key, float] = {}
        self._fed: set[Key] = set()
        self._known_fields: dict[Key, tuple[set[str], set[str]]] = {}
        self._guards: dict[tuple[Key, int], Guard | None] = {}

    def best(self, limit: int = 3) -> list[Chain]:
        """The best chain first; a further one only if it is another story and worth nearly as much."""
        candidates = [self.from_root(root, whole=False) for root in self._roots()]
        candidates = sorted(
            (chain for chain in candidates if len(chain.steps) > 1),
            key=lambda c: (-c.score, c.root.path, c.root.start),
        )
        chosen: list[Chain] = []
        for chain in candidates:
            if len(chosen) >= limit:
                break
            if chosen and chain.score < 0.85 * chosen[0].score:
                break
            if chosen and chain.root.name in ("__init__", "constructor", "__new__"):
                continue
            if not chosen or self._adds(chain, chosen):
                chosen.append(chain)
        return [self.from_root(_key(chain.steps[0])) for chain in chosen]

    def _adds(self, chain: Chain, chosen: Sequence[Chain]) -> bool:
        """Whether a further chain is another story: little shared, and a step as telling as the best of the first."""
        known = set().union(*(other.keys() for other in chosen))
        if len(chain.keys() & known) > 0.3 * len(chain.keys()):
            return False
        best = max(step.value for step in chosen[0].steps)
        return max((s.value for s in chain.steps if _key(s) not in known), default=0.0) >= 0.8 * best

    def _roots(self) -> list[Key]:
        """Nodes nobody calls, and nodes where so many ways meet that climbing further says little; best first."""
        graph = self._graph
        roots = []
        for key in graph.matches:
            callers = graph.sure_callers(key)
            if not graph.out.get(key):
                continue
            if (
                not callers
                or len(callers) > 3
                or key in graph.handed
                or graph.matches[key].named
                or key in graph.subjects
                or graph.symbols[key].name.startswith("__")
            ):
                roots.append(key)
        return sorted(roots, key=lambda k: (-self._gain(k), k))[:MAX_ROOTS]

    def _gain(self, key: Key) -> float:
        """What taking up this function and the best below it is worth. Depth-limited, so cycles do no harm."""
        if not self._gains:
            graph = self._graph
            own = {
                k: value - self._price - (0.15 if graph.symbols[k].kind in TYPE_KINDS else 0.0)
                for k, value in graph.values.items()
            }
            gains = dict(own)
            for _ in range(MAX_DEPTH):
                gains = {
                    k: worth
                    + DECAY
                    * sum(
                        sorted(
                            (
                                max(0.0, e.certainty * gains[e.callee])
                                for e in graph.out.get(k, [])
                                if e.callee in gains
                            ),
                            reverse=True,
                        )[:MAX_CHILDREN]
                    )
                    for k, worth in own.items()
                }
            self._gains = gains
        return self._gains.get(key, 0.0)

    def from_root(self, root: Key, *, whole: bool = True) -> Chain:
        """The tree under one root, best parts first until the chain is full, then put into calling order."""
        graph = self._graph
        parents: dict[Key, Edge | None] = {}
        depths: dict[Key, int] = {root: 0}
        children: dict[Key, list[Edge]] = {}
        heap: list[tuple[float, int, Key, Edge | None]] = [(0.0, 0, root, None)]
        pushed = 0
        while heap and len(parents) < MAX_STEPS:
            _, _, key, edge = heapq.heappop(heap)
            if key in parents or (edge is not None and len(children.get(edge.caller, [])) >= MAX_CHILDREN):
                continue
            if edge is not None:
                guard = self.guard(edge)
                if guard is not None and guard.kind in ("handler", "cleanup"):
                    continue
                depths[key] = depths[edge.caller] + 1
                children.setdefault(edge.caller, []).append(edge)
            parents[key] = edge
            if depths[key] >= MAX_DEPTH:
                continue
            for following in graph.out.get(key, []):
                if following.callee in parents or following.callee not in graph.values:
                    continue
                gain = following.certainty * self._gain(following.callee)
                if graph.symbols[following.callee].name in _CONSTRUCTORS:
                    gain -= 0.25
                if gain > 0.05:
                    pushed += 1
                    heapq.heappush(heap, (-gain * DECAY ** depths[key], pushed, following.callee, following))
        root = self._trimmed(root, children)
        self._fed = set()
        if whole:
            self._feeding(parents, depths, children)
            self._handing(parents, depths, children)
        steps = tuple(self._in_order(root, children))
        return Chain(steps=steps, score=self._score(steps), covered=self._covered(steps))

    def _trimmed(self, root: Key, children: dict[Key, list[Edge]]) -> Key:
        """Without wrappers at the top that say nothing about the question; what the language calls itself stays."""
        graph = self._graph
        while True:
            below = children.get(root, [])
            said = graph.values.get(root, 0.0)
            crowd = len(graph.into.get(below[0].callee, ())) if len(below) == 1 else 0
            telling = 0.2 if crowd < MANY_CALLERS else 0.35  # one of many who begin here is no part of the story
            if len(below) != 1 or said >= telling or graph.matches[root].named or root in graph.subjects:
                return root
            dunder = [graph.symbols[key].name.startswith("__") for key in (root, below[0].callee)]
            if dunder[0] and not dunder[1]:
                return root
            if below[0].callee not in children or below[0].certainty < 0.6:
                return root
            del children[root]
            root = below[0].callee

    def _feeding(
        self, parents: dict[Key, Edge | None], depths: dict[Key, int], children: dict[Key, list[Edge]]
    ) -> None:
        """Take up calls whose result a kept call needs: its receiver, an argument, or the condition around it.

        No word of the question may name such a call, yet it decides what follows (`value := root.getValue(path)`).
        """
        added = 0
        for caller in list(children):
            symbol = self._graph.symbols[caller]
            needed: set[str] = set()
            for edge in children[caller]:
                guard = self.guard(edge)
                sides = self._sources.line(edge.path, edge.line).partition("=")
                needed.update(_NAMES.findall(sides[2] or sides[0]))
                needed.update(_NAMES.findall(guard.text if guard else ""))
            last = max(edge.line for edge in children[caller])
            for line, row in self._sources.code(symbol, limit=400)[1:]:
                stored = _STORED.match(row)
                if stored and line < last and stored.group(1) in needed:
                    needed.update(_NAMES.findall(stored.group(2)))
            taken = 0
            for edge in self._graph.out.get(caller, []):
                if (
                    edge.callee in parents
                    or edge.line >= last
                    or edge.certainty < 0.6
                    or edge.callee not in self._graph.values
                ):
                    continue
                if (
                    self._graph.symbols[edge.callee].kind in TYPE_KINDS
                    or self._graph.symbols[edge.callee].name in _CONSTRUCTORS
                ):
                    continue
                assigned = _ASSIGNED.match(self._sources.line(edge.path, edge.line))
                if assigned is None or edge.path != symbol.path:
                    continue
                names = set(_NAMES.findall(assigned.group(1))) - {"self", "this", "err", "ok", "_"}
                guard = self.guard(edge)
                if not names & needed or guard is not None:
                    continue
                parents[edge.callee] = edge
                depths[edge.callee] = depths[caller] + 1
                children[caller].append(edge)
                self._fed.add(edge.callee)
                added += 1
                taken += 1
                if taken >= 2 or added >= MAX_FEEDING:
                    break
            if added >= MAX_FEEDING:
                return

    def _handing(
        self, parents: dict[Key, Edge | None], depths: dict[Key, int], children: dict[Key, list[Edge]]
    ) -> None:
        """Take up calls that store what a kept step reads: the hand-over no call shows (a match kept on a request)."""
        reads: set[str] = set()
        writes: set[str] = set()
        for key in parents:
            symbol = self._graph.symbols[key]
            if symbol.kind in FUNCTION_KINDS:
                read, written = self._fields(symbol)
                reads |= read
                writes |= written
        wanted = {name for name in reads - writes if "_" in name.strip("_") or re.search(r"[a-z][A-Z]", name)}
        added = 0
        for key in list(parents):
            for edge in self._graph.out.get(key, []):
                if added >= MAX_FEEDING or not wanted or not self._may_hand(edge, parents, depths):
                    continue
                path = self._writer(edge, wanted, parents)
                for step in path:
                    parents[step.callee] = step
                    depths[step.callee] = depths[step.caller] + 1
                    children.setdefault(step.caller, []).append(step)
                    self._fed.add(step.callee)
                if path:
                    added += 1
                    wanted -= self._fields(self._graph.symbols[path[-1].callee])[1]

    def _may_hand(self, edge: Edge, parents: Mapping[Key, Edge | None], depths: Mapping[Key, int]) -> bool:
        symbol = self._graph.symbols[edge.callee]
        if edge.callee in parents or edge.certainty < 0.9 or symbol.kind not in FUNCTION_KINDS:
            return False
        guard = self.guard(edge)
        usual = guard is None or guard.kind not in ("handler", "cleanup")
        return usual and symbol.name not in _CONSTRUCTORS and depths[edge.caller] < MAX_DEPTH - 1

    def _writer(self, edge: Edge, wanted: set[str], parents: Mapping[Key, Edge | None]) -> list[Edge]:
        """The call itself, or it and one below it, if that is where a wanted field is written; else nothing."""
        if self._fields(self._graph.symbols[edge.callee])[1] & wanted:
            return [edge]
        for below in self._graph.out.get(edge.callee, []):
            symbol = self._graph.symbols[below.callee]
            fresh = below.callee not in parents and below.callee != edge.caller and symbol.kind in FUNCTION_KINDS
            if fresh and below.certainty >= 0.9 and self._fields(symbol)[1] & wanted:
                return [edge, below]
        return []

    def _fields(self, symbol: Symbol) -> tuple[set[str], set[str]]:
        """Fields that a body reads, and those it writes."""
        key = (symbol.path, symbol.start, symbol.qualified)
        if key not in self._known_fields:
            read: set[str] = set()
            written: set[str] = set()
            for _, row in self._sources.code(symbol, limit=250)[1:]:
                found = attributes(row)
                read.update(found.read)
                written.update(found.written)
            self._known_fields[key] = (read, written)
        return self._known_fields[key]

    def guard(self, edge: Edge) -> Guard | None:
        """The guard that matters for this call: a handler or clean-up if any, else the innermost condition."""
        at = (edge.caller, edge.line)
        if at not in self._guards:
            guards = self._sources.guards(self._graph.symbols[edge.caller], edge.line)
            special = next((g for g in guards if g.kind in ("handler", "cleanup")), None)
            self._guards[at] = special or next(
                (g for g in guards if g.kind in ("condition", "otherwise", "choice")), None
            )
        return self._guards[at]

    def _in_order(self, root: Key, children: dict[Key, list[Edge]]) -> Iterator[Step]:
        numbers: dict[Key, int] = {}

        def walk(key: Key, edge: Edge | None, depth: int) -> Iterator[Step]:
            numbers[key] = len(numbers)
            yield Step(
                symbol=self._graph.symbols[key],
                edge=edge,
                parent=numbers[edge.caller] if edge else -1,
                depth=depth,
                value=self._graph.values.get(key, 0.0),
                guard=self.guard(edge) if edge else None,
                feeding=key in self._fed,
            )
            for following in ordered_by_line(children.get(key, [])):
                yield from walk(following.callee, following, depth + 1)

        return walk(root, None, 0)

    def _direction(self, steps: Sequence[Step]) -> float:
        """For "how does A become B": whether the chain begins at A and comes to B."""
        source, target = self._question.source_terms, self._question.target_terms
        pairs = [p for p in self._question.pairs if p[0] in source and p[1] in source]
        top = steps[: max(1, min(3, len(steps) - 1))]
        begins = _mean([max((self._match(s, t) for s in top), default=0.0) for t in source])
        if pairs:
            begins = max(
                0.5 * begins, *(1.0 if adjacent(p, name_words(s.symbol.qualified)) else 0.0 for p in pairs for s in top)
            )
        ends = _mean([max((self._match(s, t) for s in steps[1:]), default=0.0) for t in target])
        early = max((self._match(steps[0], t) for t in target if t not in self._question.weak_terms), default=0.0)
        return 1.2 * begins + 0.8 * ends - (0.8 * early if begins < 0.9 or early >= 0.9 else 0.0)

    def _covered(self, steps: Sequence[Step]) -> tuple[str, ...]:
        return tuple(term for term in self._question.terms if any(self._match(step, term) >= 0.4 for step in steps))

    def _match(self, step: Step, term: str) -> float:
        key = _key(step)
        matches = self._graph.matches.get(key)
        return matches.by_term.get(term, 0.0) if matches else 0.0

    def _is_inner(self, symbol: Symbol) -> bool:
        """Whether a function stands inside another one, as decorators' wrappers do: a detail of that one."""
        owner = symbol.qualified.rpartition(".")[0]
        return (
            bool(owner)
            and any(
                s.qualified == owner and s.path == symbol.path and s.kind in FUNCTION_KINDS
                for s in self._graph.symbols.values()
            )
        ) or symbol.name in ("inner", "wrapper", "decorator", "wrapped", "_wrapped", "_view_wrapper")

    def _distinct_worth(self, steps: Sequence[Step]) -> Iterator[float]:
        """Values of the steps; a name made of the same words as earlier ones adds little."""
        seen: list[frozenset[str]] = []
        for step in steps:
            words = _stems(step.symbol.name)
            alike = sum(1 for other in seen if len(words & other) >= 2)
            seen.append(words)
            conditional = 0.9 if step.guard is not None else 1.0
            yield step.value * (step.edge.certainty if step.edge else 1.0) * conditional * 0.6**alike

    def _strays(self, steps: Sequence[Step]) -> bool:
        """Whether the root is called after what was not asked for, and two steps more say it again: another story."""
        own = name_words(steps[0].symbol.name)
        if steps[0].symbol.name.startswith("__") or self._relevance.says(steps[0].symbol.name):
            return False
        below = [name_words(step.symbol.name) for step in steps[1:]]
        return any(sum(word in said for said in below) >= 2 for word in own)

    def _score(self, steps: Sequence[Step]) -> float:
        """Worth of the parts, each further one counting less, plus what the whole covers of the question."""
        worth = sorted(self._distinct_worth(steps), reverse=True)
        total = sum(value * 0.8**n for n, value in enumerate(worth)) - 0.03 * len(steps)
        total -= 0.35 * sum(1 for step in steps[1:] if step.value < 0.08 and not step.feeding)
        total -= 0.15 * max(0.0, math.log2((steps[0].symbol.end - steps[0].symbol.start + 1) / 150))
        weights = self._relevance.weights
        whole = sum(weights.values()) or 1.0
        coverage = sum(
            weight * max((self._match(step, term) for step in steps), default=0.0) for term, weight in weights.items()
        )
        score = total + 2.0 * coverage / whole
        if self._question.source_terms and self._question.target_terms:
            score += self._direction(steps)
        root = (steps[0].symbol.path, steps[0].symbol.start, steps[0].symbol.qualified)
        if root in self._graph.siblings:
            score -= 1.0
        elif not self._graph.sure_callers(root) or root in self._graph.handed or steps[0].symbol.name.startswith("__"):
            score += 0.25 + (0.8 if root in self._graph.handed and self._question.target_terms else 0.0)
        if aside(steps[0].symbol.path) and not self._relevance.says(steps[0].symbol.path):
            score -= 1.2
        score += 0.5 * self._graph.fame.get(root, 0.0) - (0.6 if self._is_inner(steps[0].symbol) else 0.0)
        called = max(
            (self._graph.dynamic.get(_key(s), 0.0) for s in steps),
            default=0.0,
        )
        dispatch = any(term in _DISPATCHED for term in self._question.target_terms)
        score += (3.0 if dispatch else 1.0) * min(1.0, called) if self._question.target_terms else 0.0
        if self._graph.matches[root].named:
            score += 0.8
        elif self._strays(steps):
            score -= 0.4
        leaves = (key for key in map(_key, steps) if not self._graph.out.get(key))
        if root in self._graph.subjects or any(key in self._graph.subjects for key in leaves):
            score += 1.2  # what calls nothing can be no root: a way to it is the story
        return score


def _stems(name: str) -> frozenset[str]:
    return frozenset(stem(word) for word in name_words(name))


def _key(step: Step) -> Key:
    return (step.symbol.path, step.symbol.start, step.symbol.qualified)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
