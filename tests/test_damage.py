"""Damaged state at the command line: named by doctor, no traceback, never taken for sound; and what repair saves."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.calls import Called, call
from tests.faults.damage import Subject, damages, make_subject, tried
from tests.faults.places import quick_folder
from tests.repositories import git, make_shop

SAMPLES = 60
"""Of all damages so many, evenly spread, in the ordinary suite; `--every-step` tries them all."""


@pytest.fixture(scope="module")
def kept() -> Iterator[tuple[Subject, Path]]:
    with quick_folder() as folder:
        repository = make_shop(folder / "shop")
        yield make_subject(folder / "home", repository), repository


@pytest.fixture
def subject(kept: tuple[Subject, Path], tmp_path: Path) -> Iterator[Subject]:
    """A copy that the test may damage."""
    original = kept[0]
    with quick_folder() as home:
        shutil.copytree(original.home / "state", home / "state")
        (home / "cache").symlink_to(original.home / "cache")
        at = [home / path.relative_to(original.home) for path in (original.folder, original.other)]
        yield Subject(home, at[0], at[1], original.shown, original.resumed)


def flip(path: Path, at: int | None = None) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2 if at is None else at] ^= 1
    path.write_bytes(data)


def test_no_damage_to_any_file_passes_for_content(kept: tuple[Subject, Path], request: pytest.FixtureRequest) -> None:
    every = request.config.getoption("--every-step")
    found = list(damages(kept[0].folder, flips=4 if every else 1, cuts=2 if every else 1))
    step = 1 if every else max(1, len(found) // SAMPLES)
    with quick_folder() as work:
        wrong = [problem for damage in found[::step] for problem in tried(kept[0], damage, work / "copy")]
    assert wrong == []


def test_doctor_finds_a_sound_session_sound_and_counts_what_it_checked(subject: Subject) -> None:
    done = call("doctor", "--json", home=subject.home)
    assert done.code == 0, done.said
    found = json.loads(done.out)["sessions"]
    assert [one["sound"] for one in found] == [True, True]
    for one in found:
        assert min(one["checked"][what] for what in ("documents", "records", "findings", "citations")) > 10
        assert one["damage"] == one["notes"] == []


def test_doctor_says_when_the_repository_is_gone(subject: Subject, kept: tuple[Subject, Path]) -> None:
    away = kept[1].rename(kept[1].with_name("elsewhere"))
    try:
        done = call("doctor", subject.session, home=subject.home)
    finally:
        away.rename(kept[1])
    assert done.code == 0
    assert "citations were not checked" in done.out
    assert "is gone" in done.out


def repaired(subject: Subject) -> tuple[Called, str]:
    before = fingerprint(subject.folder)
    done = call("doctor", subject.session, "--repair", "--json", home=subject.home)
    assert fingerprint(subject.folder) == before
    assert done.code == 0, done.said
    return done, json.loads(done.out)["salvaged"]["session"]


def fingerprint(folder: Path) -> dict[str, bytes]:
    return {path.as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize(
    "what", ["manifest.json", "journal.jsonl", "answer.json", "scratch", "outcomes", "phases/1.json"]
)
def test_what_is_sound_is_saved_into_a_session_that_resumes_to_the_same(subject: Subject, what: str) -> None:
    path = subject.folder / what
    damaged = max(path.iterdir(), key=lambda one: one.stat().st_size) if path.is_dir() else path
    flip(damaged)
    _, new = repaired(subject)
    listed = {
        s["session"]: s["status"] for s in json.loads(call("sessions", "--json", home=subject.home).out)["sessions"]
    }
    assert listed[new] == "interrupted"
    resumed = call("resume", new, "--json", "-q", home=subject.home)
    assert resumed.code == 0, resumed.said
    expected, got = json.loads(subject.shown), json.loads(resumed.out)
    assert [f["id"] for f in got["findings"]] == [f["id"] for f in expected["findings"]]
    assert got["answer"] == expected["answer"]
    assert got["question"] == expected["question"]
    assert call("doctor", new, home=subject.home).code == 0


def test_finished_tasks_that_are_whole_do_not_run_again(subject: Subject) -> None:
    damaged = max((subject.folder / "scratch").iterdir(), key=lambda path: path.stat().st_size)
    flip(damaged, damaged.stat().st_size - 20)
    _, new = repaired(subject)
    got = json.loads(call("resume", new, "--json", "-q", home=subject.home).out)
    ran = {
        record["body"]["task"]
        for record in map(json.loads, (subject.folder.parent / new / "journal.jsonl").read_text().splitlines())
        if record["body"].get("kind") == "task_started"
    }
    assert ran == {damaged.stem}
    assert {task["status"] for task in got["tasks"]} == {"finished"}


def test_a_finding_whose_lines_are_not_in_the_snapshot_is_left_behind(subject: Subject) -> None:
    """A forged scratchpad: every sum holds, but the code does not say what is cited."""
    from manifests.sessions import SCRATCH_SCHEMA, SessionStore
    from scratch.findings import Citation, Finding, quote_hash
    from scratch.scratchpad import Scratchpad

    task = next((subject.folder / "scratch").iterdir()).stem
    finding = Finding(
        claim="The moon is made of cheese.",
        kind="behaviour",
        symbols=(),
        citations=(
            Citation(path="shop/orders.py", start=1, end=1, blob="0" * 40, quote="x", quote_sha256=quote_hash("x")),
        ),
        confidence=1.0,
        relevance=1.0,
        task=task,
        phase=1,
        recorded_at="2026-01-01T00:00:00.000000Z",
        origins=(task,),
    )
    store = SessionStore(subject.home / "state", redact=lambda body: body)
    with store.open(store.resolve(subject.session)) as session:
        Scratchpad(session, task).append_finding(finding)
        assert session.head_of(f"scratch/{task}.jsonl", SCRATCH_SCHEMA) is not None
    done = call("doctor", subject.session, home=subject.home)
    assert done.code == 3
    assert finding.id in done.out
    _, new = repaired(subject)
    got = json.loads(call("resume", new, "--json", "-q", home=subject.home).out)
    assert finding.id not in [f["id"] for f in got["findings"]]


def test_evidence_is_saved_with_its_origin_unless_its_bytes_changed(subject: Subject) -> None:
    from manifests.sessions import SessionStore
    from scratch.evidence import EvidenceStore

    store = SessionStore(subject.home / "state", redact=lambda body: body)
    with store.open(store.resolve(subject.session)) as session:
        evidence = EvidenceStore(session, redact=lambda data: data)
        bad, good = (evidence.put(data, tool="read", arguments={"path": "x"}) for data in (b"bad", b"good"))
    log = subject.folder / "evidence.jsonl"
    log.write_bytes(log.read_bytes().replace(b'"bad"', b'"bat"'))
    done = call("doctor", subject.session, home=subject.home)
    assert (done.code, bad[7:] in done.out) == (3, True)
    _, new = repaired(subject)
    assert call("evidence", good, "--session", new, home=subject.home).out == "good"
    assert call("evidence", bad, "--session", new, home=subject.home).code == 2


def test_a_session_that_nothing_sound_tells_about_is_refused(subject: Subject) -> None:
    for name in ("manifest.json", "journal.jsonl"):
        flip(subject.folder / name, 30)
    before = os.listdir(subject.folder.parent)  # noqa: PTH208
    done = call("doctor", subject.session, "--repair", home=subject.home)
    assert done.code == 3, done.said
    assert "explore it anew" in done.err
    assert os.listdir(subject.folder.parent) == before  # noqa: PTH208


def test_a_frozen_working_tree_is_saved_too(tmp_path: Path) -> None:
    with quick_folder() as home:
        repository = make_shop(home / "shop")
        (repository / "shop" / "refunds.py").write_text(
            "def refund_parcel(order):\n    '''Give it back.'''\n    return order\n"
        )
        first = call("explore", str(repository), "Where is refund_parcel defined?", "-q", "--json", home=home)
        assert first.code == 0, first.said
        git(repository, "clean", "-qfd")
        (folder,) = (home / "state").glob("*/*")
        flip(folder / "manifest.json")
        done = call("doctor", folder.name, "--repair", "--json", home=home)
        assert done.code == 0, done.said
        got = call("resume", json.loads(done.out)["salvaged"]["session"], "--json", "-q", home=home)
        assert got.code == 0, got.said
        assert json.loads(got.out)["answer"] == json.loads(first.out)["answer"]


@pytest.mark.parametrize("what", ["HEAD", "config", "pack", "idx", "alternates", "hooks", "a link", "a strange folder"])
def test_whatever_was_changed_in_a_frozen_tree_is_said_and_configuration_does_no_harm(
    tmp_path: Path, what: str
) -> None:
    with quick_folder() as home:
        repository = make_shop(home / "shop")
        (repository / "shop" / "refunds.py").write_text("def refund_parcel(order):\n    return order\n")
        first = call("explore", str(repository), "Where is refund_parcel defined?", "-q", "--json", home=home)
        assert first.code == 0, first.said
        (folder,) = (home / "state").glob("*/*")
        store = folder / "snapshot.git"
        assert call("doctor", folder.name, home=home).code == 0
        match what:
            case "pack" | "idx":
                (path,) = (store / "objects" / "pack").glob(f"*.{what}")
                path.chmod(0o600)
                flip(path)
            case "HEAD" | "config":
                flip(store / what)
            case "alternates":
                (store / "objects" / "info" / "alternates").touch(0o600)
            case "hooks":
                (store / "hooks").mkdir(0o700)
            case "a link":
                (store / "config").unlink()
                (tmp_path / "target").write_text("kept")
                (store / "config").symlink_to(tmp_path / "target")
            case _:
                (store / "objects" / "aa").mkdir(0o700)
        done = call("doctor", folder.name, home=home)
        assert (done.code, "snapshot.git" in done.out) == (3, True), done.said
        if what not in ("pack", "idx"):
            again = call("resume", folder.name, "--json", "-q", home=home)
            assert (again.code, json.loads(again.out)["answer"]) == (0, json.loads(first.out)["answer"])
        if what == "a link":
            assert (tmp_path / "target").read_text() == "kept"


def test_repair_wants_a_name(subject: Subject) -> None:
    done = call("doctor", "--repair", home=subject.home)
    assert (done.code, "SESSION" in done.err) == (2, True)
