"""What can be opened, and the clear word for what cannot."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from manifests.errors import LeadlineError, StateError, UsageError
from subagents.codebase import gitrun
from subagents.codebase.snapshot import open_snapshot
from subagents.codebase.types import Snapshot
from tests.hostile import DEFAULT_FILES, SECRET, commit_all, git, make_repository, odd_names, write
from tests.subagents.codebase.conftest import Open


def refusal(path: Path, *, expected: type[LeadlineError] = UsageError, **options: object) -> str:
    with pytest.raises(expected) as caught:
        open_snapshot(path, **options).close()  # type: ignore[arg-type]
    message = str(caught.value)
    assert "\n" not in message
    assert caught.value.hint
    return message


def test_it_is_a_snapshot(tmp_path: Path, opened: Open) -> None:
    snapshot: Snapshot = opened(make_repository(tmp_path / "my repo"))
    assert snapshot.root == tmp_path / "my repo"
    assert snapshot.repository_key.startswith("my-repo-")
    assert snapshot.scope == ()
    snapshot.close()
    snapshot.close()


def test_a_bare_repository_is_read_from_its_objects(tmp_path: Path, opened: Open) -> None:
    source = make_repository(tmp_path / "r")
    git(tmp_path, "clone", "-q", "--bare", str(source), "bare.git")
    snapshot = opened(tmp_path / "bare.git")
    assert snapshot.id == opened(source).id
    assert {path: snapshot.read_bytes(path).decode() for path in snapshot.files()} == DEFAULT_FILES
    assert snapshot.local_file("src/app.py") is None


def test_dot_git_as_path_means_its_working_tree(tmp_path: Path, opened: Open) -> None:
    repository = make_repository(tmp_path / "r")
    assert opened(repository / ".git").root == repository


def test_a_linked_worktree(tmp_path: Path, opened: Open) -> None:
    repository = make_repository(tmp_path / "r")
    git(repository, "worktree", "add", "-q", "../linked", "-b", "side")
    write(tmp_path / "linked", "side.py", "side\n")
    commit = commit_all(tmp_path / "linked")
    write(tmp_path / "linked", "dirty.py", "dirty\n")
    snapshot = opened(tmp_path / "linked")
    assert snapshot.id.commit == commit
    assert snapshot.id.dirty
    assert {"side.py", "dirty.py"} <= set(snapshot.files())
    assert snapshot.repository_key != opened(repository).repository_key


def test_a_submodule_and_the_repository_around_it(tmp_path: Path, opened: Open) -> None:
    inner = make_repository(tmp_path / "inner", {"inner.py": "1\n"})
    outer = make_repository(tmp_path / "outer")
    git(outer, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "sub")
    commit_all(outer)
    around = opened(outer)
    assert around.files()["sub"].mode == "submodule"
    assert not around.id.dirty
    inside = opened(outer / "sub")
    assert inside.root == outer / "sub"
    assert list(inside.files()) == ["inner.py"]


def test_a_separate_git_folder(tmp_path: Path, opened: Open) -> None:
    (tmp_path / "r").mkdir()
    git(tmp_path / "r", "init", "-q", "--separate-git-dir", str(tmp_path / "elsewhere.git"))
    write(tmp_path / "r", "a.py", "1\n")
    commit_all(tmp_path / "r")
    assert "does not point back" in refusal(tmp_path / "r")
    git(tmp_path / "r", "config", "core.worktree", str(tmp_path / "r"))
    assert list(opened(tmp_path / "r").files()) == ["a.py"]


def test_a_git_file_that_points_to_a_foreign_repository_is_refused(tmp_path: Path) -> None:
    private = make_repository(tmp_path / "private", {"secret.txt": SECRET})
    evil = tmp_path / "evil"
    write(evil, ".git", f"gitdir: {private}/.git\n")
    assert "does not point back" in refusal(evil)


def test_a_worktree_that_borrows_a_foreign_repository_is_refused(tmp_path: Path, opened: Open) -> None:
    """Its own half points back, its common folder is somebody else's."""
    private = make_repository(tmp_path / "private", {"secret.txt": SECRET})
    evil = tmp_path / "evil"
    own = evil / "store" / "worktrees" / "x"
    write(evil, "sub/.git", f"gitdir: {own}\n")
    write(own, "gitdir", f"{evil}/sub/.git\n")
    write(own, "commondir", f"{private}/.git\n")
    write(own, "HEAD", "ref: refs/heads/main\n")
    make_repository(tmp_path / "own", {"mine.txt": "mine\n"})
    for part in ("HEAD", "objects", "refs"):
        (tmp_path / "own" / ".git" / part).rename(evil / "store" / part)
    assert "does not point back" in refusal(evil / "sub")
    write(own, "commondir", "../..\n")
    assert opened(evil / "sub").root == evil / "sub"


