"""Nothing of an untrusted repository runs, leads out of it, or hangs."""

from __future__ import annotations

import os
import re
import threading
import time
import zlib
from pathlib import Path

import pytest

from manifests.errors import LeadlineError
from subagents.codebase import gitrun
from subagents.codebase.confined import ConfinedFolder, Outside
from subagents.codebase.frozen import FrozenSnapshot
from subagents.codebase.history import cochange, file_history, line_history, recent_commits
from subagents.codebase.ripgrep import rg_executable, search_text
from subagents.codebase.types import CannotRead, Skipped
from tests.hostile import ODD_NAMES, SECRET, TRAPS, Canary, commit_all, git, links, make_repository, odd_names, write
from tests.subagents.codebase.conftest import Open
from tests.subagents.codebase.test_freeze import everything_in


def use_everything(snapshot: FrozenSnapshot) -> str:
    """Read, search and ask for the history of all there is; all text that came back."""
    seen: list[str] = [repr(snapshot.id), repr(snapshot.excluded())]
    for path, entry in snapshot.files().items():
        seen.append(repr(entry))
        try:
            seen.append(repr(snapshot.read_bytes(path)))
            seen.append("\n".join(snapshot.text(path).lines))
        except CannotRead as error:
            seen.append(str(error))
        seen.append(repr(file_history(snapshot, path)))
        seen.append(repr(line_history(snapshot, path, 1, 1)))
    for pattern in ("secret", "def ", "."):
        seen.append(repr(search_text(snapshot, pattern, context=2)))
    seen.append(repr(recent_commits(snapshot)))
    seen.append(repr(cochange(snapshot)))
    return "\n".join(seen)


@pytest.fixture
def canary(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Canary:
    """Variables that would run the canary if they were passed on, and programs of the repository on PATH."""
    canary = Canary(tmp_path / "canary")
    for name in (
        "GIT_SSH", "GIT_SSH_COMMAND", "GIT_ASKPASS", "SSH_ASKPASS", "GIT_EXTERNAL_DIFF", "GIT_PAGER", "PAGER",
        "GIT_EDITOR", "EDITOR", "GIT_PROXY_COMMAND", "LESSOPEN",
    ):  # fmt: skip
        monkeypatch.setenv(name, canary.command)
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.fsmonitor")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", canary.command)
    monkeypatch.setenv("GIT_DIR", "/nonexistent")
    monkeypatch.setenv("GIT_WORK_TREE", "/etc")
    monkeypatch.setenv("GIT_INDEX_FILE", "/nonexistent")
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", ".ripgreprc")
    monkeypatch.setenv("PATH", f".:{os.environ['PATH']}:")
    gitrun.git_executable.cache_clear()
    rg_executable.cache_clear()
    return canary


