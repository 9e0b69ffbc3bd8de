"""The part of the call graph that a question needs: grown from seeds, upwards to entry points, downwards to leaves.

Never the whole graph: each step asks the index for one function's callers or callees, breadth is bounded, and what
many call (helpers) is not climbed. Two kinds of edges are not in any index and are added here, marked by `via`:
a class or function that is stored under a name (`self._iterable_class = ModelIterable`, `.proc = getCommand`) and
called through that name, and the method a language calls by itself (`__iter__`, `__call__`) on such a class.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from subagents.codebase.types import CallEdge, CodeIndex, Reference, Symbol
from subagents.static.meaning import Meaning
from subagents.static.relevance import Matches, Relevance, name_words
from subagents.static.roles import path_role
from subagents.static.source import Sources
from subagents.static.values import ends_in, origins
from subagents.static.wordlists import words

FUNCTION_KINDS = frozenset({"function", "method", "constructor", "macro", "property"})
TYPE_KINDS = frozenset({"class", "struct", "interface", "trait", "enum", "type"})

Key = tuple[str, int, str]

MAX_UP = 4
MAX_DOWN = 5
MAX_NODES = 260
MAX_CLIMBED = 150
MOST_CLIMBED = 18
MOST_EXPANDED = 70
MOST_BELOW = 24
MAX_CALLERS = 7
HUB_CALLERS = 25
MIN_CERTAINTY = 0.24
VIA_CERTAINTY = 0.65
"""Of a call through a name: somebody stored this function there, and nothing says that nobody stored another."""
CROWDED_USES = 90
FAVOURED_DEPTH = 3
MOST_FAVOURED = 40
MANY_OF_A_KIND = 4
MOST_ALIKE = 1

_IMPLICIT_METHODS = ("__iter__", "__call__", "__next__", "__aiter__", "__enter__", "run", "call", "invoke")
_CONSTRUCTORS = ("__init__", "constructor", "initialize", "new")
_LAZY_METHODS = ("poll", "poll_next", "__await__", "__iter__", "__aiter__", "__anext__")
_SELF_NAMES = ("self", "this", "cls")
_HELPERS = words(
    """
    log debug info warn warning exception print println printf fprintf sprintf snprintf len str repr int float bool list
    dict set tuple isinstance issubclass hasattr getattr setattr super type id hash assert join split strip copy
    deepcopy
    clone unwrap expect into to_string as_ref as_mut as_str iter map filter collect lock unlock borrow borrow_mut
    serverLog serverAssert serverAssertWithInfo serverPanic redisDebug zmalloc zfree zcalloc zrealloc ztrymalloc sdsfree
    sdslen sdsnew sdsnewlen sdsempty sdscat sdscatlen sdscatprintf sdscatfmt listLength listNodeValue listFirst
    listNext listRewind malloc calloc realloc free memcpy memset memmove strlen strcmp strcasecmp incrRefCount
    decrRefCount assertEqual is_some is_none is_ok is_err ok err some none debugPrint assert1 panic fmt min max abs
    sleep
    now sorted reversed enumerate zip range any all encode decode warnings format errorf Errorf Sprintf
    """
)
"""Never a step of any story."""
_COMMON = words(
    """
    append extend push pop get keys values items insert remove contains from default add open close next run write read
    drop time error fmt update clear start stop send recv call new init main poll wait flush reset copy create delete
    """
)
"""Names that many types share: followed only when the call surely means this definition."""


def key_of(symbol: Symbol) -> Key:
    return (symbol.path, symbol.start, symbol.qualified)


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """A call, or a call through a name (`via`). `path:line` is the calling line."""

    caller: Key
    callee: Key
    path: str
    line: int
    certainty: float
    via: str = ""
    returned: bool = False
    """The caller does not call: it returns `via`, and who waits for that calls."""


@dataclass(slots=True)
class Graph:
    """Grown part of the call graph. Insertion order is deterministic."""

    symbols: dict[Key, Symbol] = field(default_factory=dict)
    out: dict[Key, list[Edge]] = field(default_factory=dict)
    into: dict[Key, list[Edge]] = field(default_factory=dict)
    matches: dict[Key, Matches] = field(default_factory=dict)
    values: dict[Key, float] = field(default_factory=dict)
    hubs: set[Key] = field(default_factory=set)
    dynamic: dict[Key, float] = field(default_factory=dict)
    """Functions that call through a table or a field, with how much that line says about the question."""
    handed: set[Key] = field(default_factory=set)
    """Functions with callers that are also handed on by name: callbacks, entries of tables."""
    subjects: set[Key] = field(default_factory=set)
    """Functions that the question as a whole is about."""
    siblings: set[Key] = field(default_factory=set)
    """Functions that are one of many of a kind (`getCommand`, `setCommand`, ...): examples of what is asked about."""
    fame: dict[Key, float] = field(default_factory=dict)
    """How often the name of a function that nobody in code calls is used at all (by tests, by the language): 0 to 1."""
    cut: int = 0
    """Nodes not looked at because a bound was met."""

    def settle(self) -> None:
        """Of several definitions that one call may mean, keep the surest: each call happens once."""
        for caller, edges in self.out.items():
            best: dict[tuple[int, str], Edge] = {}
            for edge in edges:
                at = (edge.line, self.symbols[edge.callee].name)
                if edge.via:
                    at = (edge.line, f"{edge.via} {edge.callee}")
                if at not in best or self._surer(edge, best[at], caller):
                    best[at] = edge
            kept = set(best.values())
            for edge in edges:
                if edge not in kept:
                    self.into[edge.callee].remove(edge)
            self.out[caller] = [edge for edge in edges if edge in kept]

    def _surer(self, edge: Edge, other: Edge, caller: Key) -> bool:
        mine, theirs = self.symbols[edge.callee], self.symbols[other.callee]
        return _sureness(edge, caller, mine) > _sureness(other, caller, theirs)

    def sure_callers(self, key: Key) -> list[Edge]:
        return [edge for edge in self.into.get(key, ()) if edge.certainty >= 0.65 or edge.via]

    def add_edge(self, edge: Edge) -> None:
        if edge.caller == edge.callee:
            return
        known = self.out.setdefault(edge.caller, [])
        if any(e.callee == edge.callee for e in known):
            return
        known.append(edge)
        self.into.setdefault(edge.callee, []).append(edge)


def _sureness(edge: Edge, caller: Key, callee: Symbol) -> tuple[float, int, bool, Key]:
    """Surest first; of equally sure ones the one with more in it (a base class only raises), then the same file."""
    return (round(edge.certainty, 1), min(40, callee.end - callee.start), edge.callee[0] == caller[0], edge.callee)


Tick = Callable[[], None]
"""Sign of life; raises when the task's time is up."""


