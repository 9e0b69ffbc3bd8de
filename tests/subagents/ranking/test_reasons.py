"""Whatever is given as a reason can be checked, and holds."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from subagents.codebase.snapshot import open_snapshot
from subagents.codebase.types import FileHit
from subagents.index.opening import open_index
from subagents.ranking.finder import open_finder
from subagents.ranking.remarks import remarks
from subagents.ranking.words import keys, words_of
from tests.subagents.ranking.repository import FILES, commit, finder_of, make_ferry, write

QUESTIONS = (
    "no free seat left on this departure",
    "How does the timetable reload its departures? See `Timetable.reload` and parse_departure",
    "engine_start fails: out of fuel",
    "SeatTaken",
    "ferry/weather.py reads wind_speed in knots",
    "retries of the booking",
    "gale warning",
    'File "ferry/booking.py", line 20, in book\n    raise SeatTaken',
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = make_ferry(tmp_path_factory.mktemp("reasons") / "repo")
    commit(made, {"ferry/weather.py": FILES["ferry/weather.py"] + "\n"}, "Heed the gale warning")
    commit(made, {"ferry/booking.py": FILES["ferry/booking.py"] + "\n"}, "Give a booking back")
    return made


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_reason_holds(folder: Path, tmp_path: Path, question: str) -> None:
    with finder_of(folder, tmp_path) as finder:
        hits = finder.find(question)
    assert hits
    for hit in hits:
        assert hit.reasons or hit.score < 0.05, hit
        for reason in hit.reasons:
            _check(folder, question, hit, reason)


@pytest.mark.parametrize(
    ("files", "question", "remark"),
    [
        ({"Main.hs": "retryLimit = 3\n"}, "retry limit", "no grammar for haskell: ranked by words, path and history"),
        ({"pay.cob": "       COMPUTE TAX.\n"}, "tax", "no grammar for cobol: "),
        ({"a.py": "x = 1\n"}, "the of and", "no word that tells one file from another"),
        ({"a.py": "x = 1\n"}, "Где подписывается сессия?", "no file has a word of the question"),
        ({"a.py": "retry = 1\n"}, "retry_limit", "no file has `retry_limit` as a word"),
        ({}, "anything", "no text here"),
    ],
)
def test_what_must_be_known_about_the_results_is_said(
    tmp_path: Path, files: dict[str, str], question: str, remark: str
) -> None:
    (tmp_path / "plain").mkdir()
    write(tmp_path / "plain", files)
    with open_snapshot(tmp_path / "plain") as snapshot, open_index(snapshot, tmp_path / "cache", workers=1) as index:
        finder = open_finder(snapshot, index, tmp_path / "cache")
        hits = finder.find(question)
        said = remarks(finder, index, question, hits)
    assert any(remark in one for one in said), said
    assert all("ranked lower" not in reason for hit in hits for reason in hit.reasons)


def _check(folder: Path, question: str, hit: FileHit, reason: str) -> None:
    text = (folder / hit.path).read_text()
    label, _, listed = reason.partition(": ")
    words = listed.split(", ")
    asked = _keys(question)
    if label == "ranked lower" or reason == "in the traceback":
        return
    if label in ("text", "comments", "string literals", "identifiers"):
        assert all(_keys(word) & _keys(text) & asked for word in words), (hit.path, reason)
    elif label == "path":
        assert all(_keys(word) & _keys(hit.path) & asked for word in words), (hit.path, reason)
    elif where := re.fullmatch(r"lines? (\d+)(?: to (\d+))?", label):
        stretch = "\n".join(text.split("\n")[int(where[1]) - 1 : int(where[2] or where[1])])
        assert all(_keys(word) & _keys(stretch) & asked for word in words), (hit.path, reason)
    elif label.startswith(("in ", "name of ")):
        name = label.rpartition(" ")[2]
        symbol = next(one.symbol for one in hit.symbols if one.symbol.qualified == name)
        body = "\n".join(text.split("\n")[symbol.start - 1 : symbol.end])
        inside = _keys(name) | (_keys(body) if label.startswith("in ") else set())
        assert all(_keys(word) & inside & asked for word in words), (hit.path, reason)
    elif by := re.fullmatch(r"changed by commit (\w+)", label):
        said = _git(folder, "log", "-1", "--format=%B", by[1])
        assert hit.path in _git(folder, "show", "--name-only", "--format=", by[1]).split()
        assert all(_keys(word) & _keys(said) & asked for word in words), (hit.path, reason)
    elif ago := re.fullmatch(r"changed (?:by the last commit|(\d+) commits? ago)", reason):
        assert len(_git(folder, "rev-list", _last(folder, hit.path) + "..HEAD").split()) == int(ago[1] or 0)
    elif beside := re.fullmatch(r"(imports|imported by) (\S+), which ranks high", reason):
        source, target = (hit.path, beside[2]) if beside[1] == "imports" else (beside[2], hit.path)
        lines = [
            line for line in (folder / source).read_text().split("\n") if re.search(r"\b(?:import|include)\b", line)
        ]
        assert any(Path(target).stem in line for line in lines), reason
    elif reason.startswith("defines "):
        for name in reason.removeprefix("defines ").split(", "):
            assert re.search(rf"(?:def|class|engine_start|struct) ?{name.rpartition('.')[2]}|{name}\(", text), reason
    else:
        assert reason == "named in the question", reason
        assert hit.path in question


def _keys(text: str) -> set[int]:
    return {key for word in words_of(text) for key in keys(word)}


def _last(folder: Path, path: str) -> str:
    return _git(folder, "log", "-1", "--format=%H", "--", path).strip()


def _git(folder: Path, *arguments: str) -> str:
    return subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True).stdout
