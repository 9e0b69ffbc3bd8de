"""History: who changed what, with what, bounded and safe."""

from __future__ import annotations

from pathlib import Path

from subagents.codebase.history import cochange, file_history, folder_history, line_history, recent_commits
from tests.hostile import commit_all, git, make_repository, write
from tests.subagents.codebase.conftest import Open


def grown(folder: Path) -> Path:
    repository = make_repository(folder, {"a.py": "one\ntwo\nthree\n", "lib/b.py": "b\n", "c.py": "c\n"})
    write(repository, "a.py", "one\nTWO\nthree\n")
    write(repository, "lib/b.py", "b2\n")
    commit_all(repository, "change a and b")
    write(repository, "a.py", "one\nTWO\nthree\nfour\n")
    write(repository, "lib/b.py", "b3\n")
    commit_all(repository, "change a and b again")
    git(repository, "mv", "a.py", "renamed.py")
    commit_all(repository, "rename a")
    return repository


def test_recent_commits_with_their_paths(tmp_path: Path, opened: Open) -> None:
    repository = grown(tmp_path / "r")
    history = recent_commits(opened(repository))
    assert history.complete
    assert [(commit.subject, commit.paths) for commit in history.commits] == [
        ("rename a", ("a.py", "renamed.py")),
        ("change a and b again", ("a.py", "lib/b.py")),
        ("change a and b", ("a.py", "lib/b.py")),
        ("change", ("a.py", "c.py", "lib/b.py")),
    ]
    assert history.commits[0].id == git(repository, "rev-parse", "HEAD").decode().strip()
    assert history.commits[0].date.isoformat() == "2024-05-01T12:00:00+00:00"
    assert history.commits[0].author == "A U Thor"
    assert len(recent_commits(opened(repository), 2).commits) == 2
    assert not recent_commits(opened(repository), with_paths=False).commits[1].paths


def test_a_file_is_followed_through_its_renames(tmp_path: Path, opened: Open) -> None:
    history = file_history(opened(grown(tmp_path / "r")), "renamed.py")
    assert [commit.subject for commit in history.commits] == [
        "rename a",
        "change a and b again",
        "change a and b",
        "change",
    ]
    assert history.commits[1].paths == ("a.py",)
    assert not file_history(opened(tmp_path / "r"), "nowhere.py").commits


def test_a_folder_has_a_history(tmp_path: Path, opened: Open) -> None:
    history = folder_history(opened(grown(tmp_path / "r")), "lib")
    assert [commit.subject for commit in history.commits] == ["change a and b again", "change a and b", "change"]


def test_lines_and_who_changed_them(tmp_path: Path, opened: Open) -> None:
    repository = grown(tmp_path / "r")
    origins = line_history(opened(repository), "renamed.py", 1, 4)
    assert [(origin.start, origin.end, origin.commit.subject) for origin in origins] == [
        (1, 1, "change"),
        (2, 2, "change a and b"),
        (3, 3, "change"),
        (4, 4, "change a and b again"),
    ]
    assert line_history(opened(repository), "renamed.py", 1, 99)[-1].end == 4
    assert line_history(opened(repository), "renamed.py", 50, 99) == ()
    write(repository, "renamed.py", "other\n")
    assert line_history(opened(repository), "renamed.py", 1, 1) == ()


def test_what_changes_together(tmp_path: Path, opened: Open) -> None:
    found = cochange(opened(grown(tmp_path / "r")))
    partner = found.partners("lib/b.py")[0]
    assert (partner.path, partner.together, partner.of) == ("a.py", 3, 3)
    assert found.changes["c.py"] == 1
    assert found.partners("c.py") == ()
    assert found.partners("c.py", at_least=1)
    assert not cochange(opened(tmp_path / "r"), max_paths=1).partners("a.py")


def test_a_shallow_clone_does_not_pretend_that_one_commit_made_everything(tmp_path: Path, opened: Open) -> None:
    source = grown(tmp_path / "r")
    git(tmp_path, "clone", "-q", "--depth=2", f"file://{source}", "shallow")
    history = recent_commits(opened(tmp_path / "shallow"))
    assert [(commit.subject, commit.paths) for commit in history.commits] == [
        ("rename a", ("a.py", "renamed.py")),
        ("change a and b again", ()),
    ]


def test_without_commits_there_is_no_history(tmp_path: Path, opened: Open) -> None:
    write(tmp_path / "plain", "a.py", "1\n")
    empty = make_repository(tmp_path / "empty", {}, commit=False)
    write(empty, "a.py", "1\n")
    for path in (tmp_path / "plain", empty):
        snapshot = opened(path)
        assert recent_commits(snapshot).commits == ()
        assert file_history(snapshot, "a.py").commits == ()
        assert line_history(snapshot, "a.py", 1, 1) == ()
        assert cochange(snapshot).partners("a.py") == ()


def test_time_runs_out_and_what_was_read_is_kept(tmp_path: Path, opened: Open) -> None:
    history = recent_commits(opened(grown(tmp_path / "r")), timeout_s=0.0)
    assert not history.complete


def test_impossible_dates_and_odd_bytes_are_survived(tmp_path: Path, opened: Open) -> None:
    repository = make_repository(tmp_path / "r")
    tree = git(repository, "rev-parse", "HEAD^{tree}").decode().strip()
    raw = (
        f"tree {tree}\nauthor \xff\xfe <a@b> 99999999999999 +9999\n"
        f"committer x <a@b> 99999999999999 +9999\nencoding latin-1\n\ncaf\xe9 \x1b[31m\n"
    ).encode("latin-1")
    (tmp_path / "commit").write_bytes(raw)
    made = (
        git(repository, "hash-object", "-w", "-t", "commit", "--literally", str(tmp_path / "commit")).decode().strip()
    )
    git(repository, "update-ref", "HEAD", made)
    commits = recent_commits(opened(repository)).commits
    assert len(commits) == 1
    assert commits[0].id == made