class GraphBuilder:
    """Grows one Graph. `tests` keeps test code in; by default it is left out (it calls everything).

    `told` says of simple names what prose makes of them (0 to 1): what people write about is what matters.
    """

    def __init__(
        self,
        index: CodeIndex,
        sources: Sources,
        relevance: Relevance,
        tick: Tick,
        *,
        tests: bool = False,
        meaning: Meaning | None = None,
        told: Callable[[Sequence[str]], Mapping[str, float]] = lambda names: {},
    ) -> None:
        self._index = index
        self._sources = sources
        self.meaning = meaning or Meaning(index, sources)
        self._relevance = relevance
        self._tick = tick
        self._told = told
        self._roles = ("code", "test") if tests else ("code",)
        self._callees: dict[Key, list[Edge]] = {}
        self._fan_in: dict[Key, int] = {}
        self._uses: dict[str, int] = {}
        self._through: dict[str, list[tuple[Symbol, int, str]]] = {}
        self._lazy: dict[str, Symbol | None] = {}
        self._kinds: dict[str, Counter[tuple[str, str]]] = {}
        self.graph = Graph()

    def grow(self, seeds: Sequence[Symbol], subjects: Sequence[Symbol] = ()) -> Graph:
        """Callers of the seeds, then callees of all, then values. Deterministic for equal index and seeds.

        `subjects` are seeds that the question is about as a whole: what only they lead to is part of the answer.
        """
        graph = self.graph
        for seed in seeds:
            self._add(seed)
        self._climb([key_of(seed) for seed in seeds])
        self._descend()
        graph.settle()
        self._relevance.weigh(list(graph.matches.values()))
        told = self._told(list(dict.fromkeys(graph.symbols[key].name for key in graph.matches)))
        for key, matches in graph.matches.items():
            value = self._relevance.value(matches)
            if value > 0.1:
                value += 0.35 * told.get(graph.symbols[key].name, 0.0) + 0.4 * min(1.0, graph.dynamic.get(key, 0.0))
            shared = 1.0 if matches.named else 1 / (1 + 0.06 * max(0, self._fan_in.get(key, 0) - 4))
            graph.values[key] = value * shared * self._plainness(key)
        self._favour([key_of(subject) for subject in subjects])
        self._note_ways_in()
        return graph

    def _plainness(self, key: Key) -> float:
        """Less for what tells little of how something works: one of many of a kind, a made error, a mere accessor."""
        symbol = self.graph.symbols[key]
        owner = symbol.qualified.rpartition(".")[0].rpartition(".")[2]
        made = symbol.name if symbol.kind in TYPE_KINDS else owner if symbol.kind == "constructor" else ""
        if made.endswith(("Exception", "Error")) and not self._relevance.is_named(symbol):
            return 0.15
        accessor = re.match(r"(get|is|has|set)(?=[A-Z_])", symbol.name) is not None
        if accessor and symbol.end - symbol.start <= 4 and not self.graph.out.get(key):
            return 0.4
        return 0.7 if key in self.graph.siblings else 1.0

    def _favour(self, subjects: Sequence[Key]) -> None:
        """Raise what is below the subjects by how much it is theirs alone: no word may name it, few others call it."""
        graph = self.graph
        graph.subjects.update(key for key in subjects if key in graph.matches)
        frontier = sorted(graph.subjects)
        seen = set(frontier)
        for level in range(FAVOURED_DEPTH):
            following = []
            for edge in [e for key in frontier for e in graph.out.get(key, ()) if e.callee not in seen]:
                if edge.callee in seen or edge.callee not in graph.matches or len(seen) > MOST_FAVOURED:
                    continue
                seen.add(edge.callee)
                symbol = graph.symbols[edge.callee]
                if symbol.kind not in FUNCTION_KINDS or (
                    symbol.end - symbol.start < 3 and not graph.out.get(edge.callee)
                ):
                    continue
                callers = max(1, len(self.callers(symbol)))
                graph.values[edge.callee] = graph.values.get(edge.callee, 0.0) + 0.6 * 0.85**level / math.sqrt(callers)
                following.append(edge.callee)
            frontier = following

    def _note_ways_in(self) -> None:
        """Which functions are handed on by name, and how well known those are that no code calls."""
        graph = self.graph
        likely = sorted((k for k, value in graph.values.items() if value >= 0.25), key=lambda k: (-graph.values[k], k))
        for key in likely[:100]:
            symbol = graph.symbols[key]
            if graph.into.get(key) and graph.out.get(key) and "." not in symbol.qualified and self._stored(symbol):
                graph.handed.add(key)
        for key in graph.matches:
            name = graph.symbols[key].name
            entered = not graph.sure_callers(key) or key in graph.handed or name.startswith("__")
            if entered and graph.out.get(key):
                uses = 200 if name.startswith("__") else 5 if name in _COMMON | _HELPERS else self.uses(name)
                graph.fame[key] = min(1.0, math.log10(1 + uses) / 1.96)

    def usable(self, symbol: Symbol, certainty: float) -> bool:
        """Whether to follow a call: into code only, and a helper's name only when it surely means this definition."""
        if path_role(symbol.path) not in self._roles or self._is_helper(symbol.name) or is_declaration(symbol):
            return False
        return certainty >= 0.9 or symbol.name not in _COMMON

    def _is_helper(self, name: str) -> bool:
        """Whether a name is never a step of any story, unless it is what the question asks about."""
        return name in _HELPERS and not self._relevance.asks(name)

    def uses(self, name: str) -> int:
        """How many references in code have this name, up to CROWDED_USES; tests mention everything."""
        if name not in self._uses and self._used_in(name) >= CROWDED_USES // 2:
            self._uses[name] = CROWDED_USES
        if name not in self._uses:
            found = self._index.references(name, limit=CROWDED_USES)
            self._uses[name] = sum(1 for reference in found if path_role(reference.path) in self._roles)
        return self._uses[name]

    def _used_in(self, name: str) -> int:
        """In how many files of code a name is used: known without reading them."""
        from subagents.index.code_index import StoredIndex

        if not isinstance(self._index, StoredIndex):
            return 0
        return sum(1 for path in self._index.posted("reference", name) if path_role(path) in self._roles)

    def usable_name(self, name: str) -> bool:
        """Whether a called name says anything: not a helper that every program calls."""
        return not self._is_helper(name) and len(name) > 2

    def callers(self, symbol: Symbol) -> list[Edge]:
        """Callers in code, surest first, at most one edge a caller; marks hubs.

        A name used all over is not asked for: its callers say nothing, and resolving them takes longest.
        """
        if self.uses(symbol.name) >= CROWDED_USES:
            return self._near_callers(symbol)
        found = self._index.callers(symbol, limit=60, tests="test" in self._roles)
        edges: dict[Key, Edge] = {}
        for call in found:
            caller = call.caller
            if caller.kind not in FUNCTION_KINDS or path_role(caller.path) not in self._roles or self._unseen(call):
                continue
            key = key_of(caller)
            if call.certainty >= MIN_CERTAINTY and key != key_of(symbol) and key not in edges:
                edges[key] = _edge(call)
                self.graph.symbols.setdefault(key, caller)
        self._fan_in[key_of(symbol)] = len(edges)
        if len(edges) > HUB_CALLERS:
            self.graph.hubs.add(key_of(symbol))
        return sorted(edges.values(), key=lambda e: -e.certainty)

    def _near_callers(self, symbol: Symbol) -> list[Edge]:
        """Callers in the same file, read off the references: enough for a name that is used all over."""
        owner = symbol.qualified.rpartition(".")[0]
        edges: dict[Key, Edge] = {}
        for reference in self._index.references_in(symbol.path, 1, max(1, self._index.line_count(symbol.path))):
            if reference.name != symbol.name or reference.kind != "call":
                continue
            caller = self._index.symbol_at(symbol.path, reference.line)
            if caller is None or caller.kind not in FUNCTION_KINDS or key_of(caller) in edges:
                continue
            if reference.receiver in ("self", "this", "cls"):
                certainty = 0.95 if caller.qualified.rpartition(".")[0] == owner else 0.0
            else:
                certainty = 0.0 if owner or reference.receiver else 0.9
            if certainty and key_of(caller) != key_of(symbol):
                self.graph.symbols.setdefault(key_of(caller), caller)
                edges[key_of(caller)] = Edge(
                    caller=key_of(caller),
                    callee=key_of(symbol),
                    path=symbol.path,
                    line=reference.line,
                    certainty=certainty,
                )
        return sorted(edges.values(), key=lambda e: (-e.certainty, e.line))

    def _add(self, symbol: Symbol) -> Key:
        key = key_of(symbol)
        graph = self.graph
        graph.symbols.setdefault(key, symbol)
        if key not in graph.matches:
            end = min(symbol.end, symbol.start + 400)
            names: tuple[str, ...] = ()
            if symbol.kind in FUNCTION_KINDS:
                names = self._sources.identifiers(symbol.path, symbol.start + 1, end)
                called = dynamic_call(symbol, self._sources)
                if called:
                    graph.dynamic[key] = 0.3 + self._relevance.in_text(called)
            graph.matches[key] = self._relevance.matches(symbol, names)
            if self._is_sibling(symbol):
                graph.siblings.add(key)
        return key

    def _is_sibling(self, symbol: Symbol) -> bool:
        """Whether its file has more functions of the same last word and the same parameters, and it is not singled out.

        Such functions stand in one table: each shows what one entry does, none how entries are come to.
        """
        kind = _kind_of(symbol)
        if kind is None:
            return False
        if symbol.path not in self._kinds:
            kinds = (_kind_of(s) for s in self._index.symbols(symbol.path))
            self._kinds[symbol.path] = Counter(k for k in kinds if k is not None)
        if self._kinds[symbol.path][kind] < MANY_OF_A_KIND:
            return False
        return not self._relevance.singles_out(symbol)

    # --- upwards ----------------------------------------------------------------------------------------------

    def _climb(self, frontier: list[Key]) -> None:
        """Level by level. A caller is worth what it says itself and what it leads to, shared among all who lead there.

        So the one way into a telling function is climbed before the many users of a helper.
        """
        worth = {key: self._worth(key) for key in frontier}
        frontier = sorted(frontier, key=lambda k: -worth[k])[:MOST_CLIMBED]
        for _ in range(MAX_UP):
            following: dict[Key, float] = {}
            for key in frontier:
                self._tick()
                symbol = self.graph.symbols[key]
                edges = self.callers(symbol)
                if key in self.graph.hubs:
                    edges = [e for e in edges if e.certainty >= 0.9][:3]
                if not edges:
                    edges = list(self.implicit_callers(symbol))
                alike = 0
                for edge in edges[:MAX_CALLERS]:
                    alike += self._is_sibling(self.graph.symbols[edge.caller])
                    if alike > MOST_ALIKE:
                        continue
                    self._add(self.graph.symbols[edge.caller])
                    self.graph.add_edge(edge)
                    if edge.caller not in worth or edge.caller in following:
                        own = self._worth(edge.caller)
                        worth[edge.caller] = max(worth.get(edge.caller, 0.0), own + 0.8 * worth[key] / len(edges))
                        following[edge.caller] = worth[edge.caller]
                if len(self.graph.matches) > MAX_CLIMBED:
                    self.graph.cut += 1
                    return
            frontier = sorted(following, key=lambda k: -following[k])[:MOST_CLIMBED]

    def _worth(self, key: Key) -> float:
        """Words of the question, and whether it is here that what the question names is called through a table."""
        value = self._relevance.value(self.graph.matches[key])
        return value + (0.6 * min(1.0, self.graph.dynamic.get(key, 0.0)) if value > 0.1 else 0.0)

    def implicit_callers(self, symbol: Symbol) -> Iterator[Edge]:
        """Who calls through a name that this function, or the class it belongs to, was stored under."""
        owner = symbol.qualified.rpartition(".")[0].rpartition(".")[2]
        held = symbol
        if owner and symbol.name in (*_IMPLICIT_METHODS, *_CONSTRUCTORS):
            around = symbol.qualified.rpartition(".")[0]
            held = next((s for s in self._index.symbols(symbol.path) if s.qualified == around), symbol)
        stored = held.name
        if self._is_helper(stored) or len(stored) < 3:
            return
        yield from self._held_callers(symbol)
        yielded = 0
        for reference, row in self._stored(held):
            holder = re.search(rf"([A-Za-z_]\w*)\s*(?:=|:)\s*&?(?:[\w.]+\.)?{re.escape(stored)}\b(?!\s*\()", row)
            if holder is None or holder.group(1) in _HELPERS | _COMMON or len(holder.group(1)) < 4:
                continue
            for user in self._users(holder.group(1)):
                if user.path == reference.path and user.line == reference.line:
                    continue
                caller = self._index.symbol_at(user.path, user.line)
                if caller is None or caller.kind not in FUNCTION_KINDS or key_of(caller) == key_of(symbol):
                    continue
                if not self._same_holder(holder.group(1), reference.path, reference.line, row, caller, user):
                    continue
                self.graph.symbols.setdefault(key_of(caller), caller)
                yield Edge(
                    caller=key_of(caller),
                    callee=key_of(symbol),
                    path=user.path,
                    line=user.line,
                    certainty=VIA_CERTAINTY,
                    via=holder.group(1),
                )
                yielded += 1
                if yielded >= 4:
                    return

    def _held_callers(self, symbol: Symbol) -> Iterator[Edge]:
        """Methods that call a field of their class in which, by way of locals and wrappers, this method ends."""
        owner = self._owner(symbol)
        if owner is None:
            return
        mention = re.compile(rf"\b(?:self|this|cls)(?:\.|->){re.escape(symbol.name)}\b(?!\s*[(=.])")
        fields: dict[str, None] = {}
        for line, row in self._sources.lines(owner.path, owner.start, owner.end):
            if mention.search(row):
                around = self._index.symbol_at(owner.path, line)
                if around is not None and around.kind in FUNCTION_KINDS:
                    fields.update(dict.fromkeys(ends_in(symbol.name, around, line, row, self._sources)))
        for reference in self._index.references_in(owner.path, owner.start, owner.end) if fields else ():
            if reference.name not in fields or reference.kind != "call" or reference.receiver not in _SELF_NAMES:
                continue
            caller = self._index.symbol_at(reference.path, reference.line)
            if caller is None or caller.kind not in FUNCTION_KINDS or is_async(caller) != is_async(symbol):
                continue
            self.graph.symbols.setdefault(key_of(caller), caller)
            yield _via(caller, symbol, reference, reference.name)

    def _kept_in(self, symbol: Symbol, reference: Reference) -> Iterator[Symbol]:
        """The functions that end, by way of locals and wrappers, in the field of its class that a method calls."""
        owner = self._owner(symbol) if reference.receiver in _SELF_NAMES else None
        for holder in (owner, *self._index.bases(owner)) if owner else ():
            stored = re.compile(
                rf"\b(?:self|this|cls)(?:\.|->){re.escape(reference.name)}\s*=(?!=)\s*([A-Za-z_]\w*)\s*;?\s*$"
            )
            for line, row in self._sources.lines(holder.path, holder.start, holder.end):
                put = stored.search(row) if reference.name in row else None
                around = self._index.symbol_at(holder.path, line) if put else None
                if put is None or around is None or around.kind not in FUNCTION_KINDS:
                    continue
                value = put.group(1)
                for name, own in origins(value, around, line, self._sources) or [(value, False)]:
                    target = self._meant(name, own, holder)
                    if target is not None and target.kind in TYPE_KINDS:  # making one of it runs more than its maker
                        target = self._implicit_method(target)
                    if target is not None and is_async(target) == is_async(symbol):
                        yield target

    def _meant(self, name: str, own: bool, owner: Symbol) -> Symbol | None:
        """The function or class a name means inside a class: one of its own, or one of the top level that it knows."""
        wanted = f"{owner.qualified}.{name}" if own else name
        for symbol in self._index.definitions(wanted, limit=4) if len(name) > 3 else ():
            near = symbol.path == owner.path or (not own and self.meaning.reaches(owner.path, symbol))
            if near and symbol.qualified == wanted and symbol.kind in FUNCTION_KINDS | TYPE_KINDS:
                return symbol
        return None

    def _owner(self, symbol: Symbol) -> Symbol | None:
        """The type a method stands in."""
        around = symbol.qualified.rpartition(".")[0]
        return next(
            (
                s
                for s in (self._index.symbols(symbol.path) if around else ())
                if s.qualified == around and s.kind in TYPE_KINDS and s.start <= symbol.start <= s.end
            ),
            None,
        )

    def registrations(self, symbol: Symbol) -> list[tuple[Reference, Symbol | None]]:
        """Lines of code that name this function (or its class) without calling it: who hands it on, and where."""
        return [(ref, self._index.symbol_at(ref.path, ref.line)) for ref, _ in self._stored(symbol)]

    def _stored(self, symbol: Symbol) -> list[tuple[Reference, str]]:
        found = []
        name = symbol.name
        for reference in self._index.references(name, limit=80):
            if reference.kind in ("import", "inherit") or path_role(reference.path) != "code":
                continue
            row = self._sources.line(reference.path, reference.line)
            if not re.search(rf"\b{re.escape(name)}\b(?!\s*\()", row) or row.lstrip().startswith(
                ("#include", "import ", "from ")
            ):
                continue
            if not self.meaning.hands_on(reference, row, symbol):
                continue
            found.append((reference, row))
            if len(found) >= 12:
                break
        return found

    def _users(self, holder: str) -> list[Reference]:
        references = self._index.references(holder, limit=60)
        if len(references) >= 60:
            return []
        found = []
        for reference in references:
            if path_role(reference.path) != "code":
                continue
            if reference.kind == "call" or re.search(
                rf"\b{re.escape(holder)}\b(\[[^\]]*\])?\)?\s*\(", self._sources.line(reference.path, reference.line)
            ):
                found.append(reference)
        return found[:6]

    # --- downwards --------------------------------------------------------------------------------------------

    def _descend(self) -> None:
        seen = set(self.graph.matches)
        frontier = self._most_telling(list(self.graph.matches), MOST_EXPANDED)
        for _ in range(MAX_DOWN):
            following: list[Key] = []
            for key in frontier:
                self._tick()
                symbol = self.graph.symbols[key]
                if symbol.kind not in FUNCTION_KINDS:
                    continue
                for edge in self.callees(symbol):
                    new = edge.callee not in seen
                    name = self.graph.symbols[edge.callee].name
                    if (
                        new
                        and not edge.via
                        and not name.startswith("__")
                        and self.uses(name) >= CROWDED_USES
                        and not self._relevance.says(name)
                    ):
                        continue
                    if new and len(self.graph.matches) >= MAX_NODES:
                        self.graph.cut += 1
                        continue
                    self._add(self.graph.symbols[edge.callee])
                    self.graph.add_edge(edge)
                    if new:
                        seen.add(edge.callee)
                        following.append(edge.callee)
            frontier = self._most_telling(following, MOST_BELOW)

    def _most_telling(self, keys: list[Key], most: int) -> list[Key]:
        """Those worth going on from, best first: work is bounded by what the question is about."""
        return sorted(keys, key=lambda k: -self._relevance.value(self.graph.matches[k]))[:most]

    def callees(self, symbol: Symbol) -> list[Edge]:
        """What the body calls, in line order, resolved as well as possible; one edge a callee, at its first line."""
        key = key_of(symbol)
        if key in self._callees:
            return self._callees[key]
        best: dict[tuple[int, str], list[CallEdge]] = {}
        for call in self._index.callees(symbol, limit=80):
            if self._unseen(call):
                continue
            if self.usable(call.callee, call.certainty) and call.callee.kind in FUNCTION_KINDS | TYPE_KINDS:
                best.setdefault((call.line, call.callee.name), []).append(call)
        edges: dict[Key, Edge] = {}
        for calls in best.values():
            for call in _likeliest(symbol, calls):
                callee = self._concrete(call.callee)
                if call.certainty < MIN_CERTAINTY or key_of(callee) == key or key_of(callee) in edges:
                    continue
                self.graph.symbols.setdefault(key_of(callee), callee)
                edge = _edge(call)
                if callee is not call.callee:
                    edge = replace(edge, callee=key_of(callee), certainty=min(edge.certainty, 0.8))
                edges[key_of(callee)] = edge
        for edge in (*self._through_names(symbol), *self._polled(symbol)):
            edges.setdefault(edge.callee, edge)
        self._callees[key] = sorted(edges.values(), key=lambda e: (e.line, e.callee))
        return self._callees[key]

    def _unseen(self, call: CallEdge) -> bool:
        """Whether the callee stands inside a function that the caller is no part of: its name is not known there."""
        callee, caller = call.callee, call.caller
        owner = callee.qualified.rpartition(".")[0]
        if not owner:
            return False
        around = next(
            (
                s
                for s in self._index.symbols(callee.path)
                if s.qualified == owner and s.start <= callee.start <= s.end and s.kind in FUNCTION_KINDS
            ),
            None,
        )
        return around is not None and not (caller.path == callee.path and around.start <= call.line <= around.end)

    def _concrete(self, symbol: Symbol) -> Symbol:
        """For a method that only promises (abstract, of an interface or trait) the implementation with most in it."""
        owner = symbol.qualified.rpartition(".")[0]
        if not owner or symbol.end - symbol.start > 25:
            return symbol
        around = next(
            (s for s in self._index.symbols(symbol.path) if s.qualified == owner and s.kind in TYPE_KINDS), None
        )
        if around is None or not (around.kind in ("interface", "trait") or self._promises(symbol)):
            return symbol
        found = []
        for derived in self._index.subclasses(around)[:8]:
            for member in self._index.symbols(derived.path):
                if member.name == symbol.name and member.qualified.rpartition(".")[0] == derived.qualified:
                    found.append(member)
        found = [m for m in found if path_role(m.path) in self._roles and not self._promises(m)]
        return max(found, key=lambda m: (min(60, m.end - m.start), m.path, -m.start), default=symbol)

    def _promises(self, symbol: Symbol) -> bool:
        rows = [row.strip() for _, row in self._sources.code(symbol, limit=40)]
        return any("NotImplementedError" in row or "abstractmethod" in row for row in rows) or (
            symbol.end - symbol.start <= 1 and symbol.kind == "method" and bool(rows) and rows[-1].endswith(";")
        )

    def _through_names(self, symbol: Symbol) -> Iterator[Edge]:
        """Calls of a name that is no function, but under which functions or classes of this snapshot were stored."""
        for reference in self._index.references_in(symbol.path, symbol.start, min(symbol.end, symbol.start + 300)):
            name = reference.name
            if reference.kind != "call" or name in _HELPERS | _COMMON or len(name) < 4:
                continue
            for target in self._kept_in(symbol, reference):
                self.graph.symbols.setdefault(key_of(target), target)
                yield _via(symbol, target, reference, name)
            if name not in self._through:
                self._through[name] = list(self._stored_under(name))
            for target, line, path in self._through[name]:
                row = self._sources.line(path, line)
                if not self._same_holder(name, path, line, row, symbol, reference):
                    continue
                self.graph.symbols.setdefault(key_of(target), target)
                yield _via(symbol, target, reference, name)

    def _polled(self, symbol: Symbol) -> Iterator[Edge]:
        """What runs when somebody awaits or iterates over what a function returns: the work of a lazy value."""
        language = self._index.language(symbol.path) if symbol.kind in ("function", "method") else None
        if language not in ("rust", "python"):
            return
        from subagents.index.calls import return_type

        for name in re.findall(r"[A-Z]\w{2,}", return_type(symbol, language)):
            if name not in self._lazy:
                self._lazy[name] = self._lazy_method(name)
            method = self._lazy[name]
            if method is None or key_of(method) == key_of(symbol):
                continue
            rows = self._sources.lines(symbol.path, symbol.start, min(symbol.end, symbol.start + 12))
            line = next((number for number, row in rows if re.search(rf"\b{name}\b", row)), symbol.start)
            self.graph.symbols.setdefault(key_of(method), method)
            yield Edge(
                caller=key_of(symbol),
                callee=key_of(method),
                path=symbol.path,
                line=line,
                certainty=VIA_CERTAINTY,
                via=name,
                returned=True,
            )
            return

    def _lazy_method(self, owner: str) -> Symbol | None:
        """The method of a type that is called by whoever waits for its values."""
        for name in _LAZY_METHODS:
            found = [s for s in self._index.definitions(f"{owner}.{name}", limit=4) if path_role(s.path) in self._roles]
            exact = [s for s in found if s.qualified == f"{owner}.{name}" and s.kind in FUNCTION_KINDS]
            if len(exact) == 1 and not self._promises(exact[0]):
                return exact[0]
        return None

    def _same_holder(self, name: str, path: str, line: int, row: str, caller: Symbol, call: Reference) -> bool:
        """Whether a call of `name` can mean the variable or field that the row stores something in.

        A variable of one function is not seen by another, so a bare name must be of that function or of the file.
        """
        around = self._index.symbol_at(path, line)
        inside = around is not None and around.kind in FUNCTION_KINDS
        if call.receiver or re.search(rf"(\.|->)\s*{re.escape(name)}\b", row):
            bare = re.match(rf"\s*(?:let |var |const |auto |mut )*{re.escape(name)}\s*:?=(?!=)", row) is not None
            return bool(call.receiver) and not (bare and inside)
        return path == caller.path and (not inside or (around is not None and key_of(around) == key_of(caller)))

    def _stored_under(self, name: str) -> Iterator[tuple[Symbol, int, str]]:
        if any(d.kind in FUNCTION_KINDS | TYPE_KINDS for d in self._index.definitions(name, limit=5)):
            return
        references = self._index.references(name, limit=60)
        if len(references) >= 60:
            return
        found = 0
        for reference in references:
            if path_role(reference.path) != "code":
                continue
            row = self._sources.line(reference.path, reference.line)
            stored = re.search(
                rf"\b{re.escape(name)}\s*(?:=|:)\s*&?(?:[\w.]+\.)?([A-Za-z_]\w{{2,}})\b(?!\s*[\(.])", row
            )
            if stored is None:
                continue
            for target in self._index.definitions(stored.group(1), limit=3):
                if not self.meaning.alone(target.name) and not self.meaning.reaches(reference.path, target):
                    continue
                if target.kind in TYPE_KINDS:
                    target = self._implicit_method(target) or target
                if path_role(target.path) == "code" and target.kind in FUNCTION_KINDS | TYPE_KINDS:
                    yield target, reference.line, reference.path
                    found += 1
                    break
            if found >= 3:
                return

    def _implicit_method(self, owner: Symbol) -> Symbol | None:
        inside = [s for s in self._index.symbols(owner.path) if s.qualified.rpartition(".")[0] == owner.qualified]
        by_name = {s.name: s for s in inside}
        return next((by_name[name] for name in _IMPLICIT_METHODS if name in by_name), None)


