"""Search: every match is of the snapshot's bytes, in bounds, and silence means absence."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from manifests.errors import UsageError
from subagents.codebase import ripgrep
from subagents.codebase.ripgrep import cut_around, search_text, search_text_async
from tests.hostile import commit_all, git, make_repository, write
from tests.subagents.codebase.conftest import Open


def test_matches_come_in_path_and_line_order(tmp_path: Path, opened: Open) -> None:
    snapshot = opened(make_repository(tmp_path / "r"))
    found = search_text(snapshot, r"helper|LIMIT")
    assert [(match.path, match.line, match.text) for match in found.matches] == [
        ("src/app.py", 2, "    return helper()"),
        ("src/app.py", 5, "def helper():"),
        ("src/util.py", 1, "LIMIT = 10"),
    ]
    assert (found.files_searched, found.truncated, found.timed_out, found.errors) == (3, False, False, ())


def test_options(tmp_path: Path, opened: Open) -> None:
    snapshot = opened(
        make_repository(tmp_path / "r", {"a.py": "one\nFoo(x)\nfoobar\nlast\n", "b/c.py": "foo\n", "bc.py": "foo\n"})
    )

    def lines(pattern: str, **options: object) -> list[tuple[str, int]]:
        return [(match.path, match.line) for match in search_text(snapshot, pattern, **options).matches]  # type: ignore[arg-type]

    assert lines("Foo(", fixed=True) == [("a.py", 2)]
    assert lines("foo", ignore_case=True, paths=["a.py"]) == [("a.py", 2), ("a.py", 3)]
    assert lines("foo", whole_word=True) == [("b/c.py", 1), ("bc.py", 1)]
    assert lines("foo", paths=["b"]) == [("b/c.py", 1)]
    assert lines("foo", paths=["b/"]) == [("b/c.py", 1)]
    assert lines("foo", paths=[]) == []
    assert lines("foo", paths=["nowhere"]) == []
    context = search_text(snapshot, "foobar", context=2).matches[0]
    assert (context.before, context.after) == (("one", "Foo(x)"), ("last",))


def test_ignore_rules_hide_nothing_that_is_tracked(tmp_path: Path, opened: Open) -> None:
    repository = make_repository(tmp_path / "r", {"kept.log": "needle\n", "sub/.hidden": "needle\n"})
    for name in (".gitignore", ".ignore", ".rgignore"):
        write(repository, name, "*\n")
    git(repository, "add", "-f", ".")
    commit_all(repository)
    found = search_text(opened(repository), "needle")
    assert [match.path for match in found.matches] == ["kept.log", "sub/.hidden"]


def test_a_changed_file_is_searched_as_it_was(tmp_path: Path, opened: Open) -> None:
    repository = make_repository(tmp_path / "r", {"a.py": "before\n", "b.py": "before\n", "same.py": "before\n"})
    snapshot = opened(repository)
    assert len(search_text(snapshot, "before").matches) == 3
    write(repository, "a.py", "after\n")
    (repository / "b.py").unlink()
    found = search_text(snapshot, "before")
    assert [match.path for match in found.matches] == ["a.py", "b.py", "same.py"]
    assert not search_text(snapshot, "after").matches


def test_a_file_that_changes_under_the_search_is_searched_again(
    tmp_path: Path, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ripgrep's stand-in changes the file after we looked at it and before ripgrep does."""
    repository = make_repository(tmp_path / "r", {"a.py": "one\nneedle before\n", "b.py": "needle b\n"})
    real = ripgrep.rg_executable()
    script = f"#!/bin/sh\nprintf 'needle after\\nx\\n' > '{repository}/a.py'\nexec '{real}' \"$@\"\n"
    write(tmp_path, "rg", script).chmod(0o755)
    snapshot = opened(repository)
    monkeypatch.setattr(ripgrep, "rg_executable", lambda: str(tmp_path / "rg"))
    found = search_text(snapshot, "needle")
    assert [(match.path, match.line, match.text) for match in found.matches] == [
        ("a.py", 2, "needle before"),
        ("b.py", 1, "needle b"),
    ]


