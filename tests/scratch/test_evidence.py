"""Evidence: the exact bytes, once, under their hash, with where they came from."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from manifests.errors import StateError, UsageError
from manifests.jsonl import AppendLog
from manifests.sessions import TRANSCRIPT_SCHEMA, Session, SessionEntry, SessionStore
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


def place_of(session: Session, reference: str) -> Path:
    """Where a piece stands that is too large for a log."""
    digest = reference.removeprefix("sha256:")
    return session.path_of("evidence", digest[:2], digest)


@pytest.mark.parametrize(
    "data", [b"", b"text\n", "\u2028 \x00 \U0001f600".encode(), b"\xff\xfe\0", b"x" * 3_000_000, b"\0" * 1_000_000]
)
@pytest.mark.parametrize("begun", [True, False])
def test_bytes_of_every_kind_and_size_come_back_also_from_another_process(
    session: Session, store: SessionStore, data: bytes, begun: bool
) -> None:
    if begun:
        transcript(session)
    reference = EvidenceStore(session, redact=lambda data: data).put(data, tool="rg", task="t1")
    session.close()
    with store.read(entry_of(session)) as again:
        assert EvidenceStore(again, redact=lambda data: data).get(reference) == data


def entry_of(session: Session) -> SessionEntry:
    """A session without a manifest, which no listing shows."""
    return SessionEntry(
        id=session.id, repository=session.repository, path=session.folder, status="interrupted", tasks={}
    )


def transcript(session: Session, task: str = "t1") -> AppendLog:
    log = session.log(f"transcripts/{task}.jsonl", TRANSCRIPT_SCHEMA)
    log.append({"k": "open"})
    return log


def test_evidence_of_a_task_with_a_transcript_stands_in_it_and_costs_no_sync(session: Session) -> None:
    log = transcript(session)
    evidence = EvidenceStore(session, redact=Redactor().data)
    with faulty(Plan(fault="none", at=0)) as operations:
        first, second = (evidence.put(data, tool="rg", task="t1") for data in (b"one", b"two"))
    assert {operation for operation, _ in operations.seen} == {"write"}
    assert [evidence.get(reference) for reference in (first, second)] == [b"one", b"two"]
    with faulty(Plan(fault="none", at=0)) as operations:
        log.append({"k": "reply"})
        evidence.settle([first, second])
    assert [operation for operation, _ in operations.seen] == ["write", "sync"]
    assert not session.has("evidence.jsonl")


def test_evidence_named_in_another_file_is_synced_before_once(session: Session) -> None:
    transcript(session)
    evidence = EvidenceStore(session, redact=Redactor().data)
    reference = evidence.put(b"one", tool="rg", task="t1")
    for syncs in (1, 0):
        with faulty(Plan(fault="none", at=0)) as operations:
            evidence.settle([reference])
        assert [operation for operation, _ in operations.seen] == ["sync"] * syncs
    transcript(session, "t2")
    evidence.put(b"two", tool="rg", task="t1")
    with faulty(Plan(fault="none", at=0)) as operations:
        evidence.put(b"two", tool="rg", task="t2")
    assert [operation for operation, _ in operations.seen] == ["sync", "write"]


def test_a_sync_that_failed_is_not_tried_again(session: Session) -> None:
    """The kernel may have dropped the bytes: a second one would vouch for what is gone."""
    transcript(session)
    evidence = EvidenceStore(session, redact=Redactor().data)
    reference = evidence.put(b"one", tool="rg", task="t1")
    with faulty(Plan(fault="EIO", at=1, operation="sync")), pytest.raises(StateError, match="sync"):
        evidence.settle([reference])
    with pytest.raises(StateError, match="sync"):
        evidence.settle([reference])


def test_an_argument_cannot_pose_as_the_bytes(session: Session) -> None:
    evidence = EvidenceStore(session, redact=Redactor().data)
    reference = evidence.put(b"true", tool="rg", arguments={"text": "forged", "reference": "sha256:" + "0" * 64})
    evidence.put(b"true", tool="rg", arguments={"text": "forged"}, task="t2")
    assert EvidenceStore(session, redact=Redactor().data).get(reference) == b"true"


def test_damage_hides_no_evidence_but_its_own(session: Session) -> None:
    evidence = EvidenceStore(session, redact=Redactor().data)
    references = [evidence.put(b"piece %d" % n, tool="rg") for n in range(3)]
    path = session.path_of("evidence.jsonl")
    path.write_bytes(path.read_bytes().replace(b"piece 1", b"piece 7"))
    again = EvidenceStore(session, redact=Redactor().data)
    assert [again.get(references[n]) for n in (0, 2)] == [b"piece 0", b"piece 2"]
    with pytest.raises(StateError, match="damaged"):
        again.get(references[1])
    assert [data for _, data in again.salvage()] == [b"piece 0", b"piece 2"]
    path.write_bytes(path.read_bytes().replace(references[1].encode(), b"sha256:" + b"z" * 64))
    with pytest.raises(StateError, match="damaged"):  # it may have stood there
        EvidenceStore(session, redact=Redactor().data).get(references[1])


def test_the_same_bytes_are_stored_once_and_each_origin_kept(evidence: EvidenceStore, session: Session) -> None:
    references = {evidence.put(b"same", tool=tool, task=task) for tool in ("rg", "read") for task in ("t1", "t2", "t1")}
    assert len(references) == 1
    assert session.path_of("evidence.jsonl").read_text().count('"text":') == 1
    again = EvidenceStore(session, redact=Redactor().data)
    assert again.put(b"same", tool="rg", task="t3") in references
    assert session.path_of("evidence.jsonl").read_text().count('"text":') == 1
    assert evidence.digests() == [reference.removeprefix("sha256:") for reference in references]
    assert len(evidence.described(references.pop())) == 5


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
    sound = b"sound" * 1_000_000
    reference = evidence.put(sound, tool="rg")
    digest = reference.removeprefix("sha256:")
    place_of(session, reference).write_bytes(b"Sound")
    with pytest.raises(StateError, match="damaged"):
        evidence.get(reference)
    assert [digest in line for line in evidence.damage()] == [True]
    EvidenceStore(session, redact=lambda data: data).put(sound, tool="rg")
    assert evidence.get(reference) == sound


def test_what_could_not_be_stored_is_not_taken_for_stored(evidence: EvidenceStore) -> None:
    with faulty(Plan(fault="ENOSPC", at=1, operation="write")), pytest.raises(StateError):
        evidence.put(b"x", tool="rg")
    assert evidence.get(evidence.put(b"x", tool="rg")) == b"x"
