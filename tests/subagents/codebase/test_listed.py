"""What git said of the index is remembered for as long as the index is the same, and never beyond."""

from __future__ import annotations

import os
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from subagents.codebase import gitrun
from subagents.codebase.repository import _plain_configuration
from tests.hostile import commit_all, git, make_repository, odd_names, write
from tests.subagents.codebase.conftest import Open
from tests.subagents.codebase.test_freeze import expected_tree


@pytest.fixture(scope="module")
def settled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Iterator[Path]]:
    """Repositories, each to be used once, whose indexes are old enough to be remembered."""
    folder = tmp_path_factory.mktemp("settled")
    made = [make_repository(folder / f"r{n}", {f"d{m}/f{m}.py": f"{m}\n" for m in range(9)}) for n in range(4)]
    time.sleep(2.1)
    yield iter(made)


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file with the arguments of every git that was started."""
    log, wrapper = tmp_path / "log", tmp_path / "bin" / "git"
    real = gitrun.git_executable()
    write(tmp_path, "bin/git", f'#!/bin/sh\necho "$@" >> {log}\nexec {real} "$@"\n')
    wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{wrapper.parent}:{os.environ['PATH']}")
    gitrun.git_executable.cache_clear()
    log.touch()
    yield log
    gitrun.git_executable.cache_clear()


def test_git_is_asked_once_for_one_state_of_the_index(
    settled: Iterator[Path], tmp_path: Path, opened: Open, commands: Path
) -> None:
    repository, cache = next(settled), tmp_path / "cache"
    first = opened(repository, cache=cache)
    before = commands.read_text()
    assert "ls-files --stage" in before and "diff-index" in before
    again = opened(repository, cache=cache)
    asked = commands.read_text().removeprefix(before)
    assert "--stage" not in asked and "diff-index" not in asked and "ls-files --others" in asked
    assert (again.id, again.files()) == (first.id, first.files())
    write(repository, "d1/f1.py", "changed\n")
    assert opened(repository, cache=cache).id.tree == expected_tree(repository)


def test_every_change_is_seen_beside_a_memory(settled: Iterator[Path], tmp_path: Path, opened: Open) -> None:
    repository, cache = next(settled), tmp_path / "cache"
    opened(repository, cache=cache)
    remembered = next(cache.glob("*.index")).read_bytes()

    def same() -> None:
        seen = opened(repository, cache=cache)
        assert seen.id == opened(repository).id
        assert seen.id.tree == expected_tree(repository)

    same()
    write(repository, "d1/f1.py", "2\n")
    same()
    (repository / "d2/f2.py").unlink()
    write(repository, "new.py", "n\n")
    same()
    (repository / "d3/f3.py").chmod(0o755)
    same()
    git(repository, "add", "-A")
    same()
    (repository / "d4/f4.py").write_text("9\n")  # same size, likely the same instant
    same()
    commit_all(repository)
    same()
    git(repository, "reset", "-q", "--soft", "HEAD~1")
    same()
    odd_names(repository)
    git(repository, "add", "-A")
    same()
    # the memory of long ago comes back, as from a restored folder
    next(iter(cache.glob("*.index")), cache / "x.index").write_bytes(remembered)
    same()


def test_a_moved_head_is_seen_though_the_index_is_the_same(
    settled: Iterator[Path], tmp_path: Path, opened: Open
) -> None:
    repository, cache = next(settled), tmp_path / "cache"
    tree = git(repository, "rev-parse", "HEAD^{tree}").decode().strip()
    one = opened(repository, cache=cache)
    empty = git(repository, "commit-tree", "-m", "empty", git(repository, "mktree").decode().strip()).decode().strip()
    git(repository, "update-ref", "HEAD", empty)
    other = opened(repository, cache=cache)
    assert (one.id.dirty, one.id.tree) == (False, tree)
    assert (other.id.commit, other.id.dirty, other.id.tree) == (empty, True, tree)


def test_a_damaged_memory_is_made_anew(settled: Iterator[Path], tmp_path: Path, opened: Open) -> None:
    repository, cache = next(settled), tmp_path / "cache"
    whole = opened(repository, cache=cache)
    memory = next(cache.glob("*.index"))
    remembered = memory.read_bytes()
    forged = remembered.replace(whole.files()["d1/f1.py"].blob.encode(), b"0" * 40)
    for damage in (b"", b"nonsense", remembered[:-1], forged):
        memory.write_bytes(damage)
        assert opened(repository, cache=cache).files() == whole.files()
        assert memory.read_bytes() == remembered


def test_an_index_just_written_is_not_remembered(tmp_path: Path, opened: Open) -> None:
    repository = make_repository(tmp_path / "r")
    git(repository, "add", "-A")
    opened(repository, cache=tmp_path / "cache")
    assert not list((tmp_path / "cache").glob("*.index"))


_LINES = st.sampled_from(
    [
        "[core]", '[remote "Origin x"]', '[branch "a]b"]', "[section.sub]", '[q "a\\"b"]', "\tBare = false",
        "\turl = https://u:p@h/x.git", "\tfetch = +refs/heads/*:refs/remotes/origin/*", "\tx = a ; b", "\tx = a # b",
        '\tx = "a b"', "\tx = a\\", "\tx", "\tx =", "\tx = ", " x = 1", "\tx=1", "", "# c", "\tx = a  b ",
        "\tinsteadOf = q", "[a] x = 1", "\t9x = 1", "\tworktree = ../x y", "\tx = 1\r", "\tx = \u00e9", "\tbare = yes",
    ]
)  # fmt: skip


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(lines=st.lists(_LINES, max_size=6))
def test_a_plain_configuration_reads_as_git_reads_it(lines: list[str]) -> None:
    content = "\n".join(["[core]", *lines]).encode() + b"\n"
    found = _plain_configuration(content)
    if found is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "c").write_bytes(content)
        listed = subprocess.run(
            ["git", "config", "--file", f"{folder}/c", "--no-includes", "--null", "--list"],
            capture_output=True,
            check=True,
            env={"PATH": os.environ["PATH"], "HOME": folder},
        ).stdout
    pairs = (item.partition("\n") for item in listed.decode().split("\0") if item)
    assert found == {key.lower(): value for key, _, value in pairs}


def test_what_git_init_and_clone_write_is_plain(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r")
    git(tmp_path, "clone", "-q", str(repository), str(tmp_path / "clone"))
    for folder in (repository, tmp_path / "clone"):
        assert _plain_configuration((folder / ".git" / "config").read_bytes())
