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
    "importers": "files with words of the question import it",
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
    "text": 1.4, "comment": 1.0, "string": 1.0, "path": 0.95, "defines": 0.95, "member": 1.0, "mentions": 0.95,
    "named": 0.8, "frame": 0.6, "module": 0.4, "symbol": 1.2, "symbol_name": 0.85, "passage": 1.7, "commits": 1.7,
    "recent": 0.9, "importers": 0.5, "size": -0.36, "face": -0.9, "test": -2.4, "side": -0.5, **SET_BY_HAND,
})  # fmt: skip

SYMBOL_WEIGHTS = MappingProxyType({"file": 0.7, "words": 4.0, "name": 1.6, "length": 0.8, "type": -1.5})
"""For definitions over the whole snapshot: the score of their file, the words of the question in them and in their
names (1 for the best), the log of their lines, and that they are a type: whoever looks for a place in a type is better
off with the member. Fitted like the others; `type` is set to half of what the fit gives, since its rows never ask for
types."""
