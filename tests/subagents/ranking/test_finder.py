import random
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from subagents.codebase.snapshot import open_snapshot
from subagents.index.opening import open_index
from subagents.ranking.finder import RankedFinder, corpus_from_texts, open_finder
from subagents.ranking.finder import rank as rank_corpus
from subagents.ranking.listing import decode
from subagents.ranking.query import parse
from tests.subagents.ranking.repository import FILES, commit, finder_of, make_ferry, write


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_ferry(tmp_path_factory.mktemp("ferry") / "repo")


@pytest.fixture(scope="module")
def finder(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RankedFinder]:
    with finder_of(folder, tmp_path_factory.mktemp("cache")) as made:
        yield made


def best(finder: RankedFinder, question: str) -> str:
    return finder.find(question)[0].path


@pytest.mark.parametrize(
    ("question", "path"),
    [
        ("How are departures read again from a file?", "ferry/timetable.py"),
        ("SeatTaken is raised", "ferry/errors.py"),
        ("Booking.cancel does not free the seat", "ferry/booking.py"),
        ("ValueError: departure line 'x' has no semicolon", "ferry/timetable.py"),
        ("error: out of fuel", "native/engine.c"),
        ("wrong page for an address in matchRoute", "web/src/router.ts"),
        ("something in ferry/weather.py", "ferry/weather.py"),
        (
            'crash\n\n  File "/opt/x/ferry/weather.py", line 3, in wind_speed\n    return station.read()',
            "ferry/weather.py",
        ),
        ("ferry.weather is slow", "ferry/weather.py"),
        ("weather", "ferry/weather.py"),
        ("cancelling a booking", "ferry/booking.py"),
    ],
)
def test_the_file_in_question_comes_first(finder: RankedFinder, question: str, path: str) -> None:
    assert best(finder, question) == path


def test_code_outranks_its_tests_and_documents(finder: RankedFinder) -> None:
    paths = [hit.path for hit in finder.find("reload the timetable")]
    assert paths.index("ferry/timetable.py") < paths.index("tests/test_timetable.py")
    assert paths.index("ferry/timetable.py") < paths.index("docs/guide.md")


def test_documents_rise_when_they_are_asked_for(finder: RankedFinder) -> None:
    def score(question: str) -> float:
        return next(hit.score for hit in finder.find(question) if hit.path == "docs/guide.md")

    assert score("documentation of how seats are booked") > 2 * score("how seats are booked")


def test_tests_can_be_left_out(finder: RankedFinder) -> None:
    assert "tests/test_timetable.py" in {hit.path for hit in finder.find("timetable")}
    assert "tests/test_timetable.py" not in {hit.path for hit in finder.find("timetable", include_tests=False)}


def test_a_result_says_why_and_where_to_look(finder: RankedFinder) -> None:
    hit = finder.find("no free seat left on this departure")[0]
    assert hit.path == "ferry/booking.py"
    assert hit.score == 1.0
    assert any(reason.startswith("string literals: ") and "seat" in reason for reason in hit.reasons), hit.reasons
    assert hit.symbols[0].symbol.qualified == "book"
    errors = next(hit for hit in finder.find("SeatTaken") if hit.path == "ferry/errors.py")
    assert "defines SeatTaken" in errors.reasons
    test = next(hit for hit in finder.find("timetable") if hit.path.startswith("tests/"))
    assert "ranked lower: test" in test.reasons


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("ferry/timetable.py:17", ["Timetable.reload"]),
        ("https://git.example.org/a/ferry/blob/main/ferry/timetable.py#L22", ["parse_departure"]),
        (
            'File "/x/ferry/timetable.py", line 9, in reload\nFile "/x/ferry/timetable.py", line 5, in parse_departure',
            ["parse_departure", "Timetable.reload"],
        ),
    ],
)
def test_the_definitions_that_a_question_points_at_by_line_or_name_come_first(
    finder: RankedFinder, question: str, names: list[str]
) -> None:
    hit = finder.find(question)[0]
    assert hit.path == "ferry/timetable.py"
    assert [one.symbol.qualified for one in hit.symbols[: len(names)]] == names
    assert ("in the traceback" if "File" in question else "a line of it is given in the question") in hit.reasons