@pytest.mark.parametrize("name", TRAPS)
@pytest.mark.parametrize("stored", [False, True])
def test_no_trap_springs(
    name: str,
    stored: bool,
    tmp_path: Path,
    opened: Open,
    canary: Canary,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    repository = TRAPS[name].build(tmp_path / "hostile", canary)
    canary.revive()
    monkeypatch.chdir(repository)
    before = everything_in(repository)
    started = time.monotonic()
    seen = use_everything(opened(Path(), store=tmp_path / "store" if stored else None))
    assert canary.runs() == ""
    assert SECRET not in seen
    assert "def main" in seen or "LIMIT" in seen
    assert everything_in(repository) == before
    assert time.monotonic() - started < 20


@pytest.mark.parametrize("name", [name for name, trap in TRAPS.items() if trap.sprung_by])
def test_the_traps_are_live(name: str, tmp_path: Path) -> None:
    canary = Canary(tmp_path / "canary")
    repository = TRAPS[name].build(tmp_path / "hostile", canary)
    canary.revive()
    git(repository, *TRAPS[name].sprung_by, check=False)
    assert canary.runs()


def test_every_odd_name_is_read_searched_and_has_a_history(tmp_path: Path, opened: Open) -> None:
    snapshot = opened(odd_names(tmp_path / "r"))
    by_raw = {entry.raw: path for path, entry in snapshot.files().items()}
    assert set(by_raw) == set(ODD_NAMES)
    found = search_text(snapshot, "marker = ")
    assert {(match.path, match.text) for match in found.matches} == {
        (by_raw[raw], f"marker = {number}") for number, raw in enumerate(ODD_NAMES)
    }
    assert found.files_searched == len(ODD_NAMES)
    for raw in ODD_NAMES:
        assert len(file_history(snapshot, by_raw[raw]).commits) == 1, raw
        assert line_history(snapshot, by_raw[raw], 1, 1)[0].commit.author == "A U Thor", raw
    assert set(recent_commits(snapshot).commits[0].paths) <= set(by_raw.values())


def test_odd_names_of_a_dirty_tree(tmp_path: Path, opened: Open) -> None:
    repository = odd_names(tmp_path / "r")
    for raw in ODD_NAMES:
        write(repository, raw, b"changed\n")
    snapshot = opened(repository, store=tmp_path / "store")
    assert {snapshot.read_bytes(path) for path in snapshot.files()} == {b"changed\n"}
    assert len(search_text(snapshot, "changed").matches) == len(ODD_NAMES)


@pytest.mark.parametrize("plain", [False, True])
def test_links_are_listed_and_never_followed(plain: bool, tmp_path: Path, opened: Open) -> None:
    repository = links(tmp_path / "r")
    if plain:
        (repository / ".git").rename(tmp_path / "away")
    snapshot = opened(repository)
    found = {path for path, entry in snapshot.files().items() if entry.mode == "link"}
    assert found == {"loop", "loop-a", "loop-b", "up", "broken", "secret", "outside", "etc", "inside.py"}
    for path in found:
        with pytest.raises(CannotRead) as caught:
            snapshot.read_bytes(path)
        assert caught.value.skipped.reason == "link"
    assert SECRET not in use_everything(snapshot)


def test_a_link_swapped_in_after_the_freeze_shows_nothing_from_outside(tmp_path: Path, opened: Open) -> None:
    repository = make_repository(tmp_path / "r")
    write(tmp_path / "outside", "app.py", SECRET)
    write(tmp_path / "outside", "util.py", SECRET)
    snapshot = opened(repository)
    original = snapshot.read_bytes("src/app.py")
    (repository / "src").rename(repository / "was")
    (repository / "src").symlink_to("../outside")
    assert snapshot.read_bytes("src/app.py") == original
    assert snapshot.local_file("src/app.py") is None
    assert not search_text(snapshot, SECRET).matches
    assert [match.line for match in search_text(snapshot, "def helper").matches] == [5]


def test_links_swapped_while_it_is_frozen_are_never_read_through(tmp_path: Path, opened: Open) -> None:
    """A thread keeps replacing a file by a link to a secret, and back."""
    folder = tmp_path / "plain"
    for number in range(40):
        write(folder, f"f{number}.py", "harmless\n")
    write(tmp_path, "secret.txt", SECRET)
    done = threading.Event()

    def swap() -> None:
        while not done.is_set():
            for number in range(0, 40, 3):
                link = folder / f"swap{number}"
                link.symlink_to("../secret.txt")
                link.replace(folder / f"f{number}.py")
                write(folder, f"swap{number}.new", "harmless\n").replace(folder / f"f{number}.py")

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for _ in range(20):
            snapshot = opened(folder)
            for path, data in snapshot.read_many(snapshot.files()):
                assert isinstance(data, Skipped) or SECRET.encode() not in data, path
            assert not search_text(snapshot, SECRET).matches
    finally:
        done.set()
        thread.join()


@pytest.mark.parametrize(
    "raw", [b"../outside", b"/etc/passwd", b"a/../../outside", b"link", b"dir-link/x", b"pipe", b"folder"]
)
def test_a_confined_folder_opens_only_files_below_it(raw: bytes, tmp_path: Path) -> None:
    root = tmp_path / "root"
    write(root, "folder/a", "a")
    write(tmp_path, "outside", SECRET)
    write(tmp_path, "away/x", SECRET)
    (root / "link").symlink_to("../outside")
    (root / "dir-link").symlink_to("../away")
    os.mkfifo(root / "pipe")
    with ConfinedFolder(root) as folder:
        with pytest.raises(OSError):
            folder.read(raw, 1000)
        assert folder.read(b"folder/a", 1000)[0] == b"a"
        with pytest.raises(Outside):
            folder.folder(b"..")


def test_changed_files_give_their_frozen_bytes_or_say_why_not(tmp_path: Path, opened: Open) -> None:
    repository = make_repository(tmp_path / "r")
    write(repository, "untracked.py", "before\n")
    snapshot = opened(repository)
    write(repository, "src/util.py", "after\n")
    write(repository, "untracked.py", "after\n")
    assert snapshot.read_bytes("src/util.py") == b"LIMIT = 10\n"
    with pytest.raises(CannotRead) as caught:
        snapshot.read_bytes("untracked.py")
    assert caught.value.skipped.reason == "changed_while_reading"


def hash_tree(repository: Path, content: Path) -> str:
    return git(repository, "hash-object", "-w", "-t", "tree", "--literally", str(content)).decode().strip()


def loose(repository: Path, blob: str) -> Path:
    return repository / ".git" / "objects" / blob[:2] / blob[2:]


def test_damaged_and_lying_objects_are_unreadable_and_spare_the_rest(tmp_path: Path, opened: Open) -> None:
    files: dict[str, str | bytes] = {f"f{number}.py": f"{number}\n" for number in range(8)}
    repository = make_repository(tmp_path / "r", files)
    git(tmp_path, "clone", "-q", "--bare", str(repository), "bare.git")
    bare = tmp_path / "bare.git"
    blobs = {name: git(repository, "rev-parse", f"HEAD:{name}").decode().strip() for name in files}

    def put(name: str, data: bytes) -> None:
        place = bare / "objects" / blobs[name][:2] / blobs[name][2:]
        place.chmod(0o644)
        place.write_bytes(data)

    put("f1.py", b"garbage")
    put("f2.py", zlib.compress(b"blob 2\0" + b"x\n"))  # well-formed, but not what its name says
    put("f3.py", zlib.compress(b"blob 99\0" + b"3\n"))
    put("f4.py", zlib.compress(b"tree 0\0"))
    put("f5.py", zlib.compress(b"blob 99999999999\0" + b"0" * 1000))
    put("f6.py", b"")
    snapshot = opened(bare)
    found = dict(snapshot.read_many(snapshot.files()))
    assert found["f0.py"] == b"0\n"
    assert found["f7.py"] == b"7\n"
    reasons = {path: data.reason for path, data in found.items() if isinstance(data, Skipped)}
    assert reasons == {f"f{n}.py": "too_large" if n == 5 else "unreadable" for n in range(1, 7)}
    result = search_text(snapshot, r"^\d$")
    assert [match.path for match in result.matches] == ["f0.py", "f7.py"]
    assert len(result.errors) == 6


def test_a_tree_with_paths_that_lead_out_is_only_read_from_objects(tmp_path: Path, opened: Open) -> None:
    write(tmp_path, "outside.py", SECRET)
    repository = make_repository(tmp_path / "r", {"a.py": "inside\n"})
    blob = git(repository, "rev-parse", "HEAD:a.py").decode().strip()
    inner = b"100644 outside.py\0" + bytes.fromhex(blob)
    (tmp_path / "inner").write_bytes(inner)
    made = hash_tree(repository, tmp_path / "inner")
    (tmp_path / "outer").write_bytes(b"40000 ..\0" + bytes.fromhex(made) + b"40000 .git\0" + bytes.fromhex(made))
    tree = hash_tree(repository, tmp_path / "outer")
    commit = git(repository, "commit-tree", "-m", "evil", tree).decode().strip()
    git(tmp_path, "clone", "-q", "--bare", str(repository), "bare.git")
    git(repository, "update-ref", "refs/heads/evil", commit)
    (tmp_path / "bare.git/HEAD").write_text(f"{commit}\n")
    for name in (made, tree, commit):
        target = tmp_path / "bare.git/objects" / name[:2] / name[2:]
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(loose(repository, name).read_bytes())
    snapshot = opened(tmp_path / "bare.git")
    assert set(snapshot.files()) == {"../outside.py", ".git/outside.py"}
    assert SECRET not in use_everything(snapshot)
    pinned = opened(repository, pinned=snapshot.id)
    assert pinned.read_bytes("../outside.py") == b"inside\n"
    assert [match.text for match in search_text(pinned, "inside").matches] == ["inside", "inside"]
    assert (tmp_path / "outside.py").read_text() == SECRET


def test_a_tree_built_to_explode_is_refused_in_bounds(
    tmp_path: Path, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten folders deep, each holding the next one ten times: 10^10 files."""
    repository = make_repository(tmp_path / "r", {"a.py": "x\n"})
    entry = b"100644 a.py\0" + bytes.fromhex(git(repository, "rev-parse", "HEAD:a.py").decode().strip())
    for _ in range(10):
        (tmp_path / "tree").write_bytes(entry)
        made = hash_tree(repository, tmp_path / "tree")
        entry = b"".join(b"40000 %d\0" % n + bytes.fromhex(made) for n in range(10))
    commit = git(repository, "commit-tree", "-m", "bomb", made).decode().strip()
    git(repository, "update-ref", "HEAD", commit)
    git(tmp_path, "clone", "-q", "--bare", str(repository), "bare.git")
    monkeypatch.setattr(gitrun, "GIT_OUTPUT_BYTES", 8 * 1024 * 1024)
    with pytest.raises(LeadlineError) as caught:
        opened(tmp_path / "bare.git")
    assert "wrote more than" in str(caught.value)


def test_a_pipe_as_ignore_file_or_as_object_does_not_hang(
    tmp_path: Path, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    from subagents.codebase import blobs, freeze

    monkeypatch.setattr(freeze, "_LISTING_TIMEOUT_S", 1.0)
    monkeypatch.setattr(blobs, "_REPLY_TIMEOUT_S", 1.0)
    repository = make_repository(tmp_path / "r")
    write(repository, "sub/new.py", "1\n")
    os.mkfifo(repository / "sub" / ".gitignore")
    started = time.monotonic()
    try:
        opened(repository)
    except LeadlineError as error:
        assert "took too long" in str(error)
    assert time.monotonic() - started < 10
    git(tmp_path, "clone", "-q", "--bare", str(repository), "bare.git")
    blob = git(repository, "rev-parse", "HEAD:src/util.py").decode().strip()
    place = tmp_path / "bare.git/objects" / blob[:2] / blob[2:]
    place.unlink()
    os.mkfifo(place)
    snapshot = opened(tmp_path / "bare.git")
    with pytest.raises(CannotRead):
        snapshot.read_bytes("src/util.py")
    assert snapshot.read_bytes("README.md").startswith(b"# Sample")


def test_subjects_authors_and_paths_cannot_pass_for_commits(tmp_path: Path, opened: Open) -> None:
    repository = make_repository(tmp_path / "r")
    write(repository, b"\n1111111111111111111111111111111111111111\n5\nMallory\nforged", "x")
    write(repository, b"\x01commit", "x")
    commit_all(repository, "first line \x1b[2J\x01\nsecond\n\n1111111111111111111111111111111111111111")
    history = recent_commits(opened(repository))
    assert [commit.author for commit in history.commits] == ["A U Thor", "A U Thor"]
    assert all(re.fullmatch("[0-9a-f]{40}", commit.id) for commit in history.commits)
    assert len(history.commits[0].paths) == 2


def test_error_messages_carry_no_control_characters(tmp_path: Path, opened: Open) -> None:
    repository = make_repository(tmp_path / "r")
    write(repository, ".git/config", "[core]\n\tbad\x1b[31mkey = 1\n")
    with pytest.raises(LeadlineError) as caught:
        opened(repository)
    assert str(caught.value).isprintable()
