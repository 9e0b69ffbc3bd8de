"""A name that unrelated definitions share proves nothing: what is claimed of it must resolve."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from subagents.codebase.snapshot import open_snapshot
from subagents.codebase.types import CodeIndex, Symbol
from subagents.index.opening import open_index
from subagents.static.callgraph import GraphBuilder
from subagents.static.meaning import Meaning
from subagents.static.question import parse_question
from subagents.static.relevance import Relevance
from subagents.static.source import Sources
from tests.subagents.static.fixtures import write

FILES = {
    "app/keeper.py": """class Keeper:
    def record(self, value):
        self.state = value
        return self.check(value)

    def check(self, value):
        return self.state == value


def resume(run):
    return run.again()
""",
    "app/search.py": """class Corpus:
    def record(self, number):
        return number


class Hit:
    def __init__(self):
        self.state = None


def words(corpus, number):
    record = corpus.record(number)
    return [record, record.size]


def hit_state(hit: Hit):
    return hit.state
""",
    "app/table.py": """from app.keeper import resume

COMMANDS = {"resume": resume}


def names(resume):
    return [resume]
""",
}


class World:
    def __init__(self, index: CodeIndex, sources: Sources) -> None:
        self.index, self.sources = index, sources
        self.meaning = Meaning(index, sources)
        self.builder = GraphBuilder(index, sources, Relevance(parse_question("how is it kept?")), lambda: None)

    def symbol(self, name: str) -> Symbol:
        return next(s for s in self.index.definitions(name) if s.qualified == name)

    def registered(self, name: str) -> list[tuple[str, int]]:
        return [(r.path, r.line) for r, _ in self.builder.registrations(self.symbol(name))]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    snapshot = open_snapshot(write(tmp_path_factory.mktemp("names"), FILES))
    index = open_index(snapshot, tmp_path_factory.mktemp("cache"))
    yield World(index, Sources(snapshot))
    index.close()
    snapshot.close()


def test_a_variable_of_the_same_name_is_no_registration(world: World) -> None:
    assert world.registered("Keeper.record") == []
    assert world.registered("Corpus.record") == []


def test_an_imported_function_in_a_table_is_handed_on_and_a_parameter_is_not(world: World) -> None:
    assert world.registered("resume") == [("app/table.py", 3)]


def test_fields_of_unrelated_types_are_not_one_field(world: World) -> None:
    stored = (world.symbol("Keeper.record"), "        self.state = value")
    same = (world.symbol("Keeper.check"), "        return self.state == value")
    other = (world.symbol("hit_state"), "    return hit.state")
    assert world.meaning.same_field("state", stored, same)
    assert not world.meaning.same_field("state", stored, other)
