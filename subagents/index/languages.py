"""What a language implies for the index: grammar, comment marks, whether its text is worth reading.

Which language a file is written in is decided by subagents.codebase.textfile; only C headers are told apart here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

Role = Literal["code", "words", "data"]
"""`code`: has a grammar. `words`: read as plain text. `data`: contents are not read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grammar:
    """`module` and `function` name the grammar wheel's entry."""

    module: str
    function: str = "language"
    queries: tuple[str, ...] = ()
    """Names of the query files in queries/, when it is not just the language's own."""
    comment: tuple[bytes, ...] = (b"//", b"/*")
    """What a line of a comment above a definition starts with."""


_HASH: Final = (b"#",)

GRAMMARS: Final[dict[str, Grammar]] = {
    "python": Grammar(module="tree_sitter_python", comment=_HASH),
    "javascript": Grammar(module="tree_sitter_javascript", queries=("javascript", "jsx")),
    "typescript": Grammar(module="tree_sitter_typescript", function="language_typescript"),
    "tsx": Grammar(module="tree_sitter_typescript", function="language_tsx", queries=("typescript", "jsx")),
    "go": Grammar(module="tree_sitter_go"),
    "rust": Grammar(module="tree_sitter_rust"),
    "java": Grammar(module="tree_sitter_java"),
    "kotlin": Grammar(module="tree_sitter_kotlin"),
    "c": Grammar(module="tree_sitter_c"),
    "cpp": Grammar(module="tree_sitter_cpp"),
    "c_sharp": Grammar(module="tree_sitter_c_sharp"),
    "ruby": Grammar(module="tree_sitter_ruby", comment=_HASH),
    "php": Grammar(module="tree_sitter_php", function="language_php", comment=(b"//", b"/*", b"#")),
    "swift": Grammar(module="tree_sitter_swift"),
    "scala": Grammar(module="tree_sitter_scala"),
    "bash": Grammar(module="tree_sitter_bash", comment=_HASH),
}

_PLAIN: Final = frozenset({
    "markdown", "rst", "asciidoc", "text", "json", "yaml", "toml", "xml", "ini", "html", "css", "scss", "sass", "less",
    "make", "cmake", "dockerfile", "go_mod", "notebook",
})  # fmt: skip
"""Languages that nobody expects a grammar for."""

_DATA_LANGUAGES: Final = frozenset({"gettext", "notebook"})
_DATA_EXTENSIONS: Final = frozenset({
    "pot", "mo", "csv", "tsv", "svg", "geojson", "map", "lock", "log", "snap", "patch", "diff", "pem", "crt", "key",
    "cer", "dat", "data", "out", "bib", "wkt", "prj", "cpg", "hex", "ppm", "xpm", "eps", "strings", "resx", "xlf",
    "xliff", "ttx", "afm", "pdb", "gml", "kml", "gpx", "golden", "pbtxt", "srt", "vtt",
})  # fmt: skip
_CPP_HEADER: Final = re.compile(
    rb"^\s*(?:class\s+\w+[^;{]*[;{]|namespace\b|template\s*<|using\s+\w+|(?:public|private|protected)\s*:|extern\s+\"C\+\+\")",
    re.MULTILINE,
)


def role_of(path: str, language: str | None) -> Role:
    if language in GRAMMARS:
        return "code"
    if language in _DATA_LANGUAGES:
        return "data"
    if language is None and path.rpartition("/")[2].rpartition(".")[2].lower() in _DATA_EXTENSIONS:
        return "data"
    return "words"


def lacks_grammar(language: str | None) -> bool:
    """Whether this is a programming language that is read as plain words only."""
    return language is not None and language not in GRAMMARS and language not in _PLAIN


def settle(path: str, language: str | None, data: bytes) -> str | None:
    """`.h` is C or C++; its contents tell."""
    if language == "c" and path.endswith((".h", ".H")) and _CPP_HEADER.search(data):
        return "cpp"
    return language
