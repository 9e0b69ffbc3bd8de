"""Grammars and queries, loaded late, and the one string that says which of them made an index."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from subagents.index.languages import GRAMMARS

if TYPE_CHECKING:
    from tree_sitter import Parser, Query

EXTRACTOR_VERSION = 3
"""To be raised with every change of what extraction yields, the queries included."""


@cache
def parser_and_query(language: str) -> tuple[Parser, Query]:
    """Parser and compiled query of a language with role `code`."""
    from tree_sitter import Language, Parser, Query

    entry = GRAMMARS[language]
    grammar = Language(getattr(import_module(entry.module), entry.function)())
    folder = Path(__file__).parent / "queries"
    text = "\n".join((folder / f"{name}.scm").read_text("utf-8") for name in entry.queries or (language,))
    return Parser(grammar), Query(grammar, text)


@cache
def toolchain_version() -> str:
    """Eight hex digits over the extractor's version and the installed versions of tree-sitter and all grammars.

    Read from the folder names of the installed distributions: asking importlib.metadata costs more than the whole
    rest of a warm start.
    """
    spec = find_spec("tree_sitter")
    assert spec is not None and spec.origin is not None  # a dependency of the distribution
    site = Path(spec.origin).parent.parent
    names = sorted(entry.name for entry in site.glob("tree_sitter*.dist-info"))
    return hashlib.sha256("\n".join([str(EXTRACTOR_VERSION), *names]).encode()).hexdigest()[:8]