def test_a_copy_of_a_linked_worktree_does_not_pass_for_it(tmp_path: Path) -> None:
    private = make_repository(tmp_path / "private", {"secret.txt": SECRET})
    git(private, "worktree", "add", "-q", "../linked", "-b", "side")
    write(tmp_path / "evil", ".git", (tmp_path / "linked" / ".git").read_bytes())
    assert "does not point back" in refusal(tmp_path / "evil")


@pytest.mark.parametrize(
    "content", ["", "gitdir: ", "gitdir: nowhere\n", "gitdir: \0\n", "x" * 10_000, "gitdir: .git\n"]
)
def test_a_git_file_without_sense_is_refused(tmp_path: Path, content: str) -> None:
    write(tmp_path / "r", ".git", content)
    refusal(tmp_path / "r")


def test_links_in_place_of_git_folders_are_not_followed(tmp_path: Path) -> None:
    private = make_repository(tmp_path / "private", {"secret.txt": SECRET})
    whole = tmp_path / "whole"
    whole.mkdir()
    (whole / ".git").symlink_to(private / ".git")
    assert "symbolic link" in refusal(whole)
    for part in ("refs", "objects", "HEAD"):
        evil = make_repository(tmp_path / f"evil-{part}")
        (evil / ".git" / part).rename(tmp_path / f"away-{part}")
        (evil / ".git" / part).symlink_to(private / ".git" / part)
        assert "damaged" in refusal(evil)


def test_a_link_below_refs_does_not_lead_to_a_foreign_commit(tmp_path: Path, opened: Open) -> None:
    private = make_repository(tmp_path / "private", {"secret.txt": SECRET})
    evil = make_repository(tmp_path / "evil")
    (evil / ".git/refs/heads").rename(evil / ".git/heads")
    (evil / ".git/refs/heads").symlink_to(private / ".git/refs/heads")
    assert opened(evil).id.commit is None


@pytest.mark.parametrize(
    "head", ["ref: ../../private/.git/refs/heads/main", "ref: refs/heads/../../x", "", "nonsense", "ref: HEAD"]
)
def test_a_head_without_sense_is_refused(tmp_path: Path, head: str) -> None:
    repository = make_repository(tmp_path / "r")
    write(repository, ".git/HEAD", head)
    assert "HEAD" in refusal(repository)