_DYNAMIC = re.compile(r"(?:\.|->|::|\b(?=[A-Z_]{3}))[A-Za-z_]\w{2,}\s*\[[^\]\n]{1,60}\]\s*\)?\s*\(")
_POINTER = re.compile(r"(?:->|\.)\w*->\w+\(|\w->\w+\(|\(\*\w+\)\s*\(")


_CALLED = re.compile(r"(?<![\w.>:])([a-z_]\w{3,})\(")
_LOCAL = re.compile(r"^\s*(?:let |var |const |mut )*([a-z_][\w]*(?:\s*,\s*[a-z_]\w*)*)\s*(?::?=)(?!=)")


def dynamic_call(symbol: Symbol, sources: Sources) -> str:
    """The first line of a body that calls what stands in a table or behind a function pointer, or an empty text."""
    pointers = symbol.path.endswith((".c", ".h", ".cc", ".cpp"))
    assigned: dict[str, str] = {}
    for _, row in sources.code(symbol, limit=400)[1:]:
        if _DYNAMIC.search(row) or (pointers and _POINTER.search(row)):
            return row.strip()
        for name in _CALLED.findall(row):
            if name in assigned and not pointers:
                return f"{assigned[name]} {row}".strip()
        target = _LOCAL.match(row)
        if target:
            assigned.update(dict.fromkeys(re.findall(r"[A-Za-z_]\w{3,}", target.group(1)), row.strip()))
    return ""


