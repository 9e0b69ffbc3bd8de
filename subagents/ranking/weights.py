"""What each sign counts, fitted by tests/bench/fit_ranking.py with cross-validation over repositories.

Every sign but the priors is scaled to 1 for the file that shows it most, so a weight says how much the best possible
evidence of that kind moves a file. A weight may not be negative except for the priors: that a file speaks of what is
asked never counts against it.
"""

from __future__ import annotations

from types import MappingProxyType

SIGNS = {
    "text": "words of the question anywhere in the file",
    "code": "words of the question in identifiers",
    "comment": "words of the question in comments and documentation",
    "string": "words of the question in string literals",
    "name": "words of the question in names of definitions",
    "path": "words of the question in the path",
    "coverage": "share of the question's words (by rarity) that the file has at all",
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
    "commit_words": "words of the question in all messages of commits that changed the file",
    "recent": "changed lately",
    "importers": "files with words of the question import it",
    "twin": "the test named after the file has words of the question",
}
PRIORS = {
    "size": "length, as log of the words",
    "face": "only passes on what others define (`__init__.py`, `mod.rs`, `index.ts`)",
    "test": "is a test, and the question is not about tests",
    "side": "is an example, a script, generated or vendored",
    "document": "is documentation, and the question does not ask for it",
    "configuration": "is configuration or data, and the question does not ask for it",
}

WEIGHTS = MappingProxyType({
    "text": 1.0, "code": 0.7, "comment": 0.9, "string": 0.8, "name": 0.3, "path": 0.8, "coverage": 0.6, "defines": 0.6,
    "member": 0.8, "mentions": 1.2, "named": 1.1, "frame": 0.6, "module": 0.4, "symbol": 1.0, "symbol_name": 0.5,
    "passage": 1.2, "commits": 1.0, "commit_words": 0.8, "recent": 0.9, "importers": 0.5, "twin": 0.2,
    "size": -0.3, "face": -0.9, "test": -2.3, "side": -1.5, "document": -2.5, "configuration": -2.5,
})  # fmt: skip
"""`document` and `configuration` stand outside the fit: the tuning rows know only source files."""

SYMBOL_WEIGHTS = MappingProxyType({"file": 0.7, "words": 4.0, "name": 1.6, "length": 0.8, "type": -1.5})
"""For definitions over the whole snapshot: the score of their file, the words of the question in them and in their
names (1 for the best), the log of their lines, and that they are a type: whoever looks for a place in a type is better
off with the member. Fitted like the others; `type` is set to half of what the fit gives, since its rows never ask for
types."""