def test_a_result_says_why_even_if_what_it_defines_counts_little(tmp_path: Path) -> None:
    many = {f"lib/door{n}.py": f"def close(door):\n    # shut door {n} for good\n    return {n}\n" for n in range(12)}
    write(tmp_path / "repo", {**many, "lib/gate.py": "def open_gate(gate):\n    return gate\n"})
    with finder_of(tmp_path / "repo", tmp_path / "cache") as finder:
        assert all(hit.reasons for hit in finder.find("`open_gate` after `close` of a shut door"))


def test_definitions_are_ranked_over_the_whole_snapshot(finder: RankedFinder) -> None:
    hits = finder.find_symbols("parse a departure line")
    assert (hits[0].symbol.path, hits[0].symbol.qualified) == ("ferry/timetable.py", "parse_departure")
    assert hits[0].score == 1.0
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert len(finder.find_symbols("timetable", limit=2)) == 2


@pytest.mark.parametrize("question", ["", "   \n", "the of and", "?!", "zzyzx", "```", "\x00\x01"])
def test_a_question_that_matches_nothing_finds_nothing(finder: RankedFinder, question: str) -> None:
    assert finder.find(question) == ()
    assert finder.find_symbols(question) == ()


def test_no_result_is_asked_for_with_a_limit_of_zero(finder: RankedFinder) -> None:
    assert finder.find("timetable", limit=0) == ()
    assert finder.find_symbols("timetable", limit=0) == ()


def test_a_question_of_a_hundred_kilobytes_is_answered(finder: RankedFinder) -> None:
    noise = random.Random(4)
    words = " ".join("".join(noise.choices("abcdefghij", k=7)) for _ in range(13_000))
    assert best(finder, "timetable reload reads departures wrongly\n" + words) == "ferry/timetable.py"


def test_the_past_speaks_for_a_file_that_does_not_have_the_words(tmp_path: Path) -> None:
    folder = make_ferry(tmp_path / "repo")
    with finder_of(folder, tmp_path / "cache") as finder:
        assert finder.find("gale warning") == ()
    commit(folder, {"ferry/weather.py": FILES["ferry/weather.py"] + "\n"}, "Heed the gale warning")
    with finder_of(folder, tmp_path / "cache") as finder:
        hit = finder.find("gale warning")[0]
    assert hit.path == "ferry/weather.py"
    assert any(re.fullmatch(r"changed by commit [0-9a-f]{10}: warning, gale", one) for one in hit.reasons), hit.reasons


def test_what_the_best_file_imports_rises_above_what_it_does_not(tmp_path: Path) -> None:
    kept = '"""Keeps a limited number of handles."""\n'
    files = {
        "pool.py": "from shelf import Shelf\n\n\ndef open_handles(limit):\n    # limited number of open handles\n"
        "    return Shelf(limit)\n",
        "drawer.py": kept + "class Drawer:\n    pass\n",
        "shelf.py": kept + "class Shelf:\n    pass\n",
    }
    write(tmp_path / "plain", files)
    with finder_of(tmp_path / "plain", tmp_path / "cache") as finder:
        hits = finder.find("How is the number of open handles limited?")
    assert [hit.path for hit in hits] == ["pool.py", "shelf.py", "drawer.py"]
    assert "imported by pool.py, which ranks high" in hits[1].reasons


def test_a_folder_without_history_is_searched_all_the_same(tmp_path: Path) -> None:
    write(tmp_path / "plain", FILES)
    with finder_of(tmp_path / "plain", tmp_path / "cache") as finder:
        assert best(finder, "departure line has no semicolon") == "ferry/timetable.py"


def test_results_do_not_depend_on_how_the_index_came_to_be(tmp_path: Path) -> None:
    folder = make_ferry(tmp_path / "repo")
    questions = ["reload the timetable", "SeatTaken", "free seat departure booking", "engine fuel", "delay notice"]
    noise = random.Random(1)
    for round_ in range(12):
        path = f"ferry/part{round_ % 5}.py"
        words = " ".join(noise.choices(["seat", "departure", "delay", "notice", "fuel", "reload"], k=30))
        commit(folder, {path: f'"""{words}"""\n\n\ndef delay_{round_}():\n    return "{words}"\n'}, f"Change {words}")
        if round_ % 4 == 3:
            (folder / path).rename(folder / f"ferry/moved{round_}.py")
            commit(folder, {}, "Move a part")
        with finder_of(folder, tmp_path / "grown") as finder:
            grown = [(finder.find(question), finder.find_symbols(question)) for question in questions]
    with finder_of(folder, tmp_path / "at-once") as finder:
        assert [(finder.find(question), finder.find_symbols(question)) for question in questions] == grown
    assert all(found for found, _ in grown)


