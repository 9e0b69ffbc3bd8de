"""Reading a snapshot: many files at once, in other processes, large ones, and the text of one."""

from __future__ import annotations

import multiprocessing
import pickle
import threading
from pathlib import Path

import pytest

from subagents.codebase.blobs import BlobReader
from subagents.codebase.types import CannotRead, FileEntry, Skipped
from tests.hostile import git, make_repository, write
from tests.subagents.codebase.conftest import Open


def read_all(reader: BlobReader, entries: list[FileEntry]) -> dict[str, bytes | Skipped]:
    try:
        return {entry.path: data for entry, data in reader.read_many(entries)}
    finally:
        reader.close()


@pytest.mark.parametrize("bare", [False, True])
def test_another_process_reads_the_same_bytes(bare: bool, tmp_path: Path, opened: Open) -> None:
    files: dict[str, str | bytes] = {f"d{n % 7}/f{n}.py": f"number {n}\n" * n for n in range(600)}
    repository = make_repository(tmp_path / "r", files)
    if bare:
        git(tmp_path, "clone", "-q", "--bare", str(repository), "bare.git")
    snapshot = opened(tmp_path / "bare.git" if bare else repository)
    write(repository, "d1/f1.py", "changed\n")
    entries = list(snapshot.files().values())
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        found = pool.apply(read_all, (snapshot.reader(), entries))
    assert found == {path: str(content).encode() for path, content in files.items()}
    assert dict(snapshot.read_many(snapshot.files())) == found


def test_a_reader_survives_pickling_twice(tmp_path: Path, opened: Open) -> None:
    snapshot = opened(make_repository(tmp_path / "r"))
    reader = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(snapshot.reader()))))
    assert read_all(reader, [snapshot.files()["src/util.py"]]) == {"src/util.py": b"LIMIT = 10\n"}


def test_many_threads_read_from_objects_at_once(tmp_path: Path, opened: Open) -> None:
    files: dict[str, str | bytes] = {f"f{n}.py": f"number {n}\n" for n in range(100)}
    repository = make_repository(tmp_path / "r", files)
    git(tmp_path, "clone", "-q", "--bare", str(repository), "bare.git")
    snapshot = opened(tmp_path / "bare.git")
    wrong: list[str] = []

    def work() -> None:
        for path, content in files.items():
            if snapshot.text(path).lines[0] + "\n" != content or snapshot.read_bytes(path) != str(content).encode():
                wrong.append(path)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("tracked", [False, True])
def test_huge_files_are_known_but_not_read(tracked: bool, tmp_path: Path, opened: Open) -> None:
    repository = make_repository(tmp_path / "r", {"a.py": "1\n"})
    write(repository, "huge.bin", b"0123456789abcdef" * (5 << 20))
    if tracked:
        git(repository, "-c", "core.compression=1", "add", "huge.bin")
    expected = git(repository, "hash-object", "--no-filters", "huge.bin").decode().strip()
    snapshot = opened(repository, store=tmp_path / "store")
    assert snapshot.files()["huge.bin"].blob == expected
    with pytest.raises(CannotRead) as caught:
        snapshot.read_bytes("huge.bin")
    assert caught.value.skipped.reason == "too_large"
    assert sum(path.stat().st_size for path in (tmp_path / "store").rglob("*") if path.is_file()) < 1 << 20


def test_a_file_too_large_to_hash_is_left_out_by_name(tmp_path: Path, opened: Open) -> None:
    """A sparse file of a terabyte costs nothing to make."""
    for folder in (make_repository(tmp_path / "r"), tmp_path / "plain"):
        write(folder, "a.py", "1\n")
        with (folder / "sparse").open("wb") as file:
            file.truncate(1 << 40)
        snapshot = opened(folder)
        assert "sparse" not in snapshot.files()
        assert [(item.path, item.reason) for item in snapshot.excluded()] == [("sparse", "too_large")]


def test_text_and_what_has_none(tmp_path: Path, opened: Open) -> None:
    repository = make_repository(tmp_path / "r", {"a.py": "one\r\ntwo\n", "b.bin": b"\0\1\2", "empty.py": ""})
    snapshot = opened(repository)
    assert snapshot.text("a.py").lines == ("one", "two")
    assert snapshot.text("a.py") is snapshot.text("a.py")
    assert snapshot.text("empty.py").lines == ()
    with pytest.raises(CannotRead):
        snapshot.text("b.bin")
    with pytest.raises(KeyError):
        snapshot.text("nowhere.py")
    with pytest.raises(KeyError):
        snapshot.read_bytes("../r/a.py")


def test_out_of_scope_is_not_in_the_snapshot(tmp_path: Path, opened: Open) -> None:
    snapshot = opened(make_repository(tmp_path / "r"), scope=["src"])
    with pytest.raises(KeyError):
        snapshot.read_bytes("README.md")


def test_the_local_file_is_given_only_while_it_holds_the_bytes(tmp_path: Path, opened: Open) -> None:
    repository = make_repository(tmp_path / "r")
    snapshot = opened(repository)
    assert snapshot.local_file("src/util.py") == repository / "src/util.py"
    write(repository, "src/util.py", "LIMIT = 12\n")
    assert snapshot.local_file("src/util.py") is None


def test_closing_removes_all_that_was_temporary(tmp_path: Path, opened: Open) -> None:
    repository = make_repository(tmp_path / "r")
    snapshot = opened(repository)
    view = snapshot.git.view
    assert view.stat().st_mode & 0o777 == 0o700
    snapshot.read_bytes("src/app.py")
    snapshot.close()
    assert not view.exists()