def test_bare_and_pinned_snapshots_are_searched_in_copies_that_are_removed(tmp_path: Path, opened: Open) -> None:
    repository = make_repository(tmp_path / "r")
    pinned = opened(repository).id
    git(tmp_path, "clone", "-q", "--bare", str(repository), "bare.git")
    write(repository, "src/app.py", "other\n")
    commit_all(repository)
    for snapshot in (opened(tmp_path / "bare.git"), opened(repository, pinned=pinned)):
        assert [match.line for match in search_text(snapshot, "def ").matches] == [1, 5]
        copies = snapshot.copies.folder()
        assert copies.stat().st_mode & 0o777 == 0o700
        snapshot.close()
        assert not copies.exists()


def test_what_a_filter_made_of_a_file_is_not_what_is_searched(tmp_path: Path, opened: Open) -> None:
    """The stat data says unchanged, and so it is; but the file holds other bytes than the blob."""
    repository = make_repository(
        tmp_path / "r",
        {".gitattributes": "*.enc working-tree-encoding=UTF-16LE\n", "a.enc": "naïve\n".encode("utf-16-le")},
    )
    write(repository, "plain.txt", "naïve\n")
    commit_all(repository)
    snapshot = opened(repository)
    assert not snapshot.id.dirty
    assert snapshot.text("a.enc").encoding == "utf-8"
    found = search_text(snapshot, "na.ve")
    assert [(match.path, match.text) for match in found.matches] == [("a.enc", "naïve"), ("plain.txt", "naïve")]


def test_files_with_the_same_content_all_match(tmp_path: Path, opened: Open) -> None:
    repository = make_repository(tmp_path / "r", {"a.py": "same\n", "b/a.py": "same\n", "c.py": "same\n"})
    git(tmp_path, "clone", "-q", "--bare", str(repository), "bare.git")
    assert [match.path for match in search_text(opened(tmp_path / "bare.git"), "same").matches] == [
        "a.py",
        "b/a.py",
        "c.py",
    ]


@pytest.mark.parametrize("bare", [False, True])
def test_text_in_other_encodings_is_found_as_it_is_read(bare: bool, tmp_path: Path, opened: Open) -> None:
    text = "first\nnaïve café\nlast line\n"
    repository = make_repository(
        tmp_path / "r",
        {
            "bom16.txt": b"\xff\xfe" + text.encode("utf-16-le"),
            "be16.txt": b"\xfe\xff" + text.encode("utf-16-be"),
            "wide.txt": text.encode("utf-16-le"),
            "latin.txt": text.encode("latin-1"),
            "utf8.txt": text.encode(),
            "utf8bom.txt": b"\xef\xbb\xbf" + text.encode(),
            "image.bin": b"caf\0first\nlast line\0" * 10,
        },
    )
    if bare:
        git(tmp_path, "clone", "-q", "--bare", str(repository), "bare.git")
    snapshot = opened(tmp_path / "bare.git" if bare else repository)
    names = ["be16.txt", "bom16.txt", "latin.txt", "utf8.txt", "utf8bom.txt", "wide.txt"]
    for _ in range(2):
        for pattern, line in (("^first$", 1), ("na.ve café", 2), ("café$", 2), ("last line", 3)):
            found = search_text(snapshot, pattern)
            assert [(match.path, match.line) for match in found.matches] == [(name, line) for name in names], pattern
            for match in found.matches:
                assert match.text == snapshot.text(match.path).lines[line - 1]
            assert found.files_searched == 6
            assert not found.errors


def test_crlf_lines_and_a_match_at_their_end(tmp_path: Path, opened: Open) -> None:
    snapshot = opened(make_repository(tmp_path / "r", {"a.txt": "one\r\ntwo\r\n"}))
    assert [match.text for match in search_text(snapshot, "two").matches] == ["two"]