def is_declaration(symbol: Symbol) -> bool:
    """A prototype in a header: says that something exists, not what it does."""
    return symbol.start == symbol.end and symbol.path.endswith((".h", ".hh", ".hpp", ".hxx", ".pyi", ".d.ts"))


def _likeliest(caller: Symbol, calls: Sequence[CallEdge]) -> list[CallEdge]:
    """Of several definitions that one call may mean: the sure one, else the nearest, else the first few."""
    if len(calls) == 1:
        return list(calls)
    sure = [c for c in calls if c.certainty >= 0.9]
    if sure:
        return sure[:1]

    def nearness(call: CallEdge) -> tuple[float, int, str, int]:
        ours, theirs = caller.path.split("/"), call.callee.path.split("/")
        shared = next(
            (n for n, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), min(len(ours), len(theirs))
        )
        return (-call.certainty, -shared, call.callee.path, call.callee.start)

    return sorted(calls, key=nearness)[:2]


def _edge(call: CallEdge) -> Edge:
    return Edge(
        caller=key_of(call.caller), callee=key_of(call.callee), path=call.path, line=call.line, certainty=call.certainty
    )


def _via(caller: Symbol, callee: Symbol, call: Reference, name: str) -> Edge:
    """A call of `callee` by what it is stored under."""
    return Edge(
        caller=key_of(caller),
        callee=key_of(callee),
        path=call.path,
        line=call.line,
        certainty=VIA_CERTAINTY,
        via=name,
    )


def is_async(symbol: Symbol) -> bool:
    """Whether calling it gives something to be awaited."""
    return re.match(r"\s*(?:pub(?:\([^)]*\))?\s+|export\s+|public\s+|static\s+)*async\b", symbol.signature) is not None


def _kind_of(symbol: Symbol) -> tuple[str, str] | None:
    """Last word of the name, and the declaration without the name; for functions at top level with parameters."""
    words = name_words(symbol.name)
    before, _, after = symbol.signature.partition(symbol.name)
    if (
        "." in symbol.qualified
        or symbol.kind != "function"
        or len(words) < 2
        or re.match(r"\s*\(\s*(void)?\s*\)", after)
    ):
        return None
    return words[-1], " ".join(f"{before} {after}".split())


def ordered_by_line(edges: Iterable[Edge]) -> list[Edge]:
    return sorted(edges, key=lambda e: (e.returned, e.line, e.callee))
