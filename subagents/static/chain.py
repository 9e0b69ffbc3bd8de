"""Choosing the chain that answers "how": one root, and of all it reaches the few calls that matter, in calling order.

A chain is a tree cut out of the call graph. Each function is worth its relevance less a price for taking it up, so a
function that no word of the question names is kept exactly when something worth more than the price hangs below it:
this is how the step between two named ones is found. Roots compete by what their trees cover of the question.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from subagents.codebase.types import Symbol
from subagents.static.callgraph import TYPE_KINDS, Edge, Graph, Key, ordered_by_line
from subagents.static.question import Question
from subagents.static.relevance import Relevance
from subagents.static.source import Guard, Sources

PRICE = 0.30
DECAY = 0.85
MAX_STEPS = 13
MAX_CHILDREN = 5
MAX_DEPTH = 6
MAX_FEEDING = 4

_CONSTRUCTORS = ("__init__", "constructor", "__new__", "new")
_NAMES = re.compile(r"[A-Za-z_]\w*")
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    steps: tuple[Step, ...]
    score: float
    covered: tuple[str, ...]

    @property
    def root(self) -> Symbol:
        return self.steps[0].symbol

    def keys(self) -> set[Key]:
        return {(s.symbol.path, s.symbol.start, s.symbol.qualified) for s in self.steps}


class ChainFinder:
    """Finds chains in one grown graph."""

    def __init__(self, graph: Graph, question: Question, relevance: Relevance, sources: Sources) -> None:
        self._graph = graph
        self._question = question
        self._relevance = relevance
        self._sources = sources
        self._gains: dict[Key, float] = {}
        self._guards: dict[tuple[Key, int], Guard | None] = {}

    def best(self, limit: int = 3) -> list[Chain]:
        """The best chain first; further ones only if they share little with those before and are worth nearly as much."""
        candidates = [self.from_root(root) for root in self._roots()]
        candidates = sorted(
            (chain for chain in candidates if len(chain.steps) > 1),
            key=lambda c: (-c.score, c.root.path, c.root.start),
        )
        chosen: list[Chain] = []
        for chain in candidates:
            if len(chosen) >= limit:
                break
            if chosen and chain.score < 0.75 * chosen[0].score:
                break
            if chosen and chain.root.name in ("__init__", "constructor", "__new__"):
                continue
            if all(len(chain.keys() & other.keys()) <= 0.3 * len(chain.keys()) for other in chosen):
                chosen.append(chain)
        return chosen

    def _roots(self) -> list[Key]:
        """Nodes nobody calls, and nodes where so many ways meet that climbing further says little; best first."""
        graph = self._graph
        roots = []
        for key in graph.matches:
            callers = graph.into.get(key, [])
            if not graph.out.get(key):
                continue
            if not callers or len(callers) > 3 or graph.matches[key].named or graph.symbols[key].name.startswith("__"):
                roots.append(key)
        return sorted(roots, key=lambda k: (-self._gain(k), k))[:40]

    def _gain(self, key: Key) -> float:
        """What taking up this function and the best below it is worth. Depth-limited, so cycles do no harm."""
        if not self._gains:
            graph = self._graph
            own = {
                k: value - PRICE - (0.15 if graph.symbols[k].kind in TYPE_KINDS else 0.0)
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

    def from_root(self, root: Key) -> Chain:
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
        self._feeding(parents, depths, children)
        steps = tuple(self._in_order(root, children))
        return Chain(steps=steps, score=self._score(steps), covered=self._covered(steps))

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
                row = self._sources.line(edge.path, edge.line).partition("=")
                needed.update(_NAMES.findall(row[2] or row[0]))
                needed.update(_NAMES.findall(guard.text if guard else ""))
            last = max(edge.line for edge in children[caller])
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
                if not names & needed or (guard is not None and guard.kind in ("handler", "cleanup")):
                    continue
                parents[edge.callee] = edge
                depths[edge.callee] = depths[caller] + 1
                children[caller].append(edge)
                added += 1
                taken += 1
                if taken >= 2 or added >= MAX_FEEDING:
                    break
            if added >= MAX_FEEDING:
                return

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
            )
            for following in ordered_by_line(children.get(key, [])):
                yield from walk(following.callee, following, depth + 1)

        return walk(root, None, 0)

    def _covered(self, steps: Sequence[Step]) -> tuple[str, ...]:
        return tuple(term for term in self._question.terms if any(self._match(step, term) >= 0.4 for step in steps))

    def _match(self, step: Step, term: str) -> float:
        key = (step.symbol.path, step.symbol.start, step.symbol.qualified)
        matches = self._graph.matches.get(key)
        return matches.by_term.get(term, 0.0) if matches else 0.0

    def _score(self, steps: Sequence[Step]) -> float:
        """Worth of the parts, each further one counting less, plus what the whole covers of the question."""
        worth = sorted((step.value * (step.edge.certainty if step.edge else 1.0) for step in steps), reverse=True)
        total = sum(value * 0.8**n for n, value in enumerate(worth)) - 0.03 * len(steps)
        weights = self._relevance.weights
        whole = sum(weights.values()) or 1.0
        coverage = sum(
            weight * max((self._match(step, term) for step in steps), default=0.0) for term, weight in weights.items()
        )
        score = total + 2.0 * coverage / whole
        if self._question.source_terms and self._question.target_terms:
            top = max(1, min(3, len(steps) - 1))
            source = _mean(
                [max((self._match(s, t) for s in steps[:top]), default=0.0) for t in self._question.source_terms]
            )
            target = _mean(
                [max((self._match(s, t) for s in steps[1:]), default=0.0) for t in self._question.target_terms]
            )
            score += 0.8 * source + 0.8 * target
        root = (steps[0].symbol.path, steps[0].symbol.start, steps[0].symbol.qualified)
        if not self._graph.into.get(root):
            score += 0.25
        score += 0.35 * self._graph.fame.get(root, 0.0)
        called = max(
            (self._graph.dynamic.get((s.symbol.path, s.symbol.start, s.symbol.qualified), 0.0) for s in steps),
            default=0.0,
        )
        score += 0.5 * min(1.2, called) if self._question.target_terms else 0.0
        if self._graph.matches[root].named:
            score += 0.8
        return score


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