def test_terms_read_from_the_texts_give_what_stored_terms_give(folder: Path, tmp_path: Path) -> None:
    with open_snapshot(folder) as snapshot, open_index(snapshot, tmp_path, workers=1) as index:
        stored = open_finder(snapshot, index, tmp_path)
        read = corpus_from_texts(snapshot, index, stored.corpus.commits)
        for question in ("reload the timetable", "SeatTaken", "error: out of fuel"):
            one, other = stored.rank(question), rank_corpus(read, parse(question))
            assert one.order == other.order
            assert one.scores.tolist() == other.scores.tolist()


def test_copies_of_one_file_are_found_under_every_path(tmp_path: Path) -> None:
    write(tmp_path / "plain", {"a/one.py": FILES["ferry/timetable.py"], "b/two.py": FILES["ferry/timetable.py"]})
    with finder_of(tmp_path / "plain", tmp_path / "cache") as finder:
        assert {hit.path for hit in finder.find("departure semicolon")} == {"a/one.py", "b/two.py"}


def test_a_repository_without_code_and_an_unknown_language_are_searched_by_words(tmp_path: Path) -> None:
    write(
        tmp_path / "plain", {"notes.md": "# Tide\n\nThe harbour closes at low tide.\n", "tide.xyz9": "harbour gate\n"}
    )
    with finder_of(tmp_path / "plain", tmp_path / "cache") as finder:
        assert best(finder, "when does the harbour close") == "notes.md"
        assert finder.find_symbols("harbour") == ()


def test_an_empty_repository_has_nothing(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    write(tmp_path / "plain", {"empty.py": ""})
    with finder_of(tmp_path / "plain", tmp_path / "cache") as finder:
        assert finder.find("anything") == ()


def test_questions_in_scripts_without_spaces_find_comments_in_them(tmp_path: Path) -> None:
    files = {"a.py": "# 从文件读取配置\nx = 1\n", "b.py": "# 发送电子邮件\ny = 2\n"}
    write(tmp_path / "plain", files)
    with finder_of(tmp_path / "plain", tmp_path / "cache") as finder:
        assert best(finder, "在哪里读取配置文件?") == "a.py"


def test_damaged_terms_are_made_anew(folder: Path, tmp_path: Path) -> None:
    with finder_of(folder, tmp_path) as finder:
        whole = finder.find("reload the timetable")
    file = next(tmp_path.rglob("index-*.sqlite"))
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE extra_terms SET data = substr(data, 1, 20)")
        connection.execute("UPDATE terms_bucket SET data = substr(data, 1, 7)")
    connection.close()
    with finder_of(folder, tmp_path) as finder:
        assert finder.find("reload the timetable") == whole


def test_a_damaged_list_of_files_is_made_anew(tmp_path: Path) -> None:
    folder = make_ferry(tmp_path / "repo")
    with finder_of(folder, tmp_path / "cache") as finder:
        whole = finder.find("reload the timetable")
    file = next((tmp_path / "cache").rglob("index-*.sqlite"))
    with sqlite3.connect(file) as connection:
        (data,) = connection.execute("SELECT data FROM terms_listing").fetchone()
        flipped = data[:40] + bytes([data[40] ^ 1]) + data[41:]
        connection.execute("UPDATE terms_listing SET data = ?", (flipped,))
    connection.close()
    with finder_of(folder, tmp_path / "cache") as finder:
        assert finder.find("reload the timetable") == whole
    commit(folder, {"ferry/wharf.py": "def moor():\n    return 1\n"}, "Add a wharf")
    with finder_of(folder, tmp_path / "cache") as finder:
        assert finder.find("moor")[0].path == "ferry/wharf.py"
    with sqlite3.connect(file) as connection:
        (mended,) = connection.execute("SELECT data FROM terms_listing").fetchone()
    connection.close()
    assert b"wharf" in mended and decode(mended).paths


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = "import sys, subagents.ranking; print([m for m in ('numpy', 'sqlite3', 'tree_sitter') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
