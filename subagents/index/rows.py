"""The shapes of what extraction yields and records store. No I/O, nothing heavy: a warm start imports this, no more."""

from __future__ import annotations

from typing import Final

CALL, NAME, INHERIT, IMPORT, DECORATOR = range(5)
REFERENCE_KINDS: Final = ("call", "name", "inherit", "import", "decorator")
"""What the kind numbers of reference rows mean."""

BY_CALL, BY_TYPE, BY_ALIAS = range(3)
"""How a binding tells a variable's type: the callee of a call, a declared type, another variable."""


def is_declaration(kind: str, signature: str) -> bool:
    """Whether a symbol only declares (C and C++ prototypes): its definition, where there is one, outranks it."""
    return kind in ("function", "method", "constructor") and signature.endswith(";")


SymbolRow = tuple[str, str, str, int, int, int, str, str, tuple[str, ...]]
"""name, qualified, kind, start, end, parent (ordinal or -1), signature, doc, decorators."""

ImportRow = tuple[int, str, list[tuple[str, str]], str]
"""line, module, (name, alias) pairs, local name of the module."""
