"""Who calls whom: names at call sites resolved to definitions, as well as names, imports and declared types allow.

A ladder, tried from the top; the first rung that holds decides:

1. `self`, `this` and the like: the enclosing class, then its bases in order.
2. What the name before the dot means here: an imported module or class, a class of this file, or a variable whose type
   is told by an annotation, a constructor or the return type of a known function.
3. A bare name: nested in the same definition, the same class (languages with implicit `this`), the same file, imported,
   from the same package.
4. The name alone, when few definitions in the snapshot carry it; then certainty is shared among them. Ubiquitous names
   (`get`, `run`, `close`) resolve this way only when a single definition exists.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from subagents.codebase.textfile import is_test_path
from subagents.codebase.types import CallEdge, Symbol
from subagents.index.receivers import Receivers
from subagents.index.rows import BY_ALIAS, BY_CALL, BY_TYPE, CALL, INHERIT, is_declaration

if TYPE_CHECKING:
    from subagents.index.code_index import FileView, StoredIndex

CLASSES: Final = frozenset({"class", "interface", "struct", "enum", "trait", "type"})
CALLABLES: Final = frozenset({"function", "method", "constructor", "property", "macro"})
_BODIES: Final = CALLABLES | CLASSES | {"module", "namespace"}
_SELF: Final = frozenset({"self", "this", "cls", "Self", "static", "super()", "super", "base", "parent"})
_UP: Final = frozenset({"super()", "super", "base", "parent"})
_IMPLICIT_THIS: Final = frozenset({"java", "kotlin", "c_sharp", "cpp", "swift", "scala", "ruby"})
_OPEN_TYPES: Final = frozenset({"go", "rust", "c", "cpp", "swift", "kotlin", "c_sharp", "ruby", "scala"})
"""Languages whose types have members in more places than one."""
_BY_FOLDER: Final = frozenset({"go", "c", "bash", "swift"})
_BY_PACKAGE: Final = frozenset({"java", "kotlin", "scala", "c_sharp", "php"})
_FAMILY: Final = {
    "tsx": "js", "typescript": "js", "javascript": "js", "c": "c", "cpp": "c", "java": "jvm", "kotlin": "jvm",
    "scala": "jvm",
}  # fmt: skip
_UBIQUITOUS: Final = frozenset({
    "get", "set", "add", "run", "close", "open", "read", "write", "send", "start", "stop", "init", "new", "next",
    "call", "apply", "update", "delete", "remove", "create", "list", "map", "filter", "find", "push", "pop",
    "append", "insert", "join", "split", "format", "print", "log", "error", "warn", "info", "debug", "test", "main",
    "name", "type", "value", "values", "items", "keys", "key", "copy", "clear", "reset", "load", "save", "parse",
    "build", "handle", "process", "execute", "put", "post", "len", "size", "length", "count", "index", "contains",
    "has", "is_empty", "isEmpty", "equals", "hashCode", "toString", "to_string", "clone", "default", "from", "into",
    "unwrap", "then", "catch", "emit", "on", "off", "bind", "each", "sort", "reverse", "match", "replace", "strip",
    "trim", "lower", "upper", "encode", "decode", "extend", "exit", "wait", "lock", "unlock", "free", "destroy",
    "done", "setup", "teardown", "setUp", "tearDown", "__init__", "String", "Error",
})  # fmt: skip
_WRAPPERS: Final = frozenset({
    "Optional", "Union", "Type", "type", "Annotated", "ClassVar", "Final", "Arc", "Rc", "Box", "Ref", "RefCell",
    "Mutex", "RwLock", "Cell", "Option", "Result", "Pin", "Cow", "Vec", "List", "list", "Promise", "Awaitable",
    "Coroutine", "Future", "Observable", "Readonly", "Partial", "Nullable", "None", "null", "undefined", "const",
    "mut", "dyn", "impl", "ref", "unique_ptr", "shared_ptr", "weak_ptr", "std", "t", "typing", "self", "Self",
    "chan", "struct", "static", "public", "private", "protected", "final", "async", "def", "func", "fn", "fun",
    "function", "export", "default", "readonly", "virtual", "override", "inline", "abstract",
})  # fmt: skip
_WORD: Final = re.compile(r"[A-Za-z_][\w.]*")
_MOST_CANDIDATES: Final = 6
_MOST_WEIGHED: Final = 20
_MOST_SITES: Final = 4_000
_DEEPEST: Final = 6


@dataclass(frozen=True, slots=True)
class Module:
    """A file, where a name stands for it as a whole."""

    path: str


Entity = Symbol | Module


class CallResolver:
    """Resolution over one index. Keeps nothing but what the index keeps; safe from several threads."""

    def __init__(self, index: StoredIndex) -> None:
        self.index = index
        self._bases: dict[tuple[str, str, int], tuple[Symbol, ...]] = {}
        self._asked = threading.local()
        self._places: dict[str, tuple[str, str]] = {}
        self._receivers = Receivers(self)

    # --- public ---

    def callees(self, symbol: Symbol, limit: int) -> list[CallEdge]:
        view = self.index.view(symbol.path)
        if view is None:
            return []
        edges: dict[tuple[str, str, int], CallEdge] = {}
        for line, name, receiver, kind in view.reference_rows:
            if kind != CALL or not symbol.start <= line <= symbol.end:
                continue
            inner = enclosing(view, line) or symbol
            for callee, certainty in self.resolve(view, inner, line, name, receiver):
                if callee == symbol and is_type(symbol):
                    continue
                key = (callee.path, callee.qualified, callee.start)
                known = edges.get(key)
                if known is None or known.certainty < certainty:
                    edges[key] = CallEdge(
                        caller=symbol,
                        callee=callee,
                        path=symbol.path,
                        line=known.line if known else line,
                        certainty=certainty,
                    )
        ordered = sorted(edges.values(), key=lambda edge: (edge.line, -edge.certainty))
        if len(ordered) > limit:
            kept = sorted(ordered, key=lambda edge: -edge.certainty)[:limit]
            ordered = sorted(kept, key=lambda edge: (edge.line, -edge.certainty))
        return ordered

    def callers(self, symbol: Symbol, limit: int, *, tests: bool = True) -> list[CallEdge]:
        accepted = {identity(symbol): 1.0}
        names = {symbol.name}
        owner = self.owner(symbol)
        if symbol.kind == "constructor" and owner is not None:
            names.add(owner.name)
            accepted[identity(owner)] = 1.0
        elif is_type(symbol):
            accepted.update((identity(made), 1.0) for made in self.constructors(symbol))
        elif owner is not None:
            for above in self.lineage(owner)[1:]:
                overridden = self.own_member(above, symbol.name)
                if overridden is not None:
                    accepted[identity(overridden)] = 0.5
        edges: list[CallEdge] = []
        sites = 0
        for path in self.likely_first(symbol, names):
            view = self.index.view(path) if tests or not is_test_path(path) else None
            if view is None:
                continue
            aliases = {
                alias for found in view.imports for name, alias in found.names if name in names and alias != name
            }
            seen: set[tuple[str, int]] = set()
            for line, name, receiver, kind in view.reference_rows:
                if kind != CALL or (name not in names and name not in aliases):
                    continue
                sites += 1
                caller = enclosing(view, line) or module_symbol(view, self.index.line_count(path))
                if (caller.qualified, caller.start) in seen:
                    continue
                for callee, certainty in self.resolve(view, caller, line, name, receiver):
                    share = accepted.get(identity(callee))
                    if share is not None:
                        seen.add((caller.qualified, caller.start))
                        edges.append(
                            CallEdge(
                                caller=caller,
                                callee=symbol,
                                path=path,
                                line=line,
                                certainty=round(certainty * share, 3),
                            )
                        )
                        break
            if sites > _MOST_SITES or sum(edge.certainty >= 0.8 for edge in edges) >= limit:
                break
        edges.sort(key=lambda edge: (-edge.certainty, is_test_path(edge.path), edge.path, edge.line))
        return edges[:limit]

    def likely_first(self, symbol: Symbol, names: set[str]) -> list[str]:
        """Files that use one of the names: its own, then those that import it, then the rest, tests last."""
        paths = {path for name in names for path in self.index.posted("reference", name)}
        importing = {edge.source for edge in self.index.importers(symbol.path)} if len(paths) > 20 else set()
        here = folder(symbol.path)
        return sorted(
            paths,
            key=lambda path: (
                path != symbol.path,
                is_test_path(path),
                path not in importing,
                folder(path) != here,
                path,
            ),
        )

    def bases(self, symbol: Symbol) -> Sequence[Symbol]:
        """Direct bases, in the order written."""
        key = identity(symbol)
        known = self._bases.get(key)
        if known is None:
            asked: set[tuple[str, str, int]] = self._asked.__dict__.setdefault("bases", set())
            if key in asked:  # finding a base may need the members of the class itself
                return ()
            asked.add(key)
            try:
                known = tuple(self._find_bases(symbol))
            finally:
                asked.discard(key)
            if not asked:  # what was found while another answer was pending may be too little
                self._bases[key] = known
        return known

    def subclasses(self, symbol: Symbol) -> Sequence[Symbol]:
        """Direct ones, of the snapshot, tests last."""
        found: dict[tuple[str, str, int], Symbol] = {}
        for path in self.index.posted("reference", symbol.name):
            view = self.index.view(path)
            if view is None:
                continue
            written = {symbol.name}
            written.update(alias for one in view.imports for original, alias in one.names if original == symbol.name)
            for line, name, receiver, kind in view.reference_rows:
                if kind != INHERIT or name not in written:
                    continue
                deriving = self.deriving(view, line, receiver)
                if deriving is not None and deriving != symbol and symbol in self.bases(deriving):
                    found[identity(deriving)] = deriving
        return sorted(found.values(), key=lambda one: (is_test_path(one.path), one.path, one.start))

    # --- inheritance ---

    def deriving(self, view: FileView, line: int, receiver: str) -> Symbol | None:
        """The type that a base named at this line belongs to."""
        if view.language in ("rust", "swift", "go") and receiver:
            for found in self.free_name(view, None, 0, receiver):
                if isinstance(found, Symbol) and is_type(found):
                    return found
        holder = view.symbol_at(line)
        while holder is not None and not is_type(holder):
            holder = view.parent(holder)
        return holder

    def _find_bases(self, symbol: Symbol) -> Iterator[Symbol]:
        views = [self.index.view(symbol.path)]
        if views[0] is None:
            return
        seen = {identity(symbol)}
        for view in views:
            assert view is not None
            for line, name, receiver, kind in view.reference_rows:
                if kind != INHERIT:
                    continue
                elsewhere = view.language in ("rust", "swift") and receiver
                if elsewhere and receiver.rpartition(".")[2] != symbol.name:
                    continue
                if not elsewhere:
                    if not symbol.start <= line <= symbol.end:
                        continue
                    holder = view.symbol_at(line)
                    while holder is not None and not is_type(holder):
                        holder = view.parent(holder)
                    if holder != symbol:
                        continue
                dotted = name if elsewhere or not receiver else f"{receiver}.{name}"
                for found in self.types_named(view, dotted, view.parent(symbol)):
                    if identity(found) not in seen:
                        seen.add(identity(found))
                        yield found
                        break

    def types_named(self, view: FileView, dotted: str, near: Symbol | None) -> list[Symbol]:
        found = [
            one
            for one in self.dotted(view, near, near.start if near else 0, dotted)
            if isinstance(one, Symbol) and is_type(one)
        ]
        if not found:
            name = dotted.rpartition(".")[2]
            if view.language in ("python", "javascript", "typescript", "tsx") and self.is_external(view, dotted):
                return []
            found = [one for one in self.same_family(view, name) if is_type(one)]
            if len(found) > 1:
                found = []
        return found

    def is_external(self, view: FileView, dotted: str) -> bool:
        """Whether the name is imported from a module outside the snapshot."""
        head = dotted.partition(".")[0]
        return any(
            not found.targets and (found.local.partition(".")[0] == head or any(a == head for _, a in found.names))
            for found in view.imports
        )

    def lineage(self, symbol: Symbol) -> list[Symbol]:
        """The class, then its bases, depth first as written: as good as most orders for finding names."""
        order: list[Symbol] = []
        work, seen = [symbol], set()
        while work and len(order) < 40:
            one = work.pop(0)
            if identity(one) in seen:
                continue
            seen.add(identity(one))
            order.append(one)
            work[0:0] = self.bases(one)
        return order

    def owner(self, symbol: Symbol) -> Symbol | None:
        """The class a member belongs to."""
        view = self.index.view(symbol.path)
        if view is None:
            return None
        above = view.parent(symbol)
        if above is not None:
            return above if is_type(above) else None
        before = symbol.qualified.rpartition(".")[0]
        return self.type_in_reach(view, before) if before else None

    def type_in_reach(self, view: FileView, qualified: str) -> Symbol | None:
        """A type by its qualified name, in this file, else the nearest (Go, Rust, C++ spread types over files)."""
        own = view.by_qualified.get(qualified)
        if own is not None and is_type(own):
            return own
        found = [one for one in self.index.definitions(qualified) if is_type(one) and self.akin(view, one)]
        return nearest(view.path, found)

    def own_member(self, owner: Symbol, name: str) -> Symbol | None:
        view = self.index.view(owner.path)
        if view is None:
            return None
        found = view.by_qualified.get(f"{owner.qualified}.{name}")
        if found is not None and has_body(found):
            return found
        if view.language in _OPEN_TYPES:
            others = [
                one
                for one in self.index.definitions(f"{owner.name}.{name}")
                if one.qualified.endswith(f"{owner.name}.{name}") and self.akin(view, one)
            ]
            if view.language in _BY_FOLDER:
                others = [one for one in others if folder(one.path) == folder(owner.path)]
            elif view.language in _BY_PACKAGE:
                others = [one for one in others if self.package(one) == view.package]
            best = nearest(owner.path, [one for one in others if has_body(one)] or others)
            return best or found
        return found

    def member(self, owner: Symbol, name: str, *, skip_own: bool = False) -> Symbol | None:
        for one in self.lineage(owner)[1 if skip_own else 0 :]:
            found = self.own_member(one, name)
            if found is not None:
                return found
        return None

    def constructors(self, owner: Symbol) -> list[Symbol]:
        view = self.index.view(owner.path)
        if view is None:
            return []
        return [
            one
            for one in view.symbols
            if one.kind == "constructor" and one.qualified.rpartition(".")[0] == owner.qualified
        ]

    # --- what a call site means ---

    def resolve(
        self, view: FileView, caller: Symbol, line: int, name: str, receiver: str
    ) -> list[tuple[Symbol, float]]:
        if receiver:
            found, certainty = self.through_receiver(view, caller, line, name, receiver)
            if found is not None:
                return [(self.as_called(found), certainty)]
            if found is None and certainty < 0:
                return []
            if receiver in _SELF:
                return self.by_name_alone(view, name, members=True)
            return self.by_name_alone(
                view, name, members=True, but=caller, fits=partial(self._receivers.may_be, view, caller, receiver)
            )
        for entity in self.free_name(view, caller, line, name):
            if isinstance(entity, Symbol):
                if entity.kind in CALLABLES or is_type(entity):
                    return [(self.as_called(entity), 1.0)]
                if entity.kind in ("variable", "constant", "field"):
                    return [(entity, 0.9)] if "=" in entity.signature and entity.kind != "field" else []
        if self.is_external(view, name) or self.is_local(view, caller, line, name):
            return []
        return self.by_name_alone(view, name, members=False)

    def as_called(self, found: Symbol) -> Symbol:
        """Calling a class runs its constructor."""
        if is_type(found):
            made = self.constructors(found)
            return made[0] if made else found
        return found

    def is_local(self, view: FileView, caller: Symbol, line: int, name: str) -> bool:
        """A parameter or local of the caller that is called: what it holds is not known."""
        return (
            any(caller.start <= binding.line <= caller.end and binding.variable == name for binding in view.bindings)
            or re.search(rf"[(,]\s*\*?{re.escape(name)}\s*[,:)=]", caller.signature) is not None
        )

    def through_receiver(
        self, view: FileView, caller: Symbol, line: int, name: str, receiver: str, depth: int = 0
    ) -> tuple[Symbol | None, float]:
        """(definition, certainty); certainty below 0 says that the receiver is known to lie outside the snapshot."""
        if receiver in _SELF:
            owner = self.class_around(view, caller)
            if owner is not None:
                found = self.member(owner, name, skip_own=receiver in _UP)
                if found is not None:
                    return found, 1.0
                if receiver in _UP:
                    return None, -1.0
            elif receiver not in _UP:
                found = self.member_of_unseen(view, caller.qualified.rpartition(".")[0], name)
                if found is not None:
                    return found, 1.0
            if receiver != "super":
                return None, 0.0
        for entity in self.dotted(view, caller, line, f"{receiver}.{name}"):
            if isinstance(entity, Symbol):
                return entity, 1.0
        if name == "new" and view.language == "ruby":
            for entity in self.dotted(view, caller, line, receiver):
                if isinstance(entity, Symbol):
                    return entity, 1.0
        if receiver[:1].isupper() and view.language in _OPEN_TYPES:
            found = self.member_of_unseen(view, receiver, name)
            if found is not None:
                return found, 1.0 if found.path == view.path else 0.9
        owner = self.type_of(view, caller, line, receiver, depth)
        if owner is not None:
            found = self.member(owner, name)
            if found is not None:
                return found, 0.95
            return None, 0.0 if self.bases(owner) == () and owner.kind in ("interface", "trait") else -1.0
        if self.is_external(view, receiver) or self.is_foreign(view, caller, line, receiver, depth):
            return None, -1.0
        return None, 0.0

    def member_of_unseen(self, view: FileView, owner: str, name: str) -> Symbol | None:
        """A member of a type that is declared where no grammar looks (inside a macro), by its qualified name.

        Its members stand in this file, or it is the only type of that name which has such a member.
        """
        if not owner:
            return None
        own = view.by_qualified.get(f"{owner}.{name}")
        if own is not None:
            return own
        found = [
            one
            for one in self.index.definitions(f"{owner}.{name}")
            if one.qualified == f"{owner}.{name}" and self.akin(view, one) and has_body(one)
        ]
        found = [one for one in found if not is_test_path(one.path)] or found
        return found[0] if len(found) == 1 else None

    def is_foreign(self, view: FileView, near: Symbol, line: int, expression: str, depth: int) -> bool:
        """Whether a variable or field is declared with a type that the snapshot does not define."""
        before, _, last = expression.rpartition(".")
        if not before:
            scope: Symbol | None = near
            while scope is not None:
                for one in view.bindings:
                    if one.variable == last and scope.start <= one.line <= scope.end:
                        return one.how == BY_TYPE and self.names_foreign_type(view, scope, one.expression)
                scope = view.parent(scope)
            return False
        owner = self.type_of(view, near, line, before, depth + 1)
        if owner is None:
            return False
        other = self.index.view(owner.path)
        wanted = (last, f"self.{last}", f"this.{last}")
        return other is not None and any(
            one.variable in wanted
            and owner.start <= one.line <= owner.end
            and one.how == BY_TYPE
            and self.names_foreign_type(other, owner, one.expression)
            for one in other.bindings
        )

    def names_foreign_type(self, view: FileView, near: Symbol, text: str) -> bool:
        words = [word for word in _WORD.findall(text) if word not in _WRAPPERS and word not in ("Any", "any", "object")]
        return bool(words) and not any(
            is_type(one) for word in words for one in self.same_family(view, word.rpartition(".")[2])
        )

    def class_around(self, view: FileView, caller: Symbol) -> Symbol | None:
        one: Symbol | None = caller
        while one is not None and not is_type(one):
            above = view.parent(one)
            if above is None:
                return self.owner(one)
            one = above
        return one

    def by_name_alone(
        self,
        view: FileView,
        name: str,
        *,
        members: bool,
        but: Symbol | None = None,
        fits: Callable[[Symbol], bool] = lambda owner: True,
    ) -> list[tuple[Symbol, float]]:
        """`but` is the caller, where it calls this name on something else than itself: not likely to mean itself.

        `fits` says of a type whether the receiver may be of it.
        """
        if len(name) < 3:
            return []
        kinds = CALLABLES if members else CALLABLES | CLASSES
        found = [
            one
            for one in self.same_family(view, name)
            if one.kind in kinds and (one.kind in ("method", "constructor", "property")) >= members
        ]
        if not members and view.language not in _IMPLICIT_THIS:
            found = [one for one in found if one.kind != "method"]
        if not is_test_path(view.path):
            found = [one for one in found if not is_test_path(one.path)]
        bodies = [one for one in found if has_body(one)]
        found = bodies or found
        if len(found) > 1:
            found = [one for one in found if one != but]
        if members and len(found) <= _MOST_WEIGHED:
            found = [one for one in found if (owner := self.owner(one)) is None or fits(owner)]
        if members and 1 < len(found) <= _MOST_WEIGHED and name not in _UBIQUITOUS:
            told = [one for one in found if self.is_told_of(view, one)]
            if len(told) == 1:
                return [(told[0], 0.65)]
        if not found or len(found) > _MOST_CANDIDATES:
            return []
        if name in _UBIQUITOUS:
            found = [one for one in found if folder(one.path) == folder(view.path)]
            return [(self.as_called(found[0]), 0.3)] if len(found) == 1 else []
        if len(found) == 1:
            return [(self.as_called(found[0]), 0.6)]
        near = [one for one in found if one.path == view.path] or found
        share = round(0.5 / len(near), 3)
        return [(self.as_called(one), share) for one in near]

    def is_told_of(self, view: FileView, member: Symbol) -> bool:
        """Whether a file imports the type that a member belongs to by name, as who calls a method mostly does."""
        owner = member.qualified.rpartition(".")[0].rpartition(".")[2]
        return bool(owner) and any(
            owner == alias and any(path == member.path for path, _ in found.targets)
            for found in view.imports
            for _, alias in found.names
        )

    def same_family(self, view: FileView, name: str) -> list[Symbol]:
        """Definitions of exactly this name in languages that could call each other."""
        return [one for one in self.index.definitions(name, 200) if one.name == name and self.akin(view, one)]

    def package(self, symbol: Symbol) -> str:
        return self.place(symbol.path)[1]

    def place(self, path: str) -> tuple[str, str]:
        """Language family and package of a file; asked of every candidate of every name, hence remembered."""
        known = self._places.get(path)
        if known is None:
            view = self.index.view(path)
            language = (view.language or "") if view else ""
            known = self._places[path] = (_FAMILY.get(language, language), view.package if view else "")
        return known

    def akin(self, view: FileView, symbol: Symbol) -> bool:
        family = self.place(symbol.path)[0]
        return bool(family) and view.language is not None and _FAMILY.get(view.language, view.language) == family

    # --- names ---

    def free_name(self, view: FileView, near: Symbol | None, line: int, name: str) -> list[Entity]:
        """What a name without a dot before it means at this place; nothing when it is a local or unknown."""
        scope = near.qualified if near is not None else ""
        python = view.language == "python"
        while scope:
            found = view.by_qualified.get(f"{scope}.{name}")
            if found is not None:
                holder = view.by_qualified.get(scope)
                in_class = holder is not None and is_type(holder)
                if not in_class or not python:
                    return [found]
            scope = scope.rpartition(".")[0]
        if near is not None and view.language in _IMPLICIT_THIS:
            owner = self.class_around(view, near)
            if owner is not None:
                inherited = self.member(owner, name)
                if inherited is not None:
                    return [inherited]
        own = view.by_qualified.get(name)
        if own is not None:
            return [own]
        imported = self.imported(view, name, 0)
        if imported:
            return imported
        if view.language == "ruby":
            return list(self.constant(view, near, name))
        return list(self.from_package(view, name))

    def constant(self, view: FileView, near: Symbol | None, name: str) -> list[Symbol]:
        """A Ruby constant: looked for in the enclosing modules, wherever they are opened, then at the top."""
        if not name[:1].isupper():
            return []
        scope = near.qualified if near is not None else ""
        candidates = self.same_family(view, name)
        while True:
            best = nearest(view.path, [one for one in candidates if one.qualified == f"{scope}.{name}".lstrip(".")])
            if best is not None or not scope:
                return [best] if best is not None else []
            scope = scope.rpartition(".")[0]

    def from_package(self, view: FileView, name: str) -> list[Symbol]:
        """Definitions visible without import because they live in the same package or folder."""
        if view.language in _BY_FOLDER:
            here = folder(view.path)
            found = [
                one
                for one in self.same_family(view, name)
                if folder(one.path) == here and (one.qualified == name or view.language == "c")
            ]
        elif view.language in _BY_PACKAGE:
            found = []
            for one in self.same_family(view, name):
                if one.qualified == name and self.package(one) == view.package:
                    found.append(one)
        else:
            return []
        best = nearest(view.path, [one for one in found if has_body(one)] or found)
        return [best] if best is not None else []

    def imported(self, view: FileView, name: str, depth: int) -> list[Entity]:
        """What an imported name stands for, followed through re-exports."""
        wildcards: list[str] = []
        for found in view.imports:
            for original, alias in found.names:
                if alias == "*":
                    wildcards.extend(path for path, _ in found.targets)
                elif alias == name:
                    for path, taken in found.targets:
                        if not taken or original in taken:
                            exported = self.exported(path, original, alias, depth + 1)
                            if exported:
                                return exported
            if found.local == name and found.targets:
                return [Module(found.targets[0][0])]
        for path in dict.fromkeys(wildcards):
            exported = self.exported(path, name, name, depth + 1)
            if exported:
                return exported
        return []

    def exported(self, path: str, name: str, alias: str, depth: int) -> list[Entity]:
        """What a file offers under a name: a definition, a re-export, or (a submodule) the file itself."""
        view = self.index.view(path)
        if view is None or depth > _DEEPEST:
            return []
        found = view.by_qualified.get(name)
        if found is not None:
            if not has_body(found):
                return [self.body_of(view, found)]
            return [found]
        if name == "default":
            top = [one for one in view.symbols if "." not in one.qualified and one.kind in CALLABLES | CLASSES]
            named = [one for one in top if one.name == alias] or (top if len(top) == 1 else [])
            if named:
                return [named[0]]
            return [Module(path)]
        if view.language in ("go", "c_sharp", "swift"):
            here = folder(path)
            others = [one for one in self.index.definitions(name) if one.qualified == name and folder(one.path) == here]
            if others:
                return [others[0]]
        stem = path.rpartition("/")[2].partition(".")[0]
        if stem in (name, "__init__", "index", "mod") and (
            stem == name or path.rpartition("/")[0].rpartition("/")[2] == name
        ):
            return [Module(path)]
        return self.imported(view, name, depth)

    def body_of(self, view: FileView, declaration: Symbol) -> Symbol:
        """The definition of what a header declares."""
        bodies = [
            one
            for one in self.index.definitions(declaration.qualified)
            if has_body(one) and one.qualified == declaration.qualified and self.akin(view, one)
        ]
        return nearest(view.path, bodies) or declaration

    def dotted(self, view: FileView, near: Symbol | None, line: int, path: str) -> list[Entity]:
        """What `a.b.c` means, when `a` is a module or a type."""
        if "()" in path or "?" in path:
            return []
        parts = path.split(".")
        entities: list[Entity] = []
        used = 1
        for found in view.imports:
            local = found.local
            if "." in local and (path + ".").startswith(local + ".") and found.targets:
                entities, used = [Module(found.targets[0][0])], local.count(".") + 1
        if not entities:
            entities = self.free_name(view, near, line, parts[0])
        for part in parts[used:]:
            after: list[Entity] = []
            for entity in entities:
                if isinstance(entity, Module):
                    after.extend(self.exported(entity.path, part, part, 0))
                elif is_type(entity):
                    member = self.member(entity, part)
                    after.extend([member] if member is not None else [])
                elif entity.kind in ("module", "namespace"):
                    inner = self.index.view(entity.path)
                    child = inner.by_qualified.get(f"{entity.qualified}.{part}") if inner else None
                    after.extend([child] if child is not None else [])
            entities = after
            if not entities:
                return []
        return entities

    # --- types ---

    def type_of(self, view: FileView, near: Symbol, line: int, expression: str, depth: int) -> Symbol | None:
        """The class that the value of `a`, `a.b`, `f()` or `a.f()` belongs to, when it is told somewhere."""
        if depth > _DEEPEST or not expression or expression == "?":
            return None
        if expression in _SELF:
            return self.class_around(view, near)
        if expression.endswith("()"):
            return self.type_of_call(view, near, line, expression[:-2], depth)
        before, _, last = expression.rpartition(".")
        if before:
            owner = self.type_of(view, near, line, before, depth + 1)
            if owner is not None:
                return self.type_of_field(owner, last, depth)
            for entity in self.dotted(view, near, line, expression):
                if isinstance(entity, Symbol):
                    return entity if is_type(entity) else self.type_of_variable_symbol(entity, depth)
            return None
        return self.type_of_name(view, near, line, expression, depth)

    def type_of_call(self, view: FileView, near: Symbol, line: int, callee: str, depth: int) -> Symbol | None:
        before, _, name = callee.rpartition(".")
        found: Symbol | None = None
        if before:
            found, _ = self.through_receiver(view, near, line, name, before, depth + 1)
        else:
            for entity in self.free_name(view, near, line, name):
                if isinstance(entity, Symbol):
                    found = entity
                    break
        if found is None:
            return None
        if is_type(found):
            return found
        if found.kind == "constructor":
            return self.owner(found)
        other = self.index.view(found.path)
        if other is None:
            return None
        return self.type_from_text(other, found, return_type(found, other.language), depth + 1)

    def type_of_name(self, view: FileView, near: Symbol, line: int, name: str, depth: int) -> Symbol | None:
        scope: Symbol | None = near
        while scope is not None:
            binding = None
            for one in view.bindings:
                if one.variable == name and scope.start <= one.line <= scope.end:
                    if binding is not None and one.line > line:
                        break
                    if is_type(scope) and scope is not near and enclosing(view, one.line) != scope:
                        continue
                    binding = one
            if binding is not None:
                return self.bound_type(view, scope, binding.line, binding.expression, binding.how, depth)
            scope = view.parent(scope)
        receiver = re.match(r"func \((\w+) \*?([\w.]+)", near.signature) if view.language == "go" else None
        if receiver and receiver[1] == name:
            return self.type_in_reach(view, receiver[2])
        for one in view.bindings:
            if one.variable == name and enclosing(view, one.line) is None:
                return self.bound_type(view, near, one.line, one.expression, one.how, depth)
        if view.language in _IMPLICIT_THIS:
            owner = self.class_around(view, near)
            if owner is not None:
                return self.type_of_field(owner, name, depth)
        for entity in self.imported(view, name, 0):
            if isinstance(entity, Symbol) and entity.kind in ("variable", "constant"):
                return self.type_of_variable_symbol(entity, depth)
        return None

    def bound_type(
        self, view: FileView, near: Symbol, line: int, expression: str, how: int, depth: int
    ) -> Symbol | None:
        if how == BY_TYPE:
            return self.type_from_text(view, near, expression, depth + 1)
        if how == BY_CALL:
            expression = expression if expression.endswith("()") else expression + "()"
            return self.type_of(view, near, line - 1, expression, depth + 1)
        if how == BY_ALIAS:
            return self.type_of_name(view, near, line, expression, depth + 1) if depth < _DEEPEST else None
        return None

    def type_of_variable_symbol(self, symbol: Symbol, depth: int) -> Symbol | None:
        view = self.index.view(symbol.path)
        for one in view.bindings if view else ():
            if one.line == symbol.start and one.variable == symbol.name:
                assert view is not None
                return self.bound_type(view, symbol, one.line, one.expression, one.how, depth + 1)
        if symbol.kind == "property" and view is not None:
            return self.type_from_text(view, symbol, return_type(symbol, view.language), depth + 1)
        return None

    def type_of_field(self, owner: Symbol, name: str, depth: int) -> Symbol | None:
        """From `self.name = Class()` anywhere in the class, from a declaration in its body, or from a property."""
        if depth > _DEEPEST:
            return None
        wanted = {f"self.{name}", f"this.{name}", name}
        for one in self.lineage(owner):
            view = self.index.view(one.path)
            if view is None:
                continue
            for binding in view.bindings:
                if binding.variable not in wanted or not one.start <= binding.line <= one.end:
                    continue
                holder = enclosing(view, binding.line) or one
                if binding.variable == name and holder != one:
                    continue
                found = self.bound_type(view, holder, binding.line, binding.expression, binding.how, depth + 1)
                if found is not None:
                    return found
            member = view.by_qualified.get(f"{one.qualified}.{name}")
            if member is not None and member.kind == "property":
                return self.type_from_text(view, member, return_type(member, view.language), depth + 1)
        return None

    def type_from_text(self, view: FileView, near: Symbol, text: str, depth: int) -> Symbol | None:
        """The first type of the snapshot that a type expression names, wrappers such as Optional ignored."""
        if depth > _DEEPEST + 2 or not text:
            return None
        for word in _WORD.findall(text.replace("::", ".").replace("\\", ".")[:200]):
            if word in ("Self", "self"):
                return self.class_around(view, near)
            if word in _WRAPPERS or len(word) < 2:
                continue
            for found in self.types_named(view, word.strip("."), near):
                return found
        return None


# --- helpers ----------------------------------------------------------------------------------------------------


def is_type(symbol: Symbol) -> bool:
    """Whether a symbol has members and may be a base; in Ruby, modules do."""
    return symbol.kind in CLASSES or (symbol.kind == "module" and symbol.path.endswith(".rb"))


def has_body(symbol: Symbol) -> bool:
    return not is_declaration(symbol.kind, symbol.signature)


def identity(symbol: Symbol) -> tuple[str, str, int]:
    return symbol.path, symbol.qualified, symbol.start


def folder(path: str) -> str:
    return path.rpartition("/")[0]


def nearest(path: str, candidates: Sequence[Symbol]) -> Symbol | None:
    """Of several, the one in the same file, else the one whose folder is nearest; tests last."""
    if not candidates:
        return None

    def distance(one: Symbol) -> tuple[bool, bool, int, str, int]:
        shared = 0
        for a, b in zip(path.split("/"), one.path.split("/"), strict=False):
            if a != b:
                break
            shared += 1
        return (one.path != path, is_test_path(one.path) and not is_test_path(path), -shared, one.path, one.start)

    return min(candidates, key=distance)


def enclosing(view: FileView, line: int) -> Symbol | None:
    """The innermost definition with a body that holds this line; variables and fields do not count."""
    one = view.symbol_at(line)
    while one is not None and one.kind not in _BODIES:
        one = view.parent(one)
    return one


def module_symbol(view: FileView, lines: int) -> Symbol:
    """A file as the caller of what its top level calls."""
    name = view.path.rpartition("/")[2]
    return Symbol(
        path=view.path,
        name=name.partition(".")[0] or name,
        qualified="",
        kind="module",
        start=1,
        end=max(1, lines),
        signature=name,
        doc="",
    )


_ARROW = re.compile(r"->\s*(.+)$")
_AFTER_COLON = re.compile(r"\)\s*:\s*([^=]+)")
_AFTER_PARENTHESES = re.compile(r"\)\s*\(?([^()]*)\)?\s*$")


def return_type(symbol: Symbol, language: str | None) -> str:
    """The declared result, as text, cut out of the signature."""
    signature = symbol.signature
    if language in ("python", "rust", "swift"):
        match = _ARROW.search(signature)
        if match is None and language == "swift":
            match = re.search(r":\s*([^={]+)", signature)
        return match[1] if match else ""
    if language in ("typescript", "tsx", "kotlin", "scala", "php"):
        match = _AFTER_COLON.search(signature)
        return match[1] if match else ""
    if language == "go":
        rest = signature.partition(symbol.name + "(")[2] or signature.partition(symbol.name + "[")[2]
        match = _AFTER_PARENTHESES.search(rest)
        return match[1] if match else ""
    if language in ("java", "c", "cpp", "c_sharp"):
        return signature.partition(symbol.name)[0]
    return ""
