"""Sealed documents: what is not ours, not sound or not of now is refused, by name and with the way out."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifests.durable import clean_temporaries, replace_file
from manifests.envelope import Owner, Schema, Trust, read_document, seal, unseal, write_document
from manifests.errors import StateError
from tests.faults.faulty import ERRORS, Plan
from tests.faults.processes import faulty, run_in_child

SCHEMA = Schema(name="leadline/manifest", version=3)
OWNER = Owner(session="20260101-000000-00000000", repository="repo-1")
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
BODY: dict[str, object] = {"question": "how \u00e9?", "tasks": [1, 2.5, None, {"a": "b"}]}
PATH = Path("manifest.json")


def sealed(at: datetime = NOW, schema: Schema = SCHEMA, owner: Owner = OWNER) -> bytes:
    return seal(BODY, schema=schema, owner=owner, at=at)


def opened(data: bytes, trust: Trust | None = None) -> dict[str, object]:
    return unseal(data, path=PATH, schema=SCHEMA, owner=OWNER, trust=trust, now=NOW)


def forged(change: Callable[[dict[str, object]], object]) -> bytes:
    """A document whose checksum holds although its content is none of ours."""
    document = orjson.loads(sealed())
    document.pop("sha256")
    change(document)
    rest = orjson.dumps(document, option=orjson.OPT_INDENT_2)[2:] + b"\n"
    return b'{"sha256":"' + hashlib.sha256(rest).hexdigest().encode() + b'",\n' + rest


def test_what_was_sealed_is_opened() -> None:
    assert opened(sealed()) == BODY


def test_the_checksum_can_be_checked_by_hand() -> None:
    first, rest = sealed().split(b"\n", 1)
    assert hashlib.sha256(rest).hexdigest().encode() in first
    assert orjson.loads(sealed())["session"] == OWNER.session


def deep(levels: int) -> object:
    value: object = 1
    for _ in range(levels):
        value = [value]
    return value


REFUSED = {
    "empty": b"",
    "not JSON": b"hello",
    "no checksum": b'{"schema": "leadline/manifest"}',
    "not an object": b"[]",
    "cut": sealed()[:-20],
    "longer": sealed() + b" ",
    "another session": sealed(owner=Owner(session="20260101-000000-11111111", repository="repo-1")),
    "another repository": sealed(owner=Owner(session=OWNER.session, repository="repo-2")),
    "another schema": sealed(schema=Schema(name="leadline/answer", version=3)),
    "an older schema version": sealed(schema=Schema(name=SCHEMA.name, version=2)),
    "a newer schema version": sealed(schema=Schema(name=SCHEMA.name, version=4)),
    "the future": sealed(NOW + timedelta(hours=1)),
    "a version that is text": forged(lambda document: document.update(version="3")),
    "a time that is none": forged(lambda document: document.update(written_at="yesterday")),
    "a time without a zone": forged(lambda document: document.update(written_at="2026-03-01T00:00:00")),
    "no session": forged(lambda document: document.pop("session")),
    "a body that is a list": forged(lambda document: document.update(body=[])),
    "no body": forged(lambda document: document.pop("body")),
    "deep nesting": forged(lambda document: document.update(body={"a": deep(200)})),
}


@pytest.mark.parametrize("data", REFUSED.values(), ids=REFUSED.keys())
def test_refusals_name_the_file_and_say_what_to_do(data: bytes) -> None:
    with pytest.raises(StateError) as refusal:
        opened(data)
    assert "'manifest.json'" in str(refusal.value)
    assert refusal.value.hint
    assert refusal.value.exit_code == 3


def test_a_newer_version_asks_for_an_upgrade_even_if_its_checksum_is_made_otherwise() -> None:
    newer = sealed(schema=Schema(name=SCHEMA.name, version=4))
    for data in (newer, newer.replace(b'"sha256":"', b'"sha256":"0', 1)[:11] + b"0" * 64 + newer[75:]):
        with pytest.raises(StateError) as refusal:
            opened(data)
        assert "upgrade" in refusal.value.hint


def test_small_differences_between_clocks_are_borne() -> None:
    assert opened(sealed(NOW + timedelta(minutes=5))) == BODY


def test_age_is_refused_only_if_a_limit_is_set() -> None:
    old = sealed(NOW - timedelta(days=400))
    assert opened(old) == BODY
    with pytest.raises(StateError, match="400 days ago"):
        opened(old, Trust(max_age=timedelta(days=30)))


@pytest.mark.parametrize("flip", [1, 0x20, 0x80, 0xFF])
def test_no_flipped_byte_goes_unnoticed(flip: int) -> None:
    data = sealed()
    for place in range(len(data)):
        with pytest.raises(StateError):
            opened(data[:place] + bytes([data[place] ^ flip]) + data[place + 1 :])


@given(st.binary(max_size=200))
def test_any_bytes_are_refused_without_a_traceback(data: bytes) -> None:
    with pytest.raises(StateError):
        opened(data)


@given(st.integers(0, 2000), st.binary(max_size=20), st.integers(0, 50))
def test_no_edit_goes_unnoticed(start: int, inserted: bytes, removed: int) -> None:
    data = sealed()
    edited = data[:start] + inserted + data[start + removed :]
    if edited != data:
        with pytest.raises(StateError):
            opened(edited)


def test_deep_nesting_in_plain_bytes_is_refused_not_recursed_into() -> None:
    rest = b'"body":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n"
    with pytest.raises(StateError):
        opened(b'{"sha256":"' + hashlib.sha256(rest).hexdigest().encode() + b'",\n' + rest)


def test_a_huge_document_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    path.touch(0o600)
    with path.open("r+b") as file:
        file.truncate(1 << 32)
    with pytest.raises(StateError, match="too large"):
        read_document(path, schema=SCHEMA, owner=OWNER)


def put(path: Path, body: dict[str, object]) -> None:
    write_document(path, body, schema=SCHEMA, owner=OWNER)


def get(path: Path) -> dict[str, object]:
    return read_document(path, schema=SCHEMA, owner=OWNER)


def test_a_process_killed_while_replacing_leaves_the_old_document_or_the_new(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    old, new = {"v": "old" * 100}, {"v": "new" * 200}
    with faulty(Plan(fault="none", at=0)) as operations:
        put(path, old)
    kinds = [operation for operation, _ in operations.seen]
    assert kinds == ["create", "write", "sync", "rename", "sync_folder"]
    for fault in ("die_before", "die_after", "die_partial"):
        for at in range(1, len(kinds) + 1):
            put(path, old)
            ended = run_in_child(lambda say: put(path, new), plan=Plan(fault=fault, at=at))  # type: ignore[arg-type]
            assert ended.killed or fault == "die_partial"
            renamed = at > 4 or (at == 4 and fault == "die_after")
            assert get(path) == (new if renamed else old), (fault, at)
            clean_temporaries(tmp_path, skip=frozenset(), label="unlink:temporary")
            assert [one.name for one in tmp_path.iterdir()] == ["manifest.json"]


@pytest.mark.parametrize("error", [error for error in ERRORS if error != "EINTR"])
def test_a_refused_replacement_keeps_the_old_document_and_cleans_up(tmp_path: Path, error: str) -> None:
    path = tmp_path / "manifest.json"
    put(path, {"v": 1})
    for at in range(1, 5):
        with faulty(Plan(fault=error, at=at)), pytest.raises(StateError) as refusal:  # type: ignore[arg-type]
            put(path, {"v": 2})
        assert refusal.value.hint
        assert get(path) == {"v": 1}
        assert [one.name for one in tmp_path.iterdir()] == ["manifest.json"]


@pytest.mark.parametrize("fault", ["EINTR", "partial"])
def test_signals_and_short_writes_do_not_hurt_a_replacement(tmp_path: Path, fault: str) -> None:
    for at in range(1, 7):
        with faulty(Plan(fault=fault, at=at)):  # type: ignore[arg-type]
            put(tmp_path / "manifest.json", {"v": at})
        assert get(tmp_path / "manifest.json") == {"v": at}


def test_a_read_only_folder_is_explained(tmp_path: Path) -> None:
    with faulty(Plan(fault="EACCES", at=1)), pytest.raises(StateError) as refusal:
        replace_file(tmp_path / "x", b"1", label="replace:x")
    assert "LEADLINE_STATE_DIR" in refusal.value.hint
