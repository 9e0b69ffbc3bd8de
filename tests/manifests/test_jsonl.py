"""Logs: what is acknowledged stays, a torn tail is dropped and said, and no other change goes unnoticed."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from manifests.envelope import Owner, Schema
from manifests.errors import StateError
from manifests.jsonl import RECORD_LIMIT_BYTES, AppendLog, LogReader, line_sum
from tests.faults.faulty import ERRORS, Plan
from tests.faults.processes import faulty, run_in_child

SCHEMA = Schema(name="leadline/journal", version=1)
OWNER = Owner(session="20260101-000000-00000000", repository="repo-1")
BODIES = [
    {"kind": "a", "text": "one"},
    {"kind": "b", "text": "zwei \u00e9 \u4e2d"},
    {"kind": "c", "n": [1, {"x": None}]},
]

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
bodies = st.lists(st.dictionaries(st.text(max_size=8), json_values, max_size=4), min_size=1, max_size=5)


def make_log(path: Path, owner: Owner = OWNER, schema: Schema = SCHEMA) -> AppendLog:
    return AppendLog(path, schema=schema, owner=owner, redact=lambda body: body)


def write(path: Path, records: list[dict[str, object]], owner: Owner = OWNER) -> None:
    log = make_log(path, owner)
    for body in records:
        log.append(body)
    log.close()


def reader(path: Path) -> LogReader:
    return LogReader(path, schema=SCHEMA, owner=OWNER)


def read(path: Path) -> list[dict[str, object]]:
    return [record.body for record in reader(path)]


def lines_of(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(records=bodies)
def test_what_is_appended_is_read_back(tmp_path: Path, records: list[dict[str, object]]) -> None:
    path = tmp_path / "log.jsonl"
    path.unlink(missing_ok=True)
    write(path, records[:1])
    write(path, records[1:])
    assert read(path) == records
    assert [record.seq for record in reader(path)] == list(range(1, len(records) + 1))


def test_a_log_cut_at_any_byte_keeps_all_whole_records_and_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    write(path, BODIES)
    whole = path.read_bytes()
    ends = [sum(len(line) for line in lines_of(path)[: n + 1]) for n in range(len(BODIES) + 1)]
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        log_reader = reader(path).exhaust()
        complete = sum(1 for end in ends[1:] if end <= cut)
        assert read(path) == BODIES[:complete]
        assert (log_reader.torn is not None) == (cut not in (0, *ends)), cut
        log = make_log(path)
        log.append({"kind": "next"})
        log.close()
        assert (log.torn is None) == (log_reader.torn is None)
        assert read(path) == [*BODIES[:complete], {"kind": "next"}]
        assert reader(path).exhaust().torn is None


def test_pages_never_written_before_a_power_cut_are_a_torn_tail(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    write(path, BODIES)
    with path.open("ab") as file:
        file.write(b"\0" * 5000)
    log_reader = reader(path)
    assert [record.body for record in log_reader] == BODIES
    assert log_reader.torn is not None


def test_a_last_record_whose_first_page_never_reached_the_disk_is_a_torn_tail(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    write(path, [*BODIES, {"kind": "long", "text": "x" * 8_000}])
    *sound, last = lines_of(path)
    path.write_bytes(b"".join(sound) + b"\0" * 4_096 + last[4_096:])
    log_reader = reader(path)
    assert [record.body for record in log_reader] == BODIES
    assert log_reader.torn is not None


@pytest.mark.parametrize("flip", [1, 2, 0x20, 0x80, 0xFF])
def test_no_flipped_byte_goes_unnoticed(tmp_path: Path, flip: int) -> None:
    path = tmp_path / "log.jsonl"
    write(path, BODIES)
    whole = path.read_bytes()
    last_line = len(whole) - len(lines_of(path)[-1])
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ flip]) + whole[place + 1 :])
        log_reader = reader(path)
        try:
            log_reader.exhaust()
        except StateError as problem:
            assert repr(str(path)) in str(problem)
            assert problem.hint
        else:
            assert log_reader.torn is not None
            assert place >= last_line


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_edit_of_the_bytes_goes_unnoticed(tmp_path: Path, data: st.DataObject) -> None:
    path = tmp_path / "log.jsonl"
    path.unlink(missing_ok=True)
    write(path, BODIES)
    whole = path.read_bytes()
    start = data.draw(st.integers(0, len(whole) - 1))
    length = data.draw(st.integers(0, 40))
    edited = whole[:start] + data.draw(st.binary(max_size=30)) + whole[start + length :]
    path.write_bytes(edited)
    log_reader = reader(path)
    with suppress(StateError):
        found = [record.body for record in log_reader]
        assert found == BODIES[: len(found)]
        assert len(found) == len(BODIES) or log_reader.torn is not None or edited in [whole[: len(edited)]]


def swap(lines: list[bytes]) -> list[bytes]:
    return [lines[0], lines[2], lines[1], *lines[3:]]


def drop(lines: list[bytes]) -> list[bytes]:
    return [*lines[:1], *lines[2:]]


def double(lines: list[bytes]) -> list[bytes]:
    return [*lines[:2], lines[1], *lines[2:]]


def headless(lines: list[bytes]) -> list[bytes]:
    return lines[1:]


@pytest.mark.parametrize("change", [swap, drop, double, headless])
def test_lines_moved_missing_or_doubled_are_damage(
    tmp_path: Path, change: Callable[[list[bytes]], list[bytes]]
) -> None:
    path = tmp_path / "log.jsonl"
    write(path, BODIES)
    path.write_bytes(b"".join(change(lines_of(path))))
    with pytest.raises(StateError, match="damaged"):
        read(path)


def test_another_sessions_log_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    write(path, BODIES, Owner(session="20260101-000000-ffffffff", repository="repo-1"))
    with pytest.raises(StateError, match="belongs to session"):
        read(path)


def test_another_log_of_the_same_session_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "other.jsonl", BODIES)
    (tmp_path / "other.jsonl").rename(tmp_path / "log.jsonl")
    with pytest.raises(StateError, match=r"written as 'other\.jsonl'"):
        read(tmp_path / "log.jsonl")


def test_a_record_taken_from_another_log_does_not_pass_in_its_place(tmp_path: Path) -> None:
    for folder, text in (("a", "one"), ("b", "two")):
        (tmp_path / folder).mkdir()
        write(tmp_path / folder / "log.jsonl", [{"kind": text}, {"kind": "same"}, {"kind": "same"}])
    ours, theirs = lines_of(tmp_path / "a" / "log.jsonl"), lines_of(tmp_path / "b" / "log.jsonl")
    for n in range(1, 4):
        mixed = [*ours[:n], theirs[n], *ours[n + 1 :]]
        (tmp_path / "a" / "log.jsonl").write_bytes(b"".join(mixed))
        with pytest.raises(StateError, match="damaged"):
            read(tmp_path / "a" / "log.jsonl")


def test_a_newer_schema_version_asks_for_an_upgrade(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    log = make_log(path, schema=Schema(name="leadline/journal", version=2))
    log.append({"kind": "x"})
    log.close()
    with pytest.raises(StateError) as refusal:
        read(path)
    assert "upgrade" in refusal.value.hint


def test_a_gigabyte_line_is_refused_without_loading_it(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    write(path, BODIES)
    with path.open("r+b") as file:
        file.truncate(1 << 30)  # sparse: costs no disk
    import tracemalloc

    tracemalloc.start()
    with pytest.raises(StateError, match="longer than"):
        reader(path).exhaust()
    assert tracemalloc.get_traced_memory()[1] < 4 * RECORD_LIMIT_BYTES
    tracemalloc.stop()


def append_by_hand(path: Path, body: bytes) -> None:
    sound = reader(path).exhaust()
    rest = b'"seq":%d,"body":%b}' % (sound.last_seq + 1, body)
    with path.open("ab") as file:
        file.write(b'{"sum":"' + line_sum(sound.sum, rest).encode() + b'",' + rest + b"\n")


@pytest.mark.parametrize("depth", [150, 900, 5_000])
def test_deep_nesting_is_damage_not_a_stack_overflow(tmp_path: Path, depth: int) -> None:
    path = tmp_path / "log.jsonl"
    write(path, BODIES)
    append_by_hand(path, b'{"a":' + b"[" * depth + b"]" * depth + b"}")
    with pytest.raises(StateError, match="damaged"):
        read(path)


def test_a_body_that_is_no_object_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    write(path, BODIES)
    append_by_hand(path, b"[1]")
    with pytest.raises(StateError, match="damaged"):
        read(path)


def test_a_pipe_planted_as_a_log_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "log.jsonl", 0o600)
    with pytest.raises(StateError, match="not a regular file"):
        read(tmp_path / "log.jsonl")


def test_a_link_planted_as_a_log_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    theirs = tmp_path / "elsewhere" / "log.jsonl"
    write(theirs, BODIES)
    (tmp_path / "log.jsonl").symlink_to(theirs)
    with pytest.raises(StateError, match="cannot read"):
        make_log(tmp_path / "log.jsonl").append({"kind": "x"})
    assert read(theirs) == BODIES


def test_files_are_private(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    write(path, BODIES)
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o644)
    with pytest.raises(StateError, match="open to other users"):
        read(path)


@pytest.mark.parametrize("error", [error for error in ERRORS if error != "EINTR"])
@pytest.mark.parametrize("operation", ["write", "sync"])
def test_a_refused_append_leaves_no_trace_and_the_next_one_works(tmp_path: Path, error: str, operation: str) -> None:
    path = tmp_path / "log.jsonl"
    log = make_log(path)
    log.append(BODIES[0])
    with faulty(Plan(fault=error, at=1, operation=operation)), pytest.raises(StateError) as refusal:  # type: ignore[arg-type]
        log.append(BODIES[1])
    assert refusal.value.hint
    assert read(path) == BODIES[:1]
    log.append(BODIES[2])
    assert read(path) == [BODIES[0], BODIES[2]]
    log.close()


def test_a_full_disk_that_took_half_a_record_leaves_no_trace(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    log = make_log(path)
    log.append(BODIES[0])

    class HalfThenFull:
        def __getattr__(self, name: str) -> object:
            return getattr(before, name)

        def write(self, descriptor: int, data: bytes, *, label: str) -> int:
            if len(data) < 40:
                raise OSError(28, "No space left on device")
            return os.write(descriptor, bytes(data)[:30])

    from manifests.fileops import current, install

    before = current()
    install(HalfThenFull())  # type: ignore[arg-type]
    try:
        with pytest.raises(StateError, match="No space left"):
            log.append(BODIES[1])
    finally:
        install(before)
    assert read(path) == BODIES[:1]
    log.append(BODIES[2])
    assert read(path) == [BODIES[0], BODIES[2]]
    log.close()


@pytest.mark.parametrize("fault", ["EINTR", "partial"])
def test_signals_and_short_writes_lose_nothing(tmp_path: Path, fault: str) -> None:
    path = tmp_path / "log.jsonl"
    for at in range(1, 12):
        path.unlink(missing_ok=True)
        with faulty(Plan(fault=fault, at=at)):  # type: ignore[arg-type]
            write(path, BODIES)
        assert read(path) == BODIES


def test_a_process_killed_at_any_operation_leaves_what_it_acknowledged(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    with faulty(Plan(fault="none", at=0)) as operations:
        write(path, BODIES)
    assert len(operations.seen) >= 2 * len(BODIES)
    for fault in ("die_before", "die_after", "die_partial"):
        for at in range(1, len(operations.seen) + 1):
            path.unlink(missing_ok=True)

            def work(say: Callable[[str], None]) -> None:
                log = make_log(path)
                for n, body in enumerate(BODIES):
                    log.append(body)
                    say(str(n))

            ended = run_in_child(work, plan=Plan(fault=fault, at=at))  # type: ignore[arg-type]
            found = read(path) if path.exists() else []
            assert ended.killed or fault == "die_partial"
            assert found == BODIES[: len(found)]
            assert len(ended.said) <= len(found) <= len(ended.said) + 1
            write(path, [{"kind": "after"}])
            assert read(path) == [*found, {"kind": "after"}]


def test_half_a_surrogate_pair_is_replaced_not_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    write(path, [{"kind": "x", "text": "a\ud800b"}])
    assert read(path) == [{"kind": "x", "text": "a\ufffdb"}]
    assert orjson.loads(lines_of(path)[1])["seq"] == 1