@pytest.mark.parametrize("bare", [False, True])
def test_a_line_of_a_megabyte_is_cut_around_the_match(bare: bool, tmp_path: Path, opened: Open) -> None:
    line = "x" * 600_000 + "needle" + "y" * 600_000
    repository = make_repository(tmp_path / "r", {"a.js": f"start\n{line}\nneedle end\n", "b.js": "needle\n"})
    if bare:
        git(tmp_path, "clone", "-q", "--bare", str(repository), "bare.git")
    found = search_text(opened(tmp_path / "bare.git" if bare else repository), "needle", max_width=100)
    assert [(match.path, match.line, match.cut) for match in found.matches] == [
        ("a.js", 2, True),
        ("a.js", 3, False),
        ("b.js", 1, False),
    ]
    assert len(found.matches[0].text) == 100
    assert "needle" in found.matches[0].text


def test_a_million_matches_in_one_line_are_one_match(tmp_path: Path, opened: Open) -> None:
    repository = make_repository(tmp_path / "r", {"a.js": "a" * 1_000_000 + "\n" + "b\n", "z.js": "aa\n"})
    found = search_text(opened(repository), "a|b", max_width=50)
    assert [(match.path, match.line, len(match.text)) for match in found.matches] == [
        ("a.js", 1, 50),
        ("a.js", 2, 1),
        ("z.js", 1, 2),
    ]


def test_names_that_json_escapes_are_found_for_long_lines_too(tmp_path: Path, opened: Open) -> None:
    raw = b'new\nline "quoted" \\ \xff.js'
    repository = make_repository(tmp_path / "r", {})
    write(repository, raw, "a" * 700_000 + "\n")
    commit_all(repository)
    found = search_text(opened(repository), "a+")
    assert len(found.matches) == 1
    assert found.matches[0].cut


def test_the_limit_stops_at_the_same_place_every_time(tmp_path: Path, opened: Open) -> None:
    repository = make_repository(tmp_path / "r", {f"f{n:03}.py": "hit\nhit\nhit\n" for n in range(100)})
    snapshot = opened(repository)
    results = [search_text(snapshot, "hit", max_matches=20) for _ in range(3)]
    assert results[0] == results[1] == results[2]
    assert len(results[0].matches) == 20
    assert results[0].truncated
    assert results[0].files_searched == 7
    exact = search_text(snapshot, "hit", max_matches=300)
    assert (len(exact.matches), exact.truncated, exact.files_searched) == (300, False, 100)


def test_many_files_are_searched_in_several_runs(tmp_path: Path, opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ripgrep, "_ARGUMENT_BYTES", 200)
    repository = make_repository(tmp_path / "r", {f"f{n:03}.py": f"hit {n}\n" for n in range(100)})
    found = search_text(opened(repository), "hit")
    assert [match.text for match in found.matches] == [f"hit {n}" for n in range(100)]
    assert found.files_searched == 100


