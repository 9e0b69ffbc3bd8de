"""What part a file plays, told by its path: code, test, document, configuration, example, generated, vendored."""

from __future__ import annotations

import re
from typing import Literal

Role = Literal["code", "test", "document", "configuration", "side"]
"""`side`: code that no change is usually about (examples, benchmarks, scripts, vendored, generated, versions)."""

CODE_SUFFIXES = frozenset(
    """.py .pyi .pyx .go .rs .ts .tsx .js .jsx .mjs .cjs .c .h .cc .cpp .cxx .hpp .hh .java .kt .kts .rb .php .cs .scala
    .swift .sh .bash .m .mm .lua .pl .pm .ex .exs .erl .hs .ml .clj .dart .r .jl .vue .svelte .sql .proto .groovy .zig
    .f90 .asm .s .el .lisp .scm .vim .ps1 .nim .cr .d .fs .vb .pas .tcl .awk .hxx .ipp .inl .cu .cuh .metal .glsl .sol
    .erb .mts .cts .hrl .mli .fsx .cljs .rake .sv .v .vhd .vhdl .nix .thrift .zsh .ksh .bats .sc .pxd .phtml .rkt
    .cob .cbl .cpy .f .for .f77 .f95 .f03 .f08 .adb .ads .dpr .coffee .elm .purs .hx .abap .lean .odin .gleam""".split()  # noqa: SIM905
)
_TEST_FOLDER = re.compile(
    r"(?:^|/)(?:tests?|t|testing|testdata|test_data|test-data|__tests__|specs?|e2e|it|integration[-_]tests?|unittests?|testsuite|"
    r"fixtures|testFixtures|goldens?|jmh|test-utils|legacy-cli|mocks?|__mocks__)/",
    re.IGNORECASE,
)
_TEST_NAME = re.compile(
    r"(?:^|/)(?:test_[^/]*|[^/]*_tests?\.[^/]+|conftest\.py|[^/]*[._-](?:spec|test|bench|stories)\.[^/]+|[^/]*_spec\.[^/]+|tests?\.(?:py|rs))$"
    r"|(?:^|/)[^/]*(?:Tests?|Spec|TestCase|IT)\.(?:java|kt|kts|cs|scala|swift|php|groovy)$|(?:^|/)[^/]*Test[A-Z][^/]*\.java$"
)
_SIDE_FOLDER = re.compile(
    r"(?:^|/)(?:examples?|samples?|demos?|tutorials?|docs?|doc_src|documentation|benches|benchmarks?|asv_bench|scripts?|ci|\.github|contrib|"
    r"vendor|vendored|_vendor|third[-_]?party|node_modules|deps|extern|external|buildSrc|packages/vendored|dist|site-packages)/",
    re.IGNORECASE,
)
_SIDE_NAME = re.compile(
    r"(?:^|/)(?:setup\.py|noxfile\.py|_version\.py|__version__\.py|version\.[a-z]+)$|\.(?:pb|gen|g|generated)\.[a-z]+$|_pb2(?:_grpc)?\.pyi?$"
    r"|\.min\.[cm]?js$|\.d\.[cm]?ts$"
)
_DOCUMENT = re.compile(
    r"\.(?:md|mdx|markdown|rst|adoc|asciidoc|txt|org|pod|rdoc|tex)$"
    r"|(?:^|/)(?:readme|changelog|changes|contributing|authors|licen[cs]e|copying|notice|news|todo|faq)(?:\.\w+)?$",
    re.IGNORECASE,
)
_PACKAGE_FACE = frozenset(
    {
        "__init__.py",
        "__init__.pyi",
        "mod.rs",
        "lib.rs",
        "index.ts",
        "index.js",
        "index.tsx",
        "public_api.ts",
        "package-info.java",
        "doc.go",
    }
)


def role_of(path: str) -> Role:
    name = path.rpartition("/")[2]
    suffix = "." + name.rpartition(".")[2].lower() if "." in name else ""
    if suffix not in CODE_SUFFIXES:
        return "document" if _DOCUMENT.search(path) else "configuration"
    if _TEST_NAME.search(path) or _TEST_FOLDER.search(path):
        return "test"
    if _SIDE_FOLDER.search(path) or _SIDE_NAME.search(path):
        return "side"
    return "code"


def is_face(path: str) -> bool:
    """A file that mostly passes on what others define: `__init__.py`, `mod.rs`, `index.ts`."""
    return path.rpartition("/")[2] in _PACKAGE_FACE
