"""Freezing: the tree is the one git itself would make of the same bytes, and nothing of the user's is touched."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from subagents.codebase.snapshot import open_snapshot
from tests.hostile import DEFAULT_FILES, commit_all, git, make_repository, write
from tests.subagents.codebase.conftest import Open


def expected_tree(folder: Path) -> str:
    """What git makes of the working tree, with an index and an object folder of the test's own, without filters."""
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / "copy"
        shutil.copytree(folder, copy, symlinks=True)
        for attributes in copy.rglob(".gitattributes"):
            assert attributes.read_text().startswith("#"), "filters would change what git stores"
        git(copy, "add", "-A")
        return git(copy, "write-tree").decode().strip()


def everything_in(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """All files below a folder, `.git` included, with time, mode and content."""
    found = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        found[str(path.relative_to(folder))] = (status.st_mtime_ns, status.st_mode, content)
    return found


def test_a_clean_tree_is_its_commit(tmp_path: Path, opened: Open) -> None:
    repository = make_repository(tmp_path / "r")
    snapshot = opened(repository)
    assert snapshot.id.commit == git(repository, "rev-parse", "HEAD").decode().strip()
    assert snapshot.id.tree == git(repository, "rev-parse", "HEAD^{tree}").decode().strip()
    assert not snapshot.id.dirty
    assert list(snapshot.files()) == sorted(DEFAULT_FILES)


def change_everything(repository: Path) -> None:
    write(repository, "src/app.py", "changed = True\n")
    write(repository, "new/file.py", "new = True\n")
    (repository / "src" / "util.py").unlink()
    (repository / "README.md").chmod(0o755)
    (repository / "link").symlink_to("src/app.py")


def test_a_dirty_tree_has_the_id_git_gives_it(tmp_path: Path, opened: Open) -> None:
    repository = make_repository(tmp_path / "r")
    change_everything(repository)
    snapshot = opened(repository)
    assert snapshot.id.dirty
    assert snapshot.id.tree == expected_tree(repository)
    assert list(snapshot.files()) == ["README.md", "link", "new/file.py", "src/app.py"]
    assert snapshot.read_bytes("src/app.py") == b"changed = True\n"


def test_freezing_touches_nothing_of_the_users(tmp_path: Path, opened: Open) -> None:
    repository = make_repository(tmp_path / "r")
    change_everything(repository)
    git(repository, "add", "new/file.py")
    git(repository, "stash", "list")
    before = everything_in(repository)
    snapshot = opened(repository, store=tmp_path / "store")
    for path, entry in snapshot.files().items():
        if entry.mode != "link":
            snapshot.read_bytes(path)
    assert everything_in(repository) == before


def test_a_stored_dirty_tree_outlives_the_files(tmp_path: Path, opened: Open) -> None:
    repository = make_repository(tmp_path / "r")
    change_everything(repository)
    first = opened(repository, store=tmp_path / "store")
    pinned = first.id
    wanted = {path: first.read_bytes(path) for path, entry in first.files().items() if entry.mode != "link"}
    first.close()
    write(repository, "src/app.py", "changed again\n")
    shutil.rmtree(repository / "new")
    commit_all(repository)
    again = opened(repository, store=tmp_path / "store", pinned=pinned)
    assert again.id == pinned
    assert {path: again.read_bytes(path) for path in wanted} == wanted


def test_blobs_only_the_index_has_are_kept_too(tmp_path: Path, opened: Open) -> None:
    repository = make_repository(tmp_path / "r")
    write(repository, "staged.py", "staged = 1\n")
    git(repository, "add", "staged.py")
    pinned = opened(repository, store=tmp_path / "store").id
    git(repository, "rm", "-q", "-f", "staged.py")
    git(repository, "gc", "-q", "--prune=now")
    again = opened(repository, store=tmp_path / "store", pinned=pinned)
    assert again.read_bytes("staged.py") == b"staged = 1\n"


def test_a_commit_is_pinned_although_head_moved(tmp_path: Path, opened: Open) -> None:
    repository = make_repository(tmp_path / "r")
    pinned = opened(repository).id
    write(repository, "src/app.py", "later\n")
    commit_all(repository)
    again = opened(repository, pinned=pinned)
    assert again.id == pinned
    assert again.text("src/app.py").lines[0] == "def main():"
    assert opened(repository).text("src/app.py").lines == ("later",)


def test_staged_and_put_back_is_clean_in_content(tmp_path: Path, opened: Open) -> None:
    """The index differs from HEAD and the working tree from the index, but what counts is what the files hold."""
    repository = make_repository(tmp_path / "r")
    original = (repository / "src/app.py").read_bytes()
    write(repository, "src/app.py", "other\n")
    git(repository, "add", "-A")
    write(repository, "src/app.py", original)
    snapshot = opened(repository)
    assert not snapshot.id.dirty
    assert snapshot.read_bytes("src/app.py") == original


def test_a_change_in_the_same_instant_and_of_the_same_size_is_seen(tmp_path: Path, opened: Open) -> None:
    repository = make_repository(tmp_path / "r", {"a.py": "one\n"})
    status = (repository / "a.py").stat()
    (repository / "a.py").write_bytes(b"two\n")
    os.utime(repository / "a.py", ns=(status.st_atime_ns, status.st_mtime_ns))
    snapshot = opened(repository)
    assert snapshot.id.dirty
    assert snapshot.read_bytes("a.py") == b"two\n"


def test_ignored_files_are_not_frozen_and_tracked_ones_are(tmp_path: Path, opened: Open) -> None:
    repository = make_repository(tmp_path / "r", {".gitignore": "*.log\nbuild/\n", "a.py": "1\n"})
    write(repository, "kept.log", "tracked although ignored\n")
    git(repository, "add", "-f", "kept.log")
    commit_all(repository)
    write(repository, "other.log", "x")
    write(repository, "build/out.py", "x")
    write(repository, ".git/info/exclude", "private\n")
    write(repository, "private", "x")
    snapshot = opened(repository)
    assert list(snapshot.files()) == [".gitignore", "a.py", "kept.log"]
    assert not snapshot.id.dirty


def test_the_users_own_ignore_file_counts(tmp_path: Path, opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    write(home, ".gitconfig", f"[core]\n\texcludesFile = {home}/ignored\n")
    write(home, "ignored", "*.swp\n")
    write(home, ".config/git/ignore", "*.orig\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    repository = make_repository(tmp_path / "r")
    write(repository, "a.swp", "x")
    assert not opened(repository).id.dirty
    write(repository, "b.orig", "x")
    assert opened(repository).id.dirty, "core.excludesFile replaces the default file"


def test_a_folder_in_place_of_a_file_and_a_file_in_place_of_a_folder(tmp_path: Path, opened: Open) -> None:
    repository = make_repository(tmp_path / "r", {"a": "file\n", "b/c": "inside\n", "b/d": "inside\n"})
    (repository / "a").unlink()
    write(repository, "a/x", "now a folder\n")
    shutil.rmtree(repository / "b")
    write(repository, "b", "now a file\n")
    snapshot = opened(repository)
    assert snapshot.id.tree == expected_tree(repository)
    assert list(snapshot.files()) == ["a/x", "b"]


def test_a_link_in_place_of_a_folder_is_not_followed(tmp_path: Path, opened: Open) -> None:
    repository = make_repository(tmp_path / "r", {"pack/a.py": "1\n", "pack/b.py": "2\n"})
    (repository / "pack").rename(tmp_path / "moved")
    (repository / "pack").symlink_to("../moved")
    snapshot = opened(repository)
    assert snapshot.id.tree == expected_tree(repository)
    assert snapshot.files()["pack"].mode == "link"


def test_files_in_conflict_are_taken_as_they_are(tmp_path: Path, opened: Open) -> None:
    repository = make_repository(tmp_path / "r", {"a.py": "base\n"})
    git(repository, "checkout", "-q", "-b", "other")
    write(repository, "a.py", "theirs\n")
    commit_all(repository)
    git(repository, "checkout", "-q", "main")
    write(repository, "a.py", "ours\n")
    commit_all(repository)
    git(repository, "merge", "other", check=False)
    snapshot = opened(repository)
    assert snapshot.id.dirty
    assert "<<<<<<< " in snapshot.text("a.py").lines[0]


def test_a_file_of_a_sparse_checkout_is_not_deleted(tmp_path: Path, opened: Open) -> None:
    repository = make_repository(tmp_path / "r", {"keep/a.py": "1\n", "away/b.py": "2\n"})
    git(repository, "sparse-checkout", "set", "keep")
    assert not (repository / "away").exists()
    snapshot = opened(repository)
    assert not snapshot.id.dirty
    assert snapshot.read_bytes("away/b.py") == b"2\n"


def test_index_variants(tmp_path: Path, opened: Open) -> None:
    for option in ("--split-index", "--index-version=4", "--untracked-cache"):
        repository = make_repository(tmp_path / option.strip("-"))
        git(repository, "update-index", option)
        write(repository, "x.py", "x\n")
        snapshot = opened(repository)
        assert snapshot.id.tree == expected_tree(repository), option


def test_checked_out_with_crlf_is_clean_even_when_copied(tmp_path: Path, opened: Open) -> None:
    repository = make_repository(tmp_path / "r", {"a.txt": "one\r\ntwo\r\n", ".gitattributes": "a.txt text eol=crlf\n"})
    copy = tmp_path / "copy"
    shutil.copytree(repository, copy)
    snapshot = opened(copy)
    assert not snapshot.id.dirty
    assert snapshot.read_bytes("a.txt") == b"one\ntwo\n"


def test_the_file_behind_an_lfs_pointer_does_not_make_the_tree_dirty(tmp_path: Path, opened: Open) -> None:
    import hashlib

    content = b"large media" * 1000
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %d\n" % (
        hashlib.sha256(content).hexdigest().encode(),
        len(content),
    )
    repository = make_repository(tmp_path / "r", {"movie.bin": pointer})
    write(repository, "movie.bin", content)
    snapshot = opened(repository)
    assert not snapshot.id.dirty
    assert snapshot.read_bytes("movie.bin") == pointer


def test_executable_bits_count_unless_the_repository_says_not(tmp_path: Path, opened: Open) -> None:
    repository = make_repository(tmp_path / "r")
    (repository / "src/app.py").chmod(0o755)
    assert opened(repository).files()["src/app.py"].mode == "executable"
    git(repository, "config", "core.fileMode", "false")
    assert not opened(repository).id.dirty


def test_a_nested_repository_is_named_not_frozen(tmp_path: Path, opened: Open) -> None:
    repository = make_repository(tmp_path / "r")
    make_repository(repository / "nested")
    snapshot = opened(repository)
    assert not snapshot.id.dirty
    assert [(item.path, item.reason) for item in snapshot.excluded()] == [("nested/", "submodule")]


# --- plain folders ----------------------------------------------------------------------------------------------


def test_a_plain_folder_is_the_tree_git_would_make(tmp_path: Path, opened: Open) -> None:
    folder = tmp_path / "plain"
    for name, content in DEFAULT_FILES.items():
        write(folder, name, content)
    (folder / "src/app.py").chmod(0o755)
    (folder / "link").symlink_to("README.md")
    snapshot = opened(folder)
    assert (snapshot.id.kind, snapshot.id.commit, snapshot.id.dirty) == ("folder", None, False)
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy, symlinks=True)
    make_repository(copy, {})
    assert snapshot.id.tree == git(copy, "rev-parse", "HEAD^{tree}").decode().strip()


def test_a_plain_folder_leaves_out_what_tools_made_and_says_so(tmp_path: Path, opened: Open) -> None:
    folder = tmp_path / "plain"
    write(folder, "a.py", "1\n")
    write(folder, ".hg/store", "x")
    write(folder, "web/node_modules/x/index.js", "x")
    write(folder, "env/pyvenv.cfg", "x")
    write(folder, "env/lib/x.py", "x")
    write(folder, "cache/CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55\n")
    write(folder, "cache/x", "x")
    write(folder, "false/CACHEDIR.TAG", "no\n")
    snapshot = opened(folder)
    assert list(snapshot.files()) == ["a.py", "false/CACHEDIR.TAG"]
    assert sorted(item.path for item in snapshot.excluded()) == [".hg/", "cache/", "env/", "web/node_modules/"]


def test_a_stored_plain_folder_outlives_the_files(tmp_path: Path, opened: Open) -> None:
    folder = tmp_path / "plain"
    write(folder, "deep/er/a.py", "1\n")
    pinned = opened(folder, store=tmp_path / "store").id
    write(folder, "deep/er/a.py", "2\n")
    again = opened(folder, store=tmp_path / "store", pinned=pinned)
    assert again.id == pinned
    assert again.read_bytes("deep/er/a.py") == b"1\n"


def test_a_plain_folder_is_not_read_again_and_changes_are_seen(tmp_path: Path, opened: Open) -> None:
    folder, cache = tmp_path / "plain", tmp_path / "cache"
    for name in ("a.py", "b.py", "c.py"):
        write(folder, name, "old 1\n")
    time.sleep(2.1)  # younger files are not remembered
    first = opened(folder, cache=cache)
    assert opened(folder, cache=cache).id == first.id == opened(folder).id
    times = (folder / "b.py").stat()
    write(folder, "b.py", "new 1\n")
    os.utime(folder / "b.py", ns=(times.st_atime_ns, times.st_mtime_ns))
    (folder / "c.py").unlink()
    again = opened(folder, cache=cache)
    assert again.id == opened(folder).id != first.id
    assert (list(again.files()), again.read_bytes("b.py")) == (["a.py", "b.py"], b"new 1\n")

    (memory,) = [file for file in cache.iterdir() if b"a.py" in file.read_bytes()]  # the version of git lies beside it
    remembered = memory.read_bytes()
    forged = remembered.replace(again.files()["a.py"].blob.encode(), b"0" * 40)
    for damage in (b"", b"nonsense", remembered[:-1], forged):
        memory.write_bytes(damage)
        assert opened(folder, cache=cache).id == again.id
    kept = opened(folder, cache=cache, store=tmp_path / "store").id
    write(folder, "a.py", "x\n")
    assert opened(folder, store=tmp_path / "store", pinned=kept).read_bytes("a.py") == b"old 1\n"


def test_a_cache_that_cannot_be_written_costs_time_only(tmp_path: Path, opened: Open) -> None:
    write(tmp_path / "plain", "a.py", "1\n")
    write(tmp_path, "cache", "a file, no folder")
    assert list(opened(tmp_path / "plain", cache=tmp_path / "cache").files()) == ["a.py"]


def test_the_store_of_a_plain_folder_holds_text_only(tmp_path: Path, opened: Open) -> None:
    folder = tmp_path / "plain"
    write(folder, "a.py", "1\n")
    write(folder, "movie.bin", os.urandom(3_000_000))
    snapshot = opened(folder, store=tmp_path / "store")
    assert len(snapshot.read_bytes("movie.bin")) == 3_000_000
    assert sum(path.stat().st_size for path in (tmp_path / "store").rglob("*") if path.is_file()) < 100_000


def test_special_files_are_named_not_opened(tmp_path: Path, opened: Open) -> None:
    folder = tmp_path / "plain"
    write(folder, "a.py", "1\n")
    os.mkfifo(folder / "pipe")
    snapshot = opened(folder)
    assert list(snapshot.files()) == ["a.py"]
    assert [(item.path, item.reason) for item in snapshot.excluded()] == [("pipe", "unreadable")]


NAMES = st.sampled_from([b"a", b"a.b", b"a-b", b"ab", b"A", b"\xff", b"a b", b"\n", b"z", b"-"])
FILES = st.dictionaries(
    st.lists(NAMES, min_size=1, max_size=3).map(b"/".join),
    st.tuples(st.binary(max_size=40), st.booleans()),
    max_size=12,
)


def without_clashes(files: dict[bytes, tuple[bytes, bool]]) -> dict[bytes, tuple[bytes, bool]]:
    return {path: what for path, what in files.items() if not any(other.startswith(path + b"/") for other in files)}


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(before=FILES.map(without_clashes), after=FILES.map(without_clashes), staged=st.booleans())
def test_frozen_trees_equal_gits_own(
    before: dict[bytes, tuple[bytes, bool]], after: dict[bytes, tuple[bytes, bool]], staged: bool
) -> None:
    """From any committed content to any other in the working tree, staged or not."""
    with tempfile.TemporaryDirectory() as scratch:
        repository = make_repository(Path(scratch) / "r", {})
        lay_out(repository, before)
        commit_all(repository)
        for path in repository.iterdir():
            if path.name != ".git":
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        lay_out(repository, after)
        if staged:
            git(repository, "add", "-A")
        with open_snapshot(repository, store=Path(scratch) / "store") as snapshot:
            assert snapshot.id.tree == expected_tree(repository)
            assert {entry.raw: snapshot.read_bytes(path) for path, entry in snapshot.files().items()} == {
                path: content for path, (content, _) in after.items()
            }
            listed = snapshot.git.run(["ls-tree", "-r", "-z", "--name-only", "--full-tree", snapshot.id.tree])
            assert set(listed.split(b"\0")) - {b""} == set(after)


def lay_out(folder: Path, files: dict[bytes, tuple[bytes, bool]]) -> None:
    for name, (content, executable) in files.items():
        write(folder, name, content).chmod(0o755 if executable else 0o644)


def test_the_store_is_for_its_owner_alone(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r")
    write(repository, "new.py", b"x = 1\n")
    before = os.umask(0)
    try:
        open_snapshot(repository, store=tmp_path / "store").close()
    finally:
        os.umask(before)
    open_to_others = [p for p in (tmp_path / "store").rglob("*") if p.lstat().st_mode & 0o077]
    assert not open_to_others
