"""Every language, file by file: symbols, references, imports, inheritance and calls are exactly those expected.

The expectations are read as prose; `python -m tests.subagents.index.describe` writes them anew.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from subagents.index.code_index import StoredIndex
from tests.subagents.index.describe import EXPECTED, LANGUAGES, describe, open_sources


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoredIndex]:
    with open_sources(tmp_path_factory.mktemp("languages")) as opened:
        yield opened


@pytest.mark.parametrize("language", LANGUAGES)
def test_everything_in_the_sources_is_found(index: StoredIndex, language: str) -> None:
    assert describe(index, language) + "\n" == (EXPECTED / f"{language}.txt").read_text("utf-8")


def test_nothing_of_the_sources_is_skipped(index: StoredIndex) -> None:
    assert list(index.skipped()) == []


def test_importers_and_edges_agree_with_imports(index: StoredIndex) -> None:
    edges = {
        (edge.source, edge.target)
        for path in index.paths()
        for edge in index.imports(path)
        if edge.target not in (None, path)
    }
    assert set(index.import_edges()) == edges
    for path in index.paths():
        if not path.endswith(".go"):
            assert {edge.source for edge in index.importers(path)} - {path} == {s for s, t in edges if t == path}


def test_importers_of_a_go_file_are_those_of_its_package(index: StoredIndex) -> None:
    for path in ("go/internal/store/store.go", "go/internal/store/index.go"):
        assert [edge.source for edge in index.importers(path)] == ["go/cmd/server/main.go"]


def test_references_are_found_by_name_in_every_language(index: StoredIndex) -> None:
    for path in index.paths():
        for reference in index.references_in(path, 1, index.line_count(path)):
            assert reference in index.references(reference.name, limit=10_000)


def test_definitions_are_found_by_name_and_by_dotted_tail(index: StoredIndex) -> None:
    for path in index.paths():
        for symbol in index.symbols(path):
            assert symbol in index.definitions(symbol.name, limit=10_000)
            assert symbol in index.definitions(symbol.qualified, limit=10_000)


def test_exact_case_comes_first(index: StoredIndex) -> None:
    found = index.definitions("store")
    assert found[0].name == "store"
    assert {"Store"} <= {symbol.name for symbol in found}


def test_definition_outranks_its_prototype(index: StoredIndex) -> None:
    assert [symbol.path for symbol in index.definitions("ring_put")] == ["c/src/ring.c", "c/include/ring/ring.h"]


def test_symbol_at_is_the_innermost(index: StoredIndex) -> None:
    path = "python/src/shop/orders/model.py"
    inside = {line: symbol.qualified for line in range(1, 40) if (symbol := index.symbol_at(path, line))}
    assert inside[23] == "Order.price.once"
    assert inside[26] == "Order.price"
    assert inside[10] == "Order"
    assert inside[17] == "Order"  # a decorator stands before the definition it belongs to
    assert 1 not in inside
