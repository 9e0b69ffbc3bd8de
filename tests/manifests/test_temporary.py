"""Folders outside of a session go with their process; those of a process that was killed go with the next one."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

import pytest

from manifests import temporary
from manifests.temporary import make_temporary, remove_temporary, sweep
from tests.faults.processes import child_holding, kill


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(temporary, "_swept", set())
    return tmp_path


def aged(folder: Path) -> Path:
    old = time.time() - 3600
    os.utime(folder, (old, old))
    return folder


def test_what_a_killed_process_left_goes_with_the_next_and_what_is_held_stays(place: Path) -> None:
    mine = aged(make_temporary("view"))
    with child_holding(lambda: make_temporary("copies")) as child:
        (theirs,) = place.glob("leadline-copies-*")
        (theirs / "inner").mkdir()
        aged(theirs)
        assert sweep(place) == 0
        kill(child)
        assert sweep(place) == 1
    assert (mine.is_dir(), theirs.exists()) == (True, False)
    remove_temporary(mine)
    remove_temporary(mine)
    assert list(place.iterdir()) == []


def test_only_our_own_old_private_folders_are_removed(place: Path) -> None:
    elsewhere = place / "elsewhere"
    elsewhere.mkdir(0o700)
    (place / "leadline-link").symlink_to(elsewhere)
    (place / "leadline-file").write_text("x")
    (place / "other-thing").mkdir(0o700)
    (place / "leadline-open").mkdir(0o755)
    (place / "leadline-young").mkdir(0o700)
    for name in ("elsewhere", "other-thing", "leadline-open", "leadline-file"):
        aged(place / name)
    assert sweep(place) == 0
    assert len(list(place.iterdir())) == 6


def test_the_first_folder_of_a_process_sweeps(place: Path) -> None:
    left = place / "leadline-view-abc"
    left.mkdir(0o700)
    aged(left)
    remove_temporary(make_temporary("view"))
    assert not left.exists()
