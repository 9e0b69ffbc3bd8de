"""Every parser of what nobody vouches for: it returns, or refuses in its own words; it never does anything else.

The suite makes a short run. A long one: HYPOTHESIS_PROFILE=search LEADLINE_FUZZ_EXAMPLES=20000 pytest tests/fuzz
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from manifests.envelope import Owner, Schema, Trust, seal, unseal
from manifests.errors import LeadlineError, StateError, UsageError
from manifests.fields import Malformed, parse_timestamp
from manifests.jsonl import AppendLog, LogReader
from manifests.locks import Holder
from manifests.manifest import Manifest
from orchestrator.settings import load_settings
from orchestrator.stored import KeptAnswer
from orchestrator.summaries import summary_from_dict
from orchestrator.terminal import printable, printable_json
from scratch.evidence import EvidenceRecord
from scratch.findings import Finding
from scratch.redaction import Redactor, redact_text
from scratch.verify import parse_citation
from subagents.claude.ledger import entry_from_json
from subagents.codebase.paths import from_key, to_key
from subagents.codebase.textfile import decode
from subagents.codebase.types import CannotRead, FileEntry
from tests.manifests.test_manifest import make_busy_manifest

EXAMPLES = int(os.environ.get("LEADLINE_FUZZ_EXAMPLES", "60"))
fuzzed = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), print_blob=True)

OWNER = Owner(session="20260101-000000-00000000", repository="repo-1")
SCHEMA = Schema(name="leadline/test", version=1)
PATH = Path("/state/x.json")

json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=12), inner, max_size=5),
    max_leaves=20,
)


@st.composite
def mutated(draw: st.DrawFn, sound: bytes) -> bytes:
    """Sound bytes with some replaced, removed, doubled or put in."""
    data = bytearray(sound)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        match draw(st.sampled_from(("replace", "remove", "double", "insert"))):
            case "replace":
                data[at : at + 1] = draw(st.binary(min_size=1, max_size=1))
            case "remove":
                del data[at : at + draw(st.integers(1, 60))]
            case "double":
                data[at:at] = data[at : at + draw(st.integers(1, 200))]
            case _:
                data[at:at] = draw(st.binary(max_size=20))
    return bytes(data)


@st.composite
def altered(draw: st.DrawFn, sound: dict[str, Any]) -> Any:
    """A sound document with one value somewhere in it replaced or removed."""
    document = orjson.loads(orjson.dumps(sound))
    node = document
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        if not keys:
            return document
        key = draw(st.sampled_from(keys))
        if isinstance(node[key], dict | list) and node[key] and draw(st.booleans()):
            node = node[key]
        elif draw(st.booleans()):
            node[key] = draw(json_values)
            return document
        else:
            del node[key]
            return document


BODY = {"a": [1, 2.5, None, True], "text": "x" * 50, "nested": {"deep": {"deeper": []}}}
SEALED = seal(BODY, schema=SCHEMA, owner=OWNER)
MANIFEST = make_busy_manifest().to_dict()
FINDING = {
    "claim": "It does.",
    "kind": "flow",
    "status": "verified",
    "confidence": 0.5,
    "relevance": 0.5,
    "symbols": ["a"],
    "citations": [
        {"path": "a.py", "start": 1, "end": 2, "blob": "0" * 40, "quote": "x", "quote_sha256": "1" * 64},
    ],
    "task": "t1",
    "phase": 1,
    "recorded_at": "2026-01-01T00:00:00.000000Z",
    "evidence": ["sha256:" + "2" * 64],
    "data": {"step": 1},
    "origins": ["t1"],
    "id": "f" + "0" * 16,
}
SUMMARY = {
    "phase": 1,
    "title": "locate",
    "findings": ["f1", "f2"],
    "open_questions": ["why?"],
    "left_out": 0,
    "markdown": "x",
}
ENTRY = {
    "task": "t1",
    "turn": 1,
    "kind": "message",
    "usage": {"uncached": 1, "output": 2},
    "bound": [1, 2],
    "cleared": False,
}
ANSWER = {
    "markdown": "x",
    "found": True,
    "statements": [{"text": "x", "findings": ["f1"]}],
    "question": "?",
    "basis": "0" * 64,
    "reason": "",
    "coverage": {"files_total": 1, "files_read": 1, "skipped": [["a", "binary", 1]], "truncated": [], "timed_out": []},
    "redacted": {"jwt": 1},
}


@fuzzed
@given(data=mutated(SEALED) | st.binary(max_size=300))
def test_envelopes(data: bytes) -> None:
    try:
        body = unseal(data, path=PATH, schema=SCHEMA, owner=OWNER, trust=Trust())
    except StateError as refusal:
        assert refusal.hint
        return
    assert data == SEALED
    assert body == BODY


@pytest.fixture(scope="module")
def log_bytes() -> Iterator[tuple[Path, bytes]]:
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as folder:
        path = Path(folder, "log.jsonl")
        log = AppendLog(path, schema=SCHEMA, owner=OWNER, redact=lambda body: body)
        for n in range(4):
            log.append({"n": n, "text": "y" * n * 9}, sync=False)
        log.close()
        yield path, path.read_bytes()


@fuzzed
@given(data=st.data())
def test_logs(log_bytes: tuple[Path, bytes], data: st.DataObject) -> None:
    path, sound = log_bytes
    path.write_bytes(data.draw(mutated(sound) | st.binary(max_size=300)))
    reader = LogReader(path, schema=SCHEMA, owner=OWNER)
    try:
        bodies = [record.body for record in reader]
    except StateError as refusal:
        assert refusal.hint
        return
    assert bodies == [{"n": n, "text": "y" * n * 9} for n in range(len(bodies))]


@fuzzed
@given(value=altered(MANIFEST) | json_values)
def test_manifests(value: Any) -> None:
    try:
        manifest = Manifest.from_dict(value)
    except Malformed:
        return
    assert Manifest.from_dict(manifest.to_dict()) == manifest


@fuzzed
@given(value=altered(FINDING) | json_values)
def test_findings(value: Any) -> None:
    try:
        finding = Finding.from_dict(value)
    except Malformed:
        return
    assert Finding.from_dict(finding.to_dict()) == finding


@fuzzed
@given(value=altered(ANSWER) | json_values)
def test_answers(value: Any) -> None:
    try:
        kept = KeptAnswer.from_dict(value)
    except Malformed:
        return
    assert KeptAnswer.from_dict(kept.to_dict()) == kept


@fuzzed
@given(value=altered(SUMMARY))
def test_phase_summaries(value: Any) -> None:
    assert summary_from_dict(value, {}) is None or not value["findings"]


@fuzzed
@given(value=altered(ENTRY) | json_values)
def test_charges(value: Any) -> None:
    try:
        entry = entry_from_json(value)
    except Malformed:
        return
    assert entry.bound_input >= 0


@fuzzed
@given(value=json_values)
def test_evidence_records_and_abouts(value: Any) -> None:
    for parse in (
        EvidenceRecord.from_dict,
        lambda body: Manifest.from_about(body if isinstance(body, dict) else {}, session="s", repository="r"),
    ):
        try:
            parse(value)
        except Malformed:
            continue


@fuzzed
@given(data=st.binary(max_size=200) | json_values.map(orjson.dumps))
def test_lock_records(data: bytes) -> None:
    holder = Holder.from_bytes(data)
    assert holder is None or Holder.from_bytes(holder.to_bytes()) == holder


@fuzzed
@given(text=st.text(max_size=60))
def test_times(text: str) -> None:
    try:
        parse_timestamp(text)
    except Malformed:
        return


@fuzzed
@given(text=st.text(max_size=80) | st.from_regex(r"[a-z/:#]{1,9}[:#]L?\d{0,5}[-:]?L?\d{0,5}", fullmatch=True))
def test_citations_as_text(text: str) -> None:
    found = parse_citation(text)
    assert found is None or 1 <= found.start <= found.end


@fuzzed
@given(
    text=st.text(max_size=300)
    | st.lists(
        st.sampled_from(
            ("password = ", "'", '"', "://", "@", "Bearer ", "sk-ant-", "ghp_", "eyJ", ".", "\n", "-----BEGIN RSA ")
        )
        | st.from_regex(r"[A-Za-z0-9+/=_-]{1,50}", fullmatch=True),
        max_size=20,
    ).map("".join)
)
def test_redaction_keeps_lines_and_is_idempotent(text: str) -> None:
    once, counts = redact_text(text)
    assert redact_text(once) == (once, {})
    assert once.count("\n") == text.count("\n")
    assert bool(counts) == (once != text)
    assert Redactor().data(text.encode("utf-8", "surrogatepass")) is not None


@fuzzed
@given(text=st.text(max_size=200))
def test_what_is_printed_holds_no_control_character(text: str) -> None:
    assert not any((ord(c) < 32 and c not in "\n\t") or 0x7F <= ord(c) < 0xA0 for c in printable(text))


@fuzzed
@given(json_values)
def test_json_is_printed_as_the_same_document_without_control_characters(value: Any) -> None:
    text = orjson.dumps({"a": value}, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS).decode()
    shown = printable_json(text)
    assert printable(shown) == shown
    assert orjson.loads(shown) == orjson.loads(text)


@fuzzed
@given(data=st.binary(max_size=400) | st.text(max_size=100).map(lambda text: text.encode("utf-16", "surrogatepass")))
def test_files_of_the_repository(data: bytes) -> None:
    try:
        found = decode(FileEntry("a.txt", b"a.txt", "0" * 40, "file"), data)
    except CannotRead:
        return
    assert all("\n" not in line for line in found.lines)


@fuzzed
@given(raw=st.binary(min_size=1, max_size=60).filter(lambda raw: b"\0" not in raw))
def test_path_keys_lead_back_to_the_bytes(raw: bytes) -> None:
    key = to_key(raw)
    key.encode()
    assert from_key(key) == raw


@fuzzed
@given(
    data=st.binary(max_size=200)
    | st.text(max_size=100).map(lambda text: f"[limits]\n{text}".encode("utf-8", "replace"))
)
def test_configuration(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "config.toml")
        path.write_bytes(data)
        try:
            load_settings({"LEADLINE_CONFIG": str(path), "LEADLINE_STATE_DIR": folder, "LEADLINE_CACHE_DIR": folder})
        except UsageError as refusal:
            assert refusal.hint
        except LeadlineError:
            raise
