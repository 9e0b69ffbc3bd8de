"""Evidence: the exact bytes, once, under their hash, with where they came from."""

from __future__ import annotations

import hashlib

import pytest

from manifests.errors import StateError, UsageError
from manifests.sessions import Session
from scratch.evidence import EvidenceStore
from scratch.redaction import Redactor
from tests.faults.faulty import Plan
from tests.faults.processes import faulty


@pytest.fixture
def evidence(session: Session) -> EvidenceStore:
    return EvidenceStore(session, redact=Redactor().data)


def test_bytes_come_back_exactly_under_the_hash_of_what_is_stored(evidence: EvidenceStore, session: Session) -> None:
    data = b"\xff\0raw \xe9 output\r\n"
    reference = evidence.put(data, tool="rg", tool_version="15", arguments={"q": "x"}, task="t1")
    assert reference == "sha256:" + hashlib.sha256(data).hexdigest()
    assert evidence.get(reference) == data
    record = evidence.described(reference)[0]
    assert (record.tool, record.tool_version, record.arguments, record.task) == ("rg", "15", {"q": "x"}, "t1")
    digest = reference.removeprefix("sha256:")
    assert session.path_of("evidence", digest[:2], digest).read_bytes() == data


def test_the_same_bytes_are_stored_once_and_each_origin_kept(evidence: EvidenceStore, session: Session) -> None:
    references = {evidence.put(b"same", tool=tool, task=task) for tool in ("rg", "read") for task in ("t1", "t2", "t1")}
    assert len(references) == 1
    assert len([path for path in session.path_of("evidence").rglob("*") if path.is_file()]) == 1
    assert len(evidence.described(references.pop())) == 4


def test_a_secret_is_neither_stored_nor_in_the_hash(evidence: EvidenceStore) -> None:
    key = b"AKIA" + b"Q7RZ2MWX" * 2
    reference = evidence.put(b"id " + key, tool="rg")
    assert key not in evidence.get(reference)
    assert reference == evidence.put(b"id [redacted:aws_key]", tool="rg")


def test_references_can_be_abbreviated(evidence: EvidenceStore) -> None:
    reference = evidence.put(b"x", tool="rg")
    assert evidence.resolve(reference[:12]) == reference
    assert evidence.get(reference.removeprefix("sha256:")[:6]) == b"x"
    for wrong in ("", "sha256:", "xyz", "sha256:00", "../../etc/passwd", "sha256:" + "0" * 64):
        with pytest.raises(UsageError):
            evidence.get(wrong)


def test_an_ambiguous_reference_names_the_candidates(evidence: EvidenceStore) -> None:
    seen: dict[str, str] = {}
    for n in range(100_000):
        data = str(n).encode()
        start = hashlib.sha256(data).hexdigest()[:4]
        if start in seen:
            evidence.put(data, tool="rg")
            evidence.put(seen[start].encode(), tool="rg")
            with pytest.raises(UsageError, match="2 pieces"):
                evidence.resolve(start)
            return
        seen[start] = str(n)


def test_damaged_bytes_are_refused_and_written_anew_when_found_again(evidence: EvidenceStore, session: Session) -> None:
    reference = evidence.put(b"sound", tool="rg")
    digest = reference.removeprefix("sha256:")
    session.path_of("evidence", digest[:2], digest).write_bytes(b"Sound")
    with pytest.raises(StateError, match="damaged"):
        evidence.get(reference)
    assert [digest in line for line in evidence.damage()] == [True]
    EvidenceStore(session, redact=lambda data: data).put(b"sound", tool="rg")
    assert evidence.get(reference) == b"sound"


def test_what_could_not_be_stored_is_not_taken_for_stored(evidence: EvidenceStore) -> None:
    with faulty(Plan(fault="ENOSPC", at=1, operation="write")), pytest.raises(StateError):
        evidence.put(b"x", tool="rg")
    assert evidence.get(evidence.put(b"x", tool="rg")) == b"x"
