"""The index file: incremental, shared by processes, whole after any crash, rebuilt when damaged."""

from __future__ import annotations

import random
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path

import pytest

from manifests.errors import EngineError
from subagents.codebase.snapshot import open_snapshot
from subagents.index.code_index import StoredIndex
from subagents.index.extras import BlobExtra
from subagents.index.opening import open_index
from tests.subagents.index.describe import describe_file
from tests.subagents.index.hostile import COUNTED, HOSTILE

OPEN = """
import os, signal, sys
from pathlib import Path
from subagents.codebase.snapshot import open_snapshot
from subagents.index.opening import open_index
from tests.subagents.index.test_store import everything
die_at = int(sys.argv[3])
def progress(what, done, total):
    print(what, done, total, file=sys.stderr)
    if what == "index" and done >= die_at > 0 or what == "imports" and die_at == -1:
        os.kill(os.getpid(), signal.SIGKILL)
with open_snapshot(Path(sys.argv[1])) as snapshot:
    with open_index(snapshot, Path(sys.argv[2]), extras=(), progress=progress) as index:
        print(everything(index), *index.notices)
"""


def everything(index: StoredIndex) -> str:
    """All that the index says, skips included."""
    lines = [line for path in index.paths() for line in describe_file(index, path)]
    lines += [f"skipped {skip.path} {skip.reason} {skip.detail}" for skip in index.skipped()]
    lines += [f"edge {source} {target}" for source, target in sorted(index.import_edges())]
    return "\n".join(lines)


