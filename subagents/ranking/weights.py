"""What each sign counts, fitted by tests/bench/fit_ranking.py with cross-validation over repositories.

Every sign but the priors is scaled to 1 for the file that shows it most, so a weight says how much the best possible
evidence of that kind moves a file. A weight may not be negative except for the priors: that a file speaks of what is
asked never counts against it.
"""

from __future__ import annotations

from types import MappingProxyType

SIGNS = {
    "text": "words of the question anywhere in the file",
    "comment": "words of the question in comments and documentation",
    "string": "words of the question in string literals",
    "path": "words of the question in the path",
    "defines": "defines a name the question writes out; fewer definitions elsewhere count more",
    "member": "defines an `Owner.member` the question writes out",
    "mentions": "has identifiers of the question, by rarity",
    "named": "the question names the file",
    "frame": "stands in a traceback of the question, the last entry counting most",
    "module": "the question has the file's dotted module name",
    "symbol": "one definition that holds many words of the question",
    "symbol_name": "one definition named with words of the question",
    "passage": "a few lines that hold many words of the question",
    "commits": "past commits with such messages changed the file",
    "recent": "changed lately",
    "near": "is one of the best files by all signs above, imports one, or is imported by one",
}
PRIORS = {
    "size": "length, as log of the words",
    "face": "only passes on what others define (`__init__.py`, `mod.rs`, `index.ts`)",
    "test": "is a test, and the question is not about tests",
    "side": "is an example, a script, generated or vendored",
    "document": "is documentation, and the question does not ask for it",
    "configuration": "is configuration or data, and the question does not ask for it",
}
AT_LEAST = MappingProxyType({"named": 0.8, "frame": 0.6, "module": 0.4})
"""Signs that somebody who writes a place down has a right to, however seldom the tuning rows do."""
SET_BY_HAND = MappingProxyType({"document": -2.5, "configuration": -2.5})
"""Outside the fit: the tuning rows know only source files."""

WEIGHTS = MappingProxyType({
    "text": 0.95, "comment": 0.6, "string": 0.75, "path": 0.6, "defines": 0.6, "member": 0.8, "mentions": 0.55,
    "named": 0.8, "frame": 0.6, "module": 0.4, "symbol": 1.05, "symbol_name": 0.5, "passage": 0.8, "commits": 1.0,
    "recent": 0.55, "near": 2.7, "size": -0.19, "face": -0.9, "test": -1.75, "side": -0.38, **SET_BY_HAND,
})  # fmt: skip

SYMBOL_WEIGHTS = MappingProxyType({"file": 0.7, "words": 4.0, "name": 1.6, "length": 0.8, "type": -1.5})
"""For definitions over the whole snapshot: the score of their file, the words of the question in them and in their
names (1 for the best), the log of their lines, and that they are a type: whoever looks for a place in a type is better
off with the member. Fitted like the others; `type` is set to half of what the fit gives, since its rows never ask for
types."""