def test_time_out_is_not_an_empty_result(tmp_path: Path, opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """ripgrep's stand-in finds one match and then hangs, with a child that holds the pipe open."""
    repository = make_repository(tmp_path / "r")
    snapshot = opened(repository)
    assert search_text(snapshot, "LIMIT").matches
    real = ripgrep.rg_executable()
    write(tmp_path, "rg", f"#!/bin/sh\n'{real}' \"$@\"\nsleep 60 & sleep 60\n").chmod(0o755)
    monkeypatch.setattr(ripgrep, "rg_executable", lambda: str(tmp_path / "rg"))
    started = time.monotonic()
    found = search_text(snapshot, "LIMIT", timeout_s=1)
    assert time.monotonic() - started < 5
    assert found.timed_out
    assert [match.text for match in found.matches] == ["LIMIT = 10"]


def test_matches_survive_errors_about_other_files(tmp_path: Path, opened: Open) -> None:
    repository = make_repository(tmp_path / "r", {"a.py": "needle\n", "z.py": "needle\n"})
    write(repository, "m.py", "needle, untracked\n")
    snapshot = opened(repository)
    (repository / "m.py").unlink()
    found = search_text(snapshot, "needle")
    assert [match.path for match in found.matches] == ["a.py", "z.py"]
    assert len(found.errors) == 1
    assert found.errors[0].startswith("m.py: changed_while_reading")


def test_matches_survive_what_ripgrep_cannot_open(
    tmp_path: Path, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ripgrep's stand-in removes a file just before it is opened: exit code 2, and still a match elsewhere."""
    repository = make_repository(tmp_path / "r", {"a.py": "needle\n", "b.py": "needle\n"})
    real = ripgrep.rg_executable()
    write(tmp_path, "rg", f"#!/bin/sh\nrm -f '{repository}/a.py'\nexec '{real}' \"$@\"\n").chmod(0o755)
    snapshot = opened(repository)
    monkeypatch.setattr(ripgrep, "rg_executable", lambda: str(tmp_path / "rg"))
    found = search_text(snapshot, "needle")
    assert "b.py" in [match.path for match in found.matches]
    assert found.errors


@pytest.mark.parametrize(
    "pattern", ["(", "[", "a{2", "\\p{Nope}", "", "a\0b", "\ud800", "x" * 5000, "a\nb", "(?=x)", "\\1"]
)
def test_what_is_no_pattern_is_a_usage_error(pattern: str, tmp_path: Path, opened: Open) -> None:
    snapshot = opened(make_repository(tmp_path / "r"))
    with pytest.raises(UsageError) as caught:
        search_text(snapshot, pattern)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("pattern", ["-l", "--pre=sh", "-e", "--", "-f/etc/passwd", "--files"])
def test_a_pattern_that_looks_like_an_option_is_a_pattern(pattern: str, tmp_path: Path, opened: Open) -> None:
    repository = make_repository(tmp_path / "r", {"a.sh": f"run {pattern} now\n", "b.sh": "other\n"})
    found = search_text(opened(repository), pattern, fixed=True)
    assert [(match.path, match.text) for match in found.matches] == [("a.sh", f"run {pattern} now")]


@pytest.mark.parametrize(
    "pattern", ["(a+)+$", "(a|aa)+$", "(.*)*(.*)*x", "(?:a?){50}a{50}", "((a{1,100}){1,100}){1,100}"]
)
def test_pathological_patterns_stay_in_bounds(pattern: str, tmp_path: Path, opened: Open) -> None:
    repository = make_repository(tmp_path / "r", {"a.txt": "a" * 200_000 + "!\n"})
    started = time.monotonic()
    try:
        search_text(opened(repository), pattern, timeout_s=5)
    except UsageError as error:
        assert "size limit" in str(error)
    assert time.monotonic() - started < 12


def test_ripgrep_missing_or_too_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    monkeypatch.setattr(ripgrep, "_from_wheel", lambda: None)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    ripgrep.rg_executable.cache_clear()
    try:
        with pytest.raises(UsageError, match="was not found"):
            ripgrep.rg_executable()
        write(tmp_path / "bin", "rg", "#!/bin/sh\necho ripgrep 11.0.2\n").chmod(0o755)
        with pytest.raises(UsageError, match="too old"):
            ripgrep.rg_executable()
        write(tmp_path / "bin", "rg", "#!/nonexistent/interpreter\n").chmod(0o755)
        with pytest.raises(UsageError, match="does not run"):
            ripgrep.rg_executable()
    finally:
        ripgrep.rg_executable.cache_clear()


def test_the_wheel_brings_a_ripgrep() -> None:
    found = ripgrep._from_wheel()
    assert found is not None
    assert os.access(found, os.X_OK)


def test_cutting_keeps_the_match_and_the_width() -> None:
    line = "a" * 50 + "MATCH" + "b" * 50
    for width in (5, 6, 20, 60, 104, 105, 200):
        cut = cut_around(line, 50, 5, width)
        assert "MATCH" in cut
        assert len(cut) == min(width, len(line))
    assert len(cut_around(line, 0, 105, 20)) == 20
    assert cut_around(line, 100, 5, 20) == "b" * 20


async def test_it_can_be_awaited(tmp_path: Path, opened: Open) -> None:
    snapshot = opened(make_repository(tmp_path / "r"))
    found = await search_text_async(snapshot, "LIMIT", max_matches=5)
    assert len(found.matches) == 1