def test_references_that_refer_to_each_other_end(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r")
    write(repository, ".git/refs/heads/a", "ref: refs/heads/b\n")
    write(repository, ".git/refs/heads/b", "ref: refs/heads/a\n")
    write(repository, ".git/HEAD", "ref: refs/heads/a\n")
    refusal(repository)


def test_detached_head_and_packed_references(tmp_path: Path, opened: Open) -> None:
    repository = make_repository(tmp_path / "r")
    first = git(repository, "rev-parse", "HEAD").decode().strip()
    write(repository, "more.py", "1\n")
    second = commit_all(repository)
    git(repository, "pack-refs", "--all")
    assert opened(repository).id.commit == second
    git(repository, "checkout", "-q", "--detach", first)
    assert opened(repository).id.commit == first


def test_a_shallow_clone(tmp_path: Path, opened: Open) -> None:
    source = make_repository(tmp_path / "r")
    commit = commit_all(source, "second")
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{source}", "shallow")
    assert opened(tmp_path / "shallow").id.commit == commit


def test_a_sha256_repository(tmp_path: Path, opened: Open) -> None:
    repository = make_repository(tmp_path / "r", object_format="sha256")
    write(repository, "new.py", "new\n")
    pinned = opened(repository, store=tmp_path / "store").id
    assert len(pinned.tree) == 64
    (repository / "new.py").unlink()
    assert opened(repository, store=tmp_path / "store", pinned=pinned).read_bytes("new.py") == b"new\n"


def test_an_empty_repository(tmp_path: Path, opened: Open) -> None:
    repository = make_repository(tmp_path / "r", {}, commit=False)
    snapshot = opened(repository, store=tmp_path / "store")
    assert (snapshot.id.commit, snapshot.id.dirty, dict(snapshot.files())) == (None, False, {})
    write(repository, "first.py", "1\n")
    snapshot = opened(repository, store=tmp_path / "store")
    assert (snapshot.id.commit, snapshot.id.dirty) == (None, True)
    assert snapshot.read_bytes("first.py") == b"1\n"


def test_an_empty_bare_repository_and_an_empty_folder(tmp_path: Path, opened: Open) -> None:
    git(tmp_path, "init", "-q", "--bare", "bare.git")
    assert not opened(tmp_path / "bare.git").files()
    (tmp_path / "empty").mkdir()
    snapshot = opened(tmp_path / "empty", store=tmp_path / "store")
    assert snapshot.id.tree == "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


def test_a_subfolder_is_the_scope(tmp_path: Path, opened: Open) -> None:
    repository = make_repository(tmp_path / "r")
    snapshot = opened(repository / "src")
    assert snapshot.root == repository
    assert snapshot.scope == ("src",)
    assert list(snapshot.files()) == ["src/app.py", "src/util.py"]
    assert opened(repository / "src" / "app.py").scope == ("src/app.py",)


def test_scopes_are_relative_to_the_path_given(tmp_path: Path, opened: Open) -> None:
    repository = make_repository(tmp_path / "r")
    assert opened(repository / "src", scope=["app.py"]).scope == ("src/app.py",)
    assert opened(repository / "src", scope=["../README.md"]).scope == ("README.md",)
    assert opened(repository, scope=["src", "src/app.py", "src/"]).scope == ("src",)
    assert opened(repository, scope=[str(repository / "src")]).scope == ("src",)
    assert opened(repository, scope=["."]).scope == ()


def test_every_path_key_is_a_scope_and_so_is_every_file_name(tmp_path: Path, opened: Open) -> None:
    repository = odd_names(tmp_path / "r")
    for path, entry in opened(repository).files().items():
        assert opened(repository, scope=[path]).scope == (path,)
        if b"xff" not in entry.raw:  # typed so, it is taken for the key of another name
            assert opened(repository, scope=[os.fsdecode(entry.raw)]).scope == (path,)


@pytest.mark.parametrize("scope", ["..", "/etc", "src/../../x", "nowhere", "sr", "", "a\0b", ".git"])
def test_a_scope_outside_or_without_files_is_refused(tmp_path: Path, scope: str) -> None:
    repository = make_repository(tmp_path / "r")
    refusal(repository, scope=[scope])


def test_a_folder_that_the_repository_around_it_ignores_is_a_plain_folder(tmp_path: Path, opened: Open) -> None:
    repository = make_repository(tmp_path / "r", {".gitignore": "scratch/\n"})
    write(repository, "scratch/a.py", "1\n")
    snapshot = opened(repository / "scratch")
    assert (snapshot.id.kind, list(snapshot.files())) == ("folder", ["a.py"])
    again = opened(snapshot.root, pinned=snapshot.id)
    assert (again.id, list(again.files())) == (snapshot.id, ["a.py"])


def test_one_file_of_a_plain_folder(tmp_path: Path, opened: Open) -> None:
    write(tmp_path / "plain", "a.py", "1\n")
    write(tmp_path / "plain", "b.py", "2\n")
    assert list(opened(tmp_path / "plain" / "a.py").files()) == ["a.py"]


def test_paths_that_are_nothing_to_open(tmp_path: Path) -> None:
    assert "there is no" in refusal(tmp_path / "missing")
    os.mkfifo(tmp_path / "pipe")
    assert "neither" in refusal(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    refusal(tmp_path / "loop")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_folder_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "closed"
    folder.mkdir(mode=0)
    try:
        assert "not readable" in refusal(folder)
    finally:
        folder.chmod(0o700)


def test_a_damaged_repository_is_refused(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r")
    write(repository, ".git/index", b"DIRC nonsense")
    assert "index" in refusal(repository)
    (repository / ".git/HEAD").unlink()
    assert "damaged" in refusal(repository)


@pytest.mark.parametrize(
    "config", ["[core", "[core]\n\trepositoryformatversion = 99\n", "[extensions]\n\tobjectFormat = md5\n"]
)
def test_a_configuration_without_sense_is_refused(tmp_path: Path, config: str) -> None:
    repository = make_repository(tmp_path / "r")
    write(repository, ".git/config", config)
    refusal(repository)


def test_a_pinned_snapshot_that_is_gone_is_a_state_error(tmp_path: Path, opened: Open) -> None:
    repository = make_repository(tmp_path / "r")
    write(repository, "a.py", "1\n")
    pinned = opened(repository).id
    (repository / "a.py").unlink()
    assert "no longer" in refusal(repository, expected=StateError, pinned=pinned)
    write(tmp_path / "plain", "a.py", "1\n")
    assert "no longer" in refusal(tmp_path / "plain", expected=StateError, pinned=pinned)


def test_a_dirty_snapshot_without_a_store_reopens_while_the_files_stay(tmp_path: Path, opened: Open) -> None:
    repository = make_repository(tmp_path / "r")
    write(repository, "a.py", "1\n")
    pinned = opened(repository).id
    assert opened(repository, pinned=pinned).read_bytes("a.py") == b"1\n"


def test_a_repository_of_somebody_else_can_be_read(tmp_path: Path, opened: Open) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root gives files away")
    repository = make_repository(tmp_path / "r")
    for path in [repository, *repository.rglob("*")]:
        os.chown(path, 12345, 12345)
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}
    refused = subprocess.run(["git", "status"], cwd=repository, capture_output=True, env=environment, check=False)
    assert b"dubious" in refused.stderr
    assert opened(repository).read_bytes("src/util.py") == b"LIMIT = 10\n"


# --- git itself -------------------------------------------------------------------------------------------------


@pytest.fixture
def other_git(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """A folder that is the whole PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    gitrun.git_executable.cache_clear()
    yield folder
    gitrun.git_executable.cache_clear()


def test_git_missing(tmp_path: Path, other_git: Path) -> None:
    (tmp_path / "plain").mkdir()
    assert "git was not found" in refusal(tmp_path / "plain")


def test_git_too_old(tmp_path: Path, other_git: Path) -> None:
    (tmp_path / "r" / ".git" / "objects").mkdir(parents=True)
    (tmp_path / "r" / ".git" / "refs").mkdir()
    write(tmp_path / "r", ".git/HEAD", "ref: refs/heads/main\n")
    write(
        other_git,
        "git",
        '#!/bin/sh\n[ "$1" = version ] && echo git version 1.8.3 && exit 0\necho unknown option >&2; exit 129\n',
    )
    (other_git / "git").chmod(0o755)
    assert "git 1.8 is too old" in refusal(tmp_path / "r")


def test_importing_it_loads_nothing_heavy() -> None:
    code = (
        "import sys, subagents.codebase.snapshot, subagents.codebase.ripgrep, subagents.codebase.history;"
        "print(sorted({'git','networkx','anthropic','numpy','tree_sitter','asyncio'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
