"""Sessions on disk: told apart, found, locked, private, quick to list; and whole after a crash at any operation."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from manifests.envelope import Schema, Trust
from manifests.errors import StateError, UsageError
from manifests.fields import utc_now
from manifests.manifest import Manifest
from manifests.sessions import SCRATCH_SCHEMA, TRANSCRIPT_SCHEMA, Session, SessionStore
from tests.faults.faulty import ERRORS, Plan
from tests.faults.processes import Ended, child_holding, faulty, run_in_child
from tests.manifests.test_manifest import TASKS, make_busy_manifest, make_manifest

SUMMARY = Schema(name="leadline/phase-summary", version=1)


def make_store(tmp_path: Path) -> SessionStore:
    return SessionStore(tmp_path / "state", redact=lambda value: value)


@pytest.fixture
def store(tmp_path: Path) -> SessionStore:
    return make_store(tmp_path)


def fill(session: Session, manifest: Manifest | None = None) -> None:
    session.write_manifest(replace(manifest or make_busy_manifest(), session=session.id, repository=session.repository))
    session.journal.append("started", n=1)
    session.log(f"scratch/{TASKS[0].id}.jsonl", SCRATCH_SCHEMA).append({"kind": "note", "text": "x"})
    session.log(f"transcripts/{TASKS[0].id}.jsonl", TRANSCRIPT_SCHEMA).append({"role": "user"})
    session.write_document("phases/1.json", SUMMARY, {"phase": 1})


def make_session(store: SessionStore, repository: str = "repo-1", manifest: Manifest | None = None) -> str:
    with store.create(repository) as session:
        fill(session, manifest)
        return session.id


def statuses(store: SessionStore) -> dict[str, str]:
    return {entry.id: entry.status for entry in store.list()}


def test_what_is_written_is_read_back(store: SessionStore) -> None:
    identity = make_session(store)
    session = store.read(store.resolve(identity))
    assert session.read_manifest().question == "How?"
    assert session.read_document("phases/1.json", SUMMARY) == {"phase": 1}
    assert [record.body["kind"] for record in session.journal.records()] == ["opened", "started"]
    with pytest.raises(StateError, match="reading only"):
        session.write_document("x.json", SUMMARY, {})


def test_the_listing_tells_live_interrupted_stopped_finished_and_damaged_apart(store: SessionStore) -> None:
    interrupted = make_session(store)
    finished = make_session(store, manifest=make_busy_manifest().with_status("finished"))
    stopped = make_session(store, "repo-2", make_busy_manifest().with_status("stopped", failure="limit"))
    damaged = make_session(store)
    path = store.resolve(damaged).path / "manifest.json"
    data = bytearray(path.read_bytes())
    data[data.index(b"running") + 2] ^= 1  # still JSON
    path.write_bytes(data)
    live = store.create("repo-1")
    fill(live)
    assert statuses(store) == {
        interrupted: "interrupted",
        finished: "finished",
        stopped: "stopped",
        damaged: "damaged",
        live.id: "live",
    }
    entries = {entry.id: entry for entry in store.list()}
    assert "checksum" in entries[damaged].problem
    assert entries[live.id].holder is not None
    assert entries[live.id].holder.pid == os.getpid()
    assert entries[finished].tasks == {"finished": 1, "failed": 1, "pending": 2}
    live.close()


@pytest.mark.parametrize("name", ["journal.jsonl", f"scratch/{TASKS[0].id}.jsonl", f"transcripts/{TASKS[0].id}.jsonl"])
def test_a_flipped_byte_in_any_log_makes_the_listing_say_damaged(store: SessionStore, name: str) -> None:
    identity = make_session(store)
    path = store.resolve(identity).path / name
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    entry = store.list(deep_check_s=60)[0]
    assert entry.status == "damaged"
    assert name.rpartition("/")[2] in entry.problem


@pytest.mark.parametrize("damage", ["missing", "empty", "folder", "link", "swapped", "readable"])
def test_every_kind_of_damaged_manifest_is_listed_and_refused(store: SessionStore, damage: str) -> None:
    other, identity = make_session(store), make_session(store)
    path = store.resolve(identity).path / "manifest.json"
    data = path.read_bytes()
    if damage != "readable":
        path.unlink()
    match damage:
        case "empty":
            path.touch(0o600)
        case "folder":
            path.mkdir(0o700)
        case "link":
            (path.parent / "elsewhere").write_bytes(data)
            path.symlink_to(path.parent / "elsewhere")
        case "swapped":
            shutil.copy2(store.resolve(other).path / "manifest.json", path)
        case "readable":
            path.chmod(0o644)
    assert statuses(store) == {other: "interrupted", identity: "damaged"}
    with pytest.raises(StateError) as refusal:
        store.read(store.resolve(identity)).read_manifest()
    assert refusal.value.hint
    newest = store.newest_interrupted("repo-1")
    assert newest is not None
    assert newest.id == other


def test_the_newest_interrupted_session_is_the_one_worked_on_last(store: SessionStore) -> None:
    first, second = make_session(store), make_session(store)
    make_session(store, manifest=make_busy_manifest().with_status("finished"))
    make_session(store, "repo-2")
    for worked_on in (first, second, first):
        with store.open(store.resolve(worked_on)) as session:
            session.write_manifest(session.read_manifest().with_run().with_status("stopped"))
        newest = store.newest_interrupted("repo-1")
        assert newest is not None
        assert newest.id == worked_on
    assert store.newest_interrupted("nowhere") is None


def test_abbreviated_ids_are_resolved_or_the_candidates_named(store: SessionStore) -> None:
    first, second = make_session(store), make_session(store)
    assert store.resolve(first).id == first
    assert store.resolve(first[-8:]).id == first
    for text in ("", "nothing", "../x"):
        with pytest.raises(UsageError):
            store.resolve(text)
    with pytest.raises(UsageError) as refusal:
        store.resolve(first[:8])
    assert first in str(refusal.value)
    assert second in str(refusal.value)


def test_folders_and_files_are_private_whatever_the_umask(store: SessionStore) -> None:
    before = os.umask(0)
    try:
        make_session(store)
    finally:
        os.umask(before)
    for here, folders, files in os.walk(store.root):
        for name in folders:
            assert Path(here, name).stat().st_mode & 0o777 == 0o700
        for name in files:
            assert Path(here, name).stat().st_mode & 0o777 == 0o600, name


def test_a_folder_open_to_others_is_refused_with_the_command_that_mends_it(store: SessionStore) -> None:
    entry = store.resolve(make_session(store))
    entry.path.chmod(0o755)
    assert store.list()[0].status == "damaged"
    with pytest.raises(StateError) as refusal:
        store.open(entry)
    assert "chmod 700" in refusal.value.hint


def test_a_root_that_others_can_write_is_refused(store: SessionStore) -> None:
    make_session(store)
    store.root.chmod(0o777)
    with pytest.raises(StateError, match="open to other users"):
        store.create("repo-1")


def test_a_session_folder_that_is_a_link_is_not_followed(store: SessionStore, tmp_path: Path) -> None:
    entry = store.resolve(make_session(store))
    entry.path.rename(tmp_path / "moved")
    entry.path.symlink_to(tmp_path / "moved")
    with pytest.raises(StateError, match="not a folder"):
        store.open(entry)


def test_a_root_that_is_a_file_or_not_writable_is_explained(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("x")
    with pytest.raises(StateError) as refusal:
        make_store(tmp_path).create("repo-1")
    assert refusal.value.hint


@pytest.mark.parametrize("name", ["../x.json", "/etc/passwd", "a/../../x", "", ".hidden", "a/.b", "-x"])
def test_no_name_leads_out_of_the_session(store: SessionStore, name: str) -> None:
    with store.create("repo-1") as session, pytest.raises(ValueError, match="not the name"):
        session.path_of(name)


def test_a_live_session_is_neither_opened_nor_removed(store: SessionStore) -> None:
    identity = make_session(store)
    entry = store.resolve(identity)
    with child_holding(lambda: store.open(entry)) as child:
        assert statuses(store) == {identity: "live"}
        for refused in (store.open, store.remove):
            with pytest.raises(StateError, match=f"process {child} "):
                refused(entry)
    assert statuses(store) == {identity: "interrupted"}
    store.remove(entry)
    assert statuses(store) == {}
    assert os.listdir(store.root / "repo-1") == []  # noqa: PTH208


def test_a_removal_that_died_leaves_no_half_session(store: SessionStore) -> None:
    for at in range(1, 9):
        identity = make_session(store)
        entry = store.resolve(identity)
        run_in_child(lambda say, entry=entry: store.remove(entry), plan=Plan(fault="die_before", at=at))  # type: ignore[misc]
        assert statuses(store) in ({}, {identity: "interrupted"})
        if statuses(store):
            store.remove(entry)
    store.sweep()
    assert os.listdir(store.root / "repo-1") == []  # noqa: PTH208


def test_everything_passes_the_redactor(tmp_path: Path) -> None:
    def redact(value: object) -> object:
        if isinstance(value, dict):
            return {key: redact(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [redact(inner) for inner in value]
        return value.replace("HUSH", "[x]") if isinstance(value, str) else value

    store = SessionStore(tmp_path / "state", redact=redact)
    with store.create("repo-1") as session:
        fill(session, replace(make_busy_manifest(), question="a HUSH b"))
        session.journal.append("x", text="HUSH")
        session.write_document("answer.json", SUMMARY, {"a": ["HUSH"]})
        session.write_text("answer.md", "HUSH")
        assert session.read_manifest().question == "a [x] b"
        found = [path for path in session.folder.rglob("*") if path.is_file() and b"HUSH" in path.read_bytes()]
        assert found == []


def test_a_hundred_sessions_are_listed_quickly(store: SessionStore, record_property: Callable[..., None]) -> None:
    for _ in range(20):
        make_session(store)
    entries = store.list()
    for n in range(80):
        source = entries[n % 20].path
        copy = source.with_name(f"20260101-0000{n % 60:02d}-{n:08x}")
        shutil.copytree(source, copy)
    started = time.process_time()
    found = store.list(deep_check_s=0)
    spent_ms = (time.process_time() - started) * 1e3
    record_property("listing_ms", spent_ms)
    assert len(found) == 100
    assert spent_ms < 150  # of CPU; docs/reliability.md has measured figures


def test_a_question_too_long_to_be_read_back_is_refused_before_any_work(store: SessionStore) -> None:
    with store.create("repo-1") as session, pytest.raises(UsageError, match="question"):
        fill(session, replace(make_busy_manifest(), question="x" * 200_000))


def test_a_clock_set_back_damages_nothing_but_has_to_be_put_right(
    store: SessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    identity = make_session(store)
    yesterday = utc_now() - timedelta(days=1)
    monkeypatch.setattr("manifests.envelope.utc_now", lambda: yesterday)
    assert store.list(deep_check_s=60)[0].status == "interrupted"
    with pytest.raises(StateError, match="in the future") as refusal:
        store.read(store.resolve(identity)).read_manifest()
    assert "clock" in refusal.value.hint


def test_old_phases_of_a_session_still_at_work_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = SessionStore(tmp_path / "state", redact=lambda value: value, trust=Trust(max_age=timedelta(days=30)))
    identity = make_session(store)
    later = utc_now() + timedelta(days=40)
    monkeypatch.setattr("manifests.envelope.utc_now", lambda: later)
    session = store.read(store.resolve(identity))
    assert session.read_document("phases/1.json", SUMMARY) == {"phase": 1}
    assert len(list(session.journal.records())) == 2
    with pytest.raises(StateError, match="40 days ago"):
        session.read_manifest()


def test_hundreds_of_logs_do_not_exhaust_the_descriptors(store: SessionStore) -> None:
    with store.create("repo-1") as session:
        logs = [session.log(f"scratch/t{n}.jsonl", SCRATCH_SCHEMA) for n in range(300)]
        for n in range(3):
            for log in logs:
                log.append({"kind": "note", "n": n}, sync=False)
        assert len(list(Path("/proc/self/fd").iterdir())) < 200
        for n in (0, 150, 299):
            assert len(list(session.read_log(f"scratch/t{n}.jsonl", SCRATCH_SCHEMA))) == 3


# --- crashes -----------------------------------------------------------------------------------------------------


def scenario(store: SessionStore, say: Callable[[str], None]) -> None:
    """What a run does, in small; each step is acknowledged after it returned."""
    with store.create("repo-1") as session:
        manifest = make_manifest(session.id).with_phase(1, "locate", TASKS[:1])
        session.write_manifest(manifest)
        say("manifest pending")
        session.journal.append("planned")
        say("journal planned")
        manifest = manifest.with_task_started(TASKS[0].id)
        session.write_manifest(manifest)
        say("manifest running")
        log = session.log(f"scratch/{TASKS[0].id}.jsonl", SCRATCH_SCHEMA)
        for n in range(2):
            log.append({"kind": "note", "text": f"note {n}"})
            say(f"note {n}")
        session.write_bytes("evidence/ab/abcd", b"bytes", label="replace:evidence")
        say("evidence")
        session.write_manifest(manifest.with_task_ended(TASKS[0].id, "finished", usage={"tokens": 7}))
        say("manifest finished")


ORDER = ["pending", "running", "finished"]


def check_state(store: SessionStore, said: tuple[str, ...]) -> None:
    """All that was acknowledged is there, at most one step more, and the session resumes."""
    entries = store.list(deep_check_s=60)
    assert [entry.status for entry in entries] in ([], ["interrupted"]), entries
    if not entries:
        assert said == ()
        return
    with store.open(entries[0]) as session:
        assert not list(session.folder.rglob("*.tmp"))
        status = session.read_manifest().tasks[0].status
        acknowledged = [text.split()[1] for text in said if text.startswith("manifest")]
        assert ORDER.index(status) - ORDER.index((acknowledged or ["pending"])[-1]) in (0, 1)
        kinds = [record.body["kind"] for record in session.journal.records()]
        assert kinds in ([], ["opened"], ["opened", "planned"])
        assert "journal planned" not in said or "planned" in kinds
        notes = 0
        if session.has(f"scratch/{TASKS[0].id}.jsonl"):
            notes = len(list(session.read_log(f"scratch/{TASKS[0].id}.jsonl", SCRATCH_SCHEMA)))
        assert notes - sum(text.startswith("note") for text in said) in (0, 1)
        if "evidence" in said:
            assert session.path_of("evidence", "ab", "abcd").read_bytes() == b"bytes"
        assert session.read_manifest().usage == ({"tokens": 7} if status == "finished" else {})
        session.journal.append("resumed")


def operations_of(store: SessionStore) -> int:
    with faulty(Plan(fault="none", at=0)) as operations:
        scenario(store, lambda text: None)
    shutil.rmtree(store.root)
    return len(operations.seen)


def run(store: SessionStore, plan: Plan) -> Ended:
    shutil.rmtree(store.root, ignore_errors=True)
    return run_in_child(lambda say: scenario(store, say), plan=plan)


@pytest.mark.parametrize("fault", ["die_before", "die_after", "die_partial"])
def test_a_run_killed_at_any_operation_lost_nothing_it_acknowledged(store: SessionStore, fault: str) -> None:
    total = operations_of(store)
    assert total > 40
    killed = 0
    for at in range(1, total + 1):
        ended = run(store, Plan(fault=fault, at=at))  # type: ignore[arg-type]
        killed += ended.killed
        check_state(store, ended.said)
    assert killed > total * 0.8


@pytest.mark.parametrize("fault", [*ERRORS, "partial"])
def test_a_run_whose_operation_fails_lost_nothing_it_acknowledged(
    store: SessionStore, fault: str, capfd: pytest.CaptureFixture[str]
) -> None:
    total = operations_of(store)
    for at in range(1, total + 1):
        ended = run(store, Plan(fault=fault, at=at))  # type: ignore[arg-type]
        error = capfd.readouterr().err
        assert ended.code == 0 or "manifests.errors.StateError" in error, error
        assert ended.code == 0 or fault not in ("EINTR", "partial")
        check_state(store, ended.said)


def test_a_disk_that_stays_full_is_said_once_and_what_was_there_stays(store: SessionStore) -> None:
    total = operations_of(store)
    for at in range(1, total + 1, 3):
        ended = run(store, Plan(fault="ENOSPC", at=at, lasting=True))
        check_state(store, ended.said)
