"""What else is called on a receiver tells what it cannot be.

`self.connection.login(...)` beside `self.connection.starttls()` means no class that has a `login` and no `starttls`.
Where a name alone would have to decide, that is often all there is to go by.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from subagents.codebase.types import Symbol
from subagents.index.rows import CALL, INHERIT

if TYPE_CHECKING:
    from subagents.index.calls import CallResolver
    from subagents.index.code_index import FileView

_TOLD: Final = frozenset({"python", "javascript", "typescript", "tsx", "php"})
"""Languages in which the members of a class stand in its body, in that of a base, or are put on `self`."""
_PLAIN_BASES: Final = frozenset({"object", "ABC", "Protocol", "Generic"})
_GENERATIONS: Final = 3
_MANY: Final = 30
"""Of so many derived types one will have it."""
_OPEN: Final = ("__getattr__", "__getattribute__", "__call", "__get")
"""A class with such a member answers to any name."""


class Receivers:
    """Asked by the resolver for each call that only a name could decide; remembers what it found."""

    def __init__(self, resolver: CallResolver) -> None:
        self._resolver = resolver
        self._called: dict[tuple[str, int, int, str], frozenset[str]] = {}
        self._members: dict[tuple[str, int], frozenset[str] | None] = {}
        self._derived: dict[tuple[str, int], Sequence[Symbol]] = {}

    def may_be(self, view: FileView, caller: Symbol, receiver: str, owner: Symbol) -> bool:
        """Whether a type, or one derived from it, has everything that is called on `receiver`.

        In the same function or, for a field, in the same class.
        """
        called = self._called_on(view, caller, receiver)
        return len(called) < 2 or self._has(owner, called, _GENERATIONS)

    def _has(self, owner: Symbol, called: frozenset[str], generations: int) -> bool:
        members = self._members_of(owner)
        if members is None or called <= members:
            return True
        if not generations:
            return False
        key = (owner.path, owner.start)
        if key not in self._derived:
            self._derived[key] = self._resolver.subclasses(owner)
        derived = self._derived[key]
        return len(derived) > _MANY or any(self._has(one, called, generations - 1) for one in derived)

    def _called_on(self, view: FileView, caller: Symbol, receiver: str) -> frozenset[str]:
        around = caller
        if receiver.startswith(("self.", "this.", "$this")):
            around = self._resolver.class_around(view, caller) or caller
        if around.path != view.path:
            around = caller
        key = (view.path, around.start, around.end, receiver)
        if key not in self._called:
            self._called[key] = frozenset(
                name
                for line, name, on, kind in view.reference_rows
                if kind == CALL and on == receiver and around.start <= line <= around.end
            )
        return self._called[key]

    def _members_of(self, owner: Symbol) -> frozenset[str] | None:
        """Every name that a type answers to; None where that cannot be known."""
        key = (owner.path, owner.start)
        if key not in self._members:
            self._members[key] = self._find_members(owner)
        return self._members[key]

    def _find_members(self, owner: Symbol) -> frozenset[str] | None:
        members: set[str] = set()
        for one in self._resolver.lineage(owner):
            view = self._resolver.index.view(one.path)
            if view is None or view.language not in _TOLD:
                return None
            if self._bases_written(view, one) > len(self._resolver.bases(one)):
                return None
            members.update(self._own(view, one))
        return None if members.intersection(_OPEN) else frozenset(members)

    def _bases_written(self, view: FileView, owner: Symbol) -> int:
        return sum(
            1
            for line, name, _, kind in view.reference_rows
            if kind == INHERIT
            and name not in _PLAIN_BASES
            and owner.start <= line <= owner.end
            and self._resolver.class_around(view, view.symbol_at(line) or owner) == owner
        )

    @staticmethod
    def _own(view: FileView, owner: Symbol) -> Iterable[str]:
        for symbol in view.symbols:
            if symbol.qualified.rpartition(".")[0] == owner.qualified:
                yield symbol.name
        for binding in view.bindings:
            if owner.start <= binding.line <= owner.end:
                before, _, name = binding.variable.rpartition(".")
                if not before or before in ("self", "this", "cls"):
                    yield name