def write(repo: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        target = repo / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8")


def module(number: int, *imports: int) -> str:
    lines = [f"from pack.m{other} import f{other}" for other in imports]
    calls = " + ".join(f"f{other}()" for other in imports) or "0"
    return "\n".join([*lines, "", f"def f{number}():", f'    """Module {number}."""', f"    return {calls}", ""])


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    files = {f"pack/m{n}.py": module(n, *(other for other in (n - 1, n // 2) if 0 <= other < n)) for n in range(30)}
    files |= {"pack/__init__.py": "", "README.md": "# Pack\n\nWords.\n", "tool.lua": "x = 1\n", "a.svg": "<svg/>"}
    write(tmp_path / "repo", files)
    return tmp_path / "repo"


def ask(
    repo: Path, cache: Path, extras: Sequence[BlobExtra] = (), file_limit_s: float = 30.0
) -> tuple[str, list[str], list[int]]:
    """(all that the index says, notices, how many files were extracted)."""
    extracted: list[int] = []

    def progress(what: str, done: int, total: int) -> None:
        if what == "index" and done == 0:
            extracted.append(total)

    with (
        open_snapshot(repo) as snapshot,
        open_index(snapshot, cache, extras=extras, progress=progress, file_limit_s=file_limit_s) as index,
    ):
        return everything(index), index.notices, extracted


def index_file(cache: Path) -> Path:
    (found,) = cache.glob("*/index-*.sqlite")
    return found


def run_open(repo: Path, cache: Path, die_at: int = 0) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", OPEN, str(repo), str(cache), str(die_at)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_unchanged_snapshot_extracts_nothing(repo: Path, tmp_path: Path) -> None:
    first, _, extracted = ask(repo, tmp_path / "cache")
    again, notices, extracted_again = ask(repo, tmp_path / "cache")
    assert len(extracted) == 1
    assert extracted_again == []
    assert (again, notices) == (first, [])


def test_warm_start_loads_neither_grammars_nor_graphs(repo: Path, tmp_path: Path) -> None:
    ask(repo, tmp_path / "cache")
    code = OPEN.replace("print(everything(index), *index.notices)", "index.paths()") + (
        "heavy = {'tree_sitter', 'networkx', 'numpy', 'orjson', 'subagents.index.build', 'subagents.index.extract'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    code = code.replace("from tests.subagents.index.test_store import everything\n", "")
    done = subprocess.run(
        [sys.executable, "-c", code, str(repo), str(tmp_path / "cache"), "0"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"


def test_incremental_index_equals_one_built_at_once(repo: Path, tmp_path: Path) -> None:
    """A random walk of edits, additions, removals, renames and configuration changes."""
    chance = random.Random(20260)
    write(
        repo, {"web/tsconfig.json": '{"compilerOptions": {"baseUrl": "."}}', "web/a.ts": 'import {b} from "lib/b";\n'}
    )
    write(repo, {"web/lib/b.ts": "export const b = () => 1;\n"})
    ask(repo, tmp_path / "cache")
    for step in range(8):
        number = chance.randrange(30)
        path = repo / f"pack/m{number}.py"
        match chance.randrange(6):
            case 5 if path.exists():  # its imports move to other lines, and stay what they are
                path.write_text(f"\n\n{path.read_text()}\n\ndef more{step}():\n    return f{number}()\n")
            case 0 if path.exists():
                path.write_text(module(number, *chance.sample(range(30), 3)) + f"\n\nclass C{step}:\n    pass\n")
            case 1 if path.exists():
                path.unlink()
            case 2 if path.exists():
                path.rename(repo / f"pack/r{step}.py")
            case 3:
                write(repo, {f"other{step}/pack/m{number}.py": module(number)})
            case _:
                base = chance.choice([".", "lib", "nowhere"])
                write(repo, {"web/tsconfig.json": f'{{"compilerOptions": {{"baseUrl": "{base}"}}}}'})
        incremental, _, _ = ask(repo, tmp_path / "cache")
        at_once, _, _ = ask(repo, tmp_path / f"fresh{step}")
        assert incremental == at_once, step


def test_switching_back_extracts_nothing(repo: Path, tmp_path: Path) -> None:
    before = (repo / "pack/m3.py").read_text()
    first, _, _ = ask(repo, tmp_path / "cache")
    (repo / "pack/m3.py").write_text("def other():\n    pass\n")
    changed, _, extracted = ask(repo, tmp_path / "cache")
    assert extracted == [1]
    (repo / "pack/m3.py").write_text(before)
    back, _, extracted = ask(repo, tmp_path / "cache")
    assert extracted == []
    assert back == first != changed


def test_blobs_that_no_recent_snapshot_has_are_dropped(repo: Path, tmp_path: Path) -> None:
    for number in range(15):
        (repo / "pack/m3.py").write_text(f"def other{number}():\n    pass\n")
        said, _, _ = ask(repo, tmp_path / "cache", extras=[COUNTED])
    with sqlite3.connect(index_file(tmp_path / "cache")) as connection:
        blobs = connection.execute("SELECT count(*) FROM blob").fetchone()[0]
        files = connection.execute("SELECT count(*) FROM file").fetchone()[0]
        orphans = connection.execute("SELECT count(*) FROM extra_counted WHERE blob NOT IN (SELECT id FROM blob)")
        assert orphans.fetchone()[0] == 0
        log = connection.execute("SELECT added, dropped, first FROM counted_log").fetchall()
    connection.close()
    assert files < blobs <= files + 13
    assert log[0][1:] == (0, 1)
    assert sum(dropped for _, dropped, _ in log) == sum(added for added, _, _ in log) - blobs
    assert "other14" in said
    assert "other13" not in said


def test_two_builders_at_once_give_one_whole_index(repo: Path, tmp_path: Path) -> None:
    expected, _, _ = ask(repo, tmp_path / "alone")
    running = [run_open(repo, tmp_path / "cache") for _ in range(3)]
    for process in running:
        said, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
        assert said.strip() == expected
    connection = sqlite3.connect(index_file(tmp_path / "cache"))
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert connection.execute("SELECT count(*) FROM blob").fetchone()[0] == len(set(_contents(repo)))
    connection.close()


def _contents(repo: Path) -> list[tuple[bytes, str]]:
    return [(p.read_bytes(), p.suffix) for p in repo.rglob("*") if p.is_file() and p.suffix != ".svg"]


@pytest.mark.parametrize("die_at", [1, 25, -1])
def test_killed_builder_leaves_an_index_that_the_next_completes(repo: Path, tmp_path: Path, die_at: int) -> None:
    """Killed after the first file, in the middle, and when all blobs are in but the snapshot is not yet published."""
    write(repo, {f"pack/n{n}.py": module(100 + n) for n in range(60)})
    expected, _, _ = ask(repo, tmp_path / "alone")
    process = run_open(repo, tmp_path / "cache", die_at)
    process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL
    said, notices, extracted = ask(repo, tmp_path / "cache")
    assert (said, notices) == (expected, [])
    assert (extracted == []) == (die_at == -1)


def test_an_edit_is_read_without_workers_unless_the_last_reader_died_of_it(repo: Path, tmp_path: Path) -> None:
    def look() -> tuple[str, bool]:
        """(what the index says, whether there were workers)"""
        seen: list[bool] = []

        def progress(what: str, done: int, total: int) -> None:
            seen.append(any(thread.name.startswith("index-") for thread in threading.enumerate()))

        with (
            open_snapshot(repo) as snapshot,
            open_index(snapshot, tmp_path / "cache", progress=progress, extras=()) as index,
        ):
            return everything(index), any(seen)

    def look_after_edit(number: int) -> bool:
        (repo / "pack/m3.py").write_text(f"def edited{number}():\n    pass\n")
        said, with_workers = look()
        assert f"edited{number}" in said
        return with_workers

    assert look()[1]
    assert not look_after_edit(1)
    (repo / "pack/m3.py").write_text("def deadly():\n    pass\n")
    process = run_open(repo, tmp_path / "cache", die_at=1)
    process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL
    assert look_after_edit(2)
    assert not look_after_edit(3)


def test_reader_keeps_its_snapshot_while_another_builds_the_next(repo: Path, tmp_path: Path) -> None:
    with open_snapshot(repo) as snapshot, open_index(snapshot, tmp_path / "cache", extras=()) as index:
        before = index.paths()
        (repo / "pack/m5.py").unlink()
        write(repo, {"pack/new.py": "def new():\n    pass\n"})
        ask(repo, tmp_path / "cache")
        assert index.paths() == before
        assert index.symbols("pack/m5.py")
        assert not index.definitions("new")


@pytest.mark.parametrize("damage", ["garbage", "truncated", "emptied", "half", "flipped"])
def test_damaged_index_is_rebuilt_and_said_so(repo: Path, tmp_path: Path, damage: str) -> None:
    expected, _, _ = ask(repo, tmp_path / "cache")
    file = index_file(tmp_path / "cache")
    data = file.read_bytes()
    if damage == "garbage":
        file.write_bytes(b"no database " * 1000)
    elif damage == "truncated":
        file.write_bytes(data[: len(data) // 2])
    elif damage == "emptied":
        connection = sqlite3.connect(file)
        connection.execute("DELETE FROM file WHERE id % 2 = 0")
        connection.commit()
        connection.close()
    elif damage == "half":
        connection = sqlite3.connect(file)
        connection.execute("DROP TABLE part")
        connection.commit()
        connection.close()
    else:
        at = data.index(b"Module 7.")
        file.write_bytes(data[:at] + b"X" + data[at + 1 :])
    said, notices, _ = ask(repo, tmp_path / "cache")
    assert said == expected
    assert notices and "damaged" in notices[0]
    assert ask(repo, tmp_path / "cache")[1:] == ([], [])


def test_flipped_bytes_anywhere_never_change_an_answer(repo: Path, tmp_path: Path) -> None:
    expected, _, _ = ask(repo, tmp_path / "cache")
    file = index_file(tmp_path / "cache")
    data = file.read_bytes()
    chance = random.Random(7)
    for _ in range(12):
        at = chance.randrange(100, len(data))
        file.write_bytes(data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :])
        for log in ("-wal", "-shm"):
            file.with_name(file.name + log).unlink(missing_ok=True)
        said, _, _ = ask(repo, tmp_path / "cache")
        assert said == expected, at


def test_cache_folder_that_cannot_be_used_leads_to_a_private_index(repo: Path, tmp_path: Path) -> None:
    expected, _, _ = ask(repo, tmp_path / "fine")
    (tmp_path / "cache").write_text("a file, no folder")
    with open_snapshot(repo) as snapshot, open_index(snapshot, tmp_path / "cache", extras=()) as index:
        private = index.file.parent
        assert everything(index) == expected
        assert "cannot be used" in index.notices[0]
        assert private.exists()
    assert not private.exists()


def test_index_that_another_program_locks_is_made_in_private(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("subagents.index.store.BUSY_S", 0.1)
    ask(repo, tmp_path / "cache")
    write(repo, {"pkg/late.py": module(300)})
    expected, _, _ = ask(repo, tmp_path / "fine")
    with closing(sqlite3.connect(index_file(tmp_path / "cache"))) as other:
        other.execute("BEGIN IMMEDIATE")
        with open_snapshot(repo) as snapshot, open_index(snapshot, tmp_path / "cache", extras=()) as index:
            assert everything(index) == expected
            assert "locked" in index.notices[0]


def test_index_on_a_disk_that_filled_up_since_is_made_in_private(repo: Path, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "none", str(disk)], capture_output=True)
    if mounted.returncode:
        pytest.skip("mounting a small disk takes root")
    try:
        expected, _, _ = ask(repo, disk)
        with suppress(OSError), (disk / "fill").open("wb", buffering=0) as fill:
            while fill.write(bytes(4096)):
                pass
        with open_snapshot(repo) as snapshot, open_index(snapshot, disk, extras=()) as index:
            assert everything(index) == expected
            assert "cannot be used" in index.notices[0]
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_full_disk_is_an_error_that_says_what_to_do(repo: Path, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200k", "none", str(disk)], capture_output=True)
    if mounted.returncode:
        pytest.skip("mounting a small disk takes root")
    try:
        write(repo, {f"pack/n{n}.py": module(100 + n) * 20 for n in range(60)})
        with pytest.raises(EngineError, match="no space left") as caught:
            ask(repo, disk)
        assert "LEADLINE_CACHE_DIR" in caught.value.hint
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("please crash", "parse_error"),
        ("please hang", "parse_timeout"),
        ("please eat", "parse_error"),
        ("please raise", "parse_error"),
    ],
)
def test_file_that_breaks_the_parser_costs_only_itself(repo: Path, tmp_path: Path, text: str, reason: str) -> None:
    write(repo, {"pack/m9.py": f"# {text}\n"})
    with (
        open_snapshot(repo) as snapshot,
        open_index(snapshot, tmp_path / "cache", extras=[HOSTILE], file_limit_s=1.5) as index,
    ):
        skipped = {skip.path: skip.reason for skip in index.skipped()}
        assert skipped["pack/m9.py"] == reason
        assert set(skipped) == {"pack/m9.py", "tool.lua", "a.svg"}
        assert {path for path, data in index.extra("hostile") if data == b"fine"} == set(index.paths())
        assert "pack/m10.py" in index.paths()


def test_extras_see_text_and_symbols_and_finish_with_the_snapshot(repo: Path, tmp_path: Path) -> None:
    with (
        open_snapshot(repo) as snapshot,
        open_index(snapshot, tmp_path / "cache", extras=[COUNTED]) as index,
    ):
        stored = dict(index.extra("counted"))
        assert stored["pack/m2.py"] == b"python 1 f1"
        assert stored["README.md"] == b"markdown 0 "
        with index.database() as connection:
            assert connection.execute("SELECT first, dropped FROM counted_log").fetchall() == [(1, 0)]


def test_extra_of_another_version_means_another_index(repo: Path, tmp_path: Path) -> None:
    ask(repo, tmp_path / "cache", extras=[COUNTED])
    newer = BlobExtra(name="counted", version=2, extract=COUNTED.extract, finish=COUNTED.finish)
    _, _, extracted = ask(repo, tmp_path / "cache", extras=[newer])
    assert extracted and extracted[0] > 30
