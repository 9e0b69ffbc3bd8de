"""Findings enter checked or not at all, once, durable, and with a way to put a wrong citation right."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable

import pytest

from manifests.errors import StateError
from manifests.sessions import Session, SessionStore
from scratch.findings import Finding, quote_hash
from scratch.recorder import CitationRejected, FindingRegistry, TaskRecorder
from scratch.scratchpad import Scratchpad, all_findings
from subagents.engine import Recorder
from tests.faults.faulty import Plan
from tests.faults.processes import run_in_child
from tests.scratch.conftest import MakeRecorder, MemorySource

KEY = "AKIA" + "Q7RZ2MWX" * 2


def reject(recorder: TaskRecorder, citation: tuple[object, ...] | None = None, **changes: object) -> CitationRejected:
    arguments: dict[str, object] = {"kind": "flow", "citations": [citation] if citation else [("src/app.py", 1, 2)]}
    claim = str(changes.pop("claim", "it does"))
    with pytest.raises(CitationRejected) as rejection:
        recorder.record(claim, **{**arguments, **changes})  # type: ignore[arg-type]
    assert recorder.findings() == []
    assert rejection.value.message
    return rejection.value


@pytest.fixture
def recorder(make_recorder: MakeRecorder) -> TaskRecorder:
    recorder = make_recorder()
    recorder.shown("src/app.py", 1, 30)
    return recorder


def test_it_is_a_recorder_as_engines_know_it(recorder: TaskRecorder) -> None:
    protocol: Recorder = recorder
    names = [name for name in vars(Recorder) if not name.startswith("_")]
    assert names
    assert all(callable(getattr(protocol, name)) for name in names)


def test_a_finding_is_on_disk_when_record_returns(recorder: TaskRecorder, session: Session) -> None:
    finding = recorder.record(
        "Steps run in order", kind="flow", citations=[("src/app.py", 3, 4)], symbols=["run"], data={"step": 1}
    )
    assert finding.status == "verified"
    assert finding.citations[0].quote.startswith("line 3 of the")
    assert list(all_findings(session).values()) == [finding]
    assert Finding.from_dict(json.loads(json.dumps(finding.to_dict()))) == finding


def test_rejections_have_a_code_and_the_nearest_match(recorder: TaskRecorder) -> None:
    missing = reject(recorder, ("src/lib/app.py", 1, 2))
    assert (missing.code, missing.nearest[0]) == ("path_not_in_snapshot", "src/app.py")
    assert reject(recorder, ("../../etc/passwd", 1, 2)).code == "path_not_in_snapshot"
    beyond = reject(recorder, ("src/app.py", 39, 45))
    assert beyond.code == "range_outside_file"
    assert any(line.startswith("39: line 39") for line in beyond.nearest)
    unread = reject(recorder, ("src/app.py", 30, 31))
    assert (unread.code, unread.nearest) == ("not_shown", ("src/app.py:1-30",))
    assert reject(recorder, ("src/logo.png", 1, 1)).code == "unreadable"
    wrong = reject(recorder, ("src/app.py", 3, 3, "line 7 of the aplication does step 7"))
    assert wrong.code == "quote_not_found"
    assert wrong.nearest[0].startswith("7: line 7 of the application")


@pytest.mark.parametrize("lines", [(0, 0), (0, 3), (-1, 2), (5, 4), (1, 10**12)])
def test_no_line_zero_no_range_backwards(recorder: TaskRecorder, lines: tuple[int, int]) -> None:
    assert reject(recorder, ("src/app.py", *lines)).code == "range_outside_file"


@pytest.mark.parametrize(
    "citation",
    [("src/app.py", "1", "2"), ("src/app.py", True, 2), ("src/app.py", 1.0, 2.0), ("src/app.py",), (1, 1, 1)],
)
def test_what_is_no_citation_is_rejected(recorder: TaskRecorder, citation: tuple[object, ...]) -> None:
    assert reject(recorder, citation).code == "bad_citation"


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"claim": " \n"}, "empty_claim"),
        ({"claim": "x" * 3_000}, "claim_too_long"),
        ({"citations": []}, "no_citation"),
        ({"citations": [("src/app.py", 1, 1)] * 60}, "too_many"),
        ({"kind": "gossip"}, "bad_value"),
        ({"confidence": 1.5}, "bad_value"),
        ({"relevance": float("nan")}, "bad_value"),
        ({"symbols": ["x" * 600]}, "bad_value"),
        ({"data": {"x": "y" * 5_000}}, "data_too_large"),
        ({"data": {"x": object()}}, "bad_value"),
    ],
)
def test_what_is_no_finding_is_rejected(recorder: TaskRecorder, changes: dict[str, object], code: str) -> None:
    assert reject(recorder, **changes).code == code


def test_wrong_lines_are_put_right_by_the_quoted_text(make_recorder: MakeRecorder) -> None:
    recorder = make_recorder()
    recorder.shown("src/util/text.py", 1, 6)
    finding = recorder.record(
        "It folds", kind="behaviour", citations=[("src/util/text.py", 5, 5, "def fold(text):\n\treturn text")]
    )
    assert finding.citations[0].where == "src/util/text.py:1-2"
    outside = recorder.record(
        "A is empty", kind="structure", citations=[("src/util/text.py", 0, 0, "class A:\n  pass")]
    )
    assert outside.citations[0].where == "src/util/text.py:5-6"


def test_of_several_places_the_nearest_is_taken(make_recorder: MakeRecorder, source: MemorySource) -> None:
    source.contents["twice.py"] = "\n".join(["same call(here)", *["x"] * 20, "same call(here)", *["y"] * 5])
    recorder = make_recorder()
    recorder.shown("twice.py", 1, 27)
    finding = recorder.record("Twice", kind="flow", citations=[("twice.py", 19, 19, "same  call(here)")])
    assert finding.citations[0].start == 22


def test_a_quote_does_not_help_to_cite_what_was_not_shown(recorder: TaskRecorder) -> None:
    assert reject(recorder, ("src/app.py", 3, 3, "line 35 of the application does step 35")).code == "not_shown"


def test_blank_lines_are_no_citation(make_recorder: MakeRecorder) -> None:
    recorder = make_recorder()
    recorder.shown("src/util/text.py", 1, 6)
    assert reject(recorder, ("src/util/text.py", 3, 4)).code == "bad_citation"


def test_lines_shown_piece_by_piece_are_shown(make_recorder: MakeRecorder) -> None:
    recorder = make_recorder()
    for start, end in ((5, 6), (1, 2), (3, 4)):
        recorder.shown("src/app.py", start, end)
    assert recorder.record("Six", kind="flow", citations=[("src/app.py", 1, 6)])
    recorder.shown("src/app.py", 0, 40)
    assert reject_again(recorder) == "not_shown"


def reject_again(recorder: TaskRecorder) -> str:
    with pytest.raises(CitationRejected) as rejection:
        recorder.record("x", kind="flow", citations=[("src/app.py", 20, 21)])
    return rejection.value.code


def test_nobody_cites_what_only_another_subagent_read(make_recorder: MakeRecorder) -> None:
    make_recorder("t1").shown("src/app.py", 1, 10)
    assert reject(make_recorder("t2"), ("src/app.py", 1, 2)).code == "not_shown"


def test_the_same_finding_by_two_subagents_is_stored_once_with_both_origins(
    make_recorder: MakeRecorder, session: Session
) -> None:
    for task in ("t1", "t2", "t1", "t3"):
        recorder = make_recorder(task)
        recorder.shown("src/app.py", 1, 10)
        finding = recorder.record("Same  claim", kind="flow", citations=[("src/app.py", 1, 2)])
    assert finding.origins == ("t1", "t2", "t3")
    stored = all_findings(session)
    assert [one.origins for one in stored.values()] == [("t1", "t2", "t3")]
    written = b"".join(path.read_bytes() for path in (session.folder / "scratch").iterdir())
    assert written.count(b'"kind":"finding"') == 1
    assert written.count(b'"kind":"origin"') == 2
    assert [one.id for one in make_recorder("t2").findings()] == [finding.id]


def test_a_resumed_task_finds_its_findings_notes_and_what_it_was_shown(
    make_recorder: MakeRecorder, session: Session
) -> None:
    first = make_recorder()
    first.shown("src/app.py", 1, 10)
    finding = first.record("Before", kind="flow", citations=[("src/app.py", 1, 2)])
    question = first.question("Why twice?")
    first.note("look at the end")
    again = make_recorder(registry=FindingRegistry.load(session))
    assert {one.id for one in again.findings()} == {finding.id, question.id}
    assert list(again.notes()) == ["look at the end"]
    assert again.record("Before", kind="flow", citations=[("src/app.py", 1, 2)]) == finding
    assert again.record("After", kind="flow", citations=[("src/app.py", 9, 10)])
    assert len(all_findings(session)) == 3


def test_a_change_of_status_outlasts_the_process(make_recorder: MakeRecorder, session: Session) -> None:
    recorder = make_recorder()
    recorder.shown("src/app.py", 1, 10)
    finding = recorder.record("Refutable", kind="flow", citations=[("src/app.py", 1, 2)])
    Scratchpad(session, "t-check").append_status(finding.id, "refuted", "line 2 says otherwise")
    assert FindingRegistry.load(session).all()[0].status == "refuted"


def test_secrets_go_and_the_citation_still_verifies(
    make_recorder: MakeRecorder, session: Session, source: MemorySource
) -> None:
    line = f'key = "{KEY}"'
    source.contents["conf.py"] = f"import os\n{line}\nend = 1"
    recorder = make_recorder()
    recorder.shown("conf.py", 1, 3)
    finding = recorder.record(
        f"The key is {KEY}", kind="risk", citations=[("conf.py", 2, 2, line)], symbols=[KEY], data={"value": KEY}
    )
    recorder.note(KEY)
    recorder.question(f"Is {KEY} live?")
    recorder.evidence(f"found {KEY}".encode(), tool="rg", arguments={"pattern": KEY})
    assert finding.citations[0].quote_sha256 == quote_hash(line)
    stored = all_findings(session)[finding.id]
    assert stored.id == finding.id
    for path in session.folder.rglob("*"):
        assert not path.is_file() or KEY.encode() not in path.read_bytes()


def test_a_process_killed_at_any_operation_loses_no_finding_it_was_told_of(
    store: SessionStore, source: MemorySource, make_recorder: MakeRecorder, session: Session
) -> None:
    def work(task: str) -> Callable[[Callable[[str], None]], None]:
        def record(say: Callable[[str], None]) -> None:
            recorder = make_recorder(task)
            recorder.shown("src/app.py", 1, 30)
            for n in range(1, 4):
                say(recorder.record(f"{task} {n}", kind="flow", citations=[("src/app.py", n, n)]).id)

        return record

    for fault in ("die_before", "die_after", "die_partial"):
        for at in range(1, 11):
            task = f"t-{fault}-{at}"
            ended = run_in_child(forked(session, work(task)), plan=Plan(fault=fault, at=at))  # type: ignore[arg-type]
            kept = list(Scratchpad(session, task).load().findings)
            assert list(ended.said) == kept[: len(ended.said)]
            assert len(kept) - len(ended.said) in (0, 1)
            recorder = make_recorder(task, registry=FindingRegistry.load(session))
            recorder.shown("src/app.py", 1, 30)
            for n in range(1, 4):
                recorder.record(f"{task} {n}", kind="flow", citations=[("src/app.py", n, n)])
            assert len(Scratchpad(session, task).load().findings) == 3


def forked(session: Session, work: Callable[[Callable[[str], None]], None]) -> Callable[[Callable[[str], None]], None]:
    """In a fork the lock is closed on purpose; the test holds it for the child."""

    def run(say: Callable[[str], None]) -> None:
        session._check_writable = lambda: None  # type: ignore[method-assign]
        work(say)

    return run


# --- scratchpads are untrusted -----------------------------------------------------------------------------------


def plant(session: Session, body: dict[str, object]) -> None:
    """A record whose checksums hold: as if another program had written it."""
    session.log("scratch/t9.jsonl", Scratchpad.SCHEMA).append(body)


def sound_finding(make_recorder: MakeRecorder) -> dict[str, object]:
    recorder = make_recorder("t1")
    recorder.shown("src/app.py", 1, 10)
    return recorder.record("Sound", kind="flow", citations=[("src/app.py", 1, 2)]).to_dict()


HOSTILE = {
    "claim": ["", "x" * 100_000, 7, None],
    "kind": ["instruction", None],
    "confidence": [2, "0.5", True, None],
    "citations": [[], [None], [{"path": "x"}], "src/app.py:1"],
    "evidence": [["sha256:zz"], "x", [1]],
    "task": ["../x", "", 1],
    "status": ["proved"],
    "id": ["f0000000000000000"],
    "data": [[1], {"x": "y" * 10_000}],
    "phase": [0, -1, 1.5],
    "recorded_at": ["now", 5],
}


@pytest.mark.parametrize("field", HOSTILE)
def test_hostile_findings_are_refused_when_read_back(make_recorder: MakeRecorder, session: Session, field: str) -> None:
    finding = sound_finding(make_recorder)
    for n, value in enumerate(HOSTILE[field]):
        session.log(f"scratch/h{n}.jsonl", Scratchpad.SCHEMA).append(
            {"kind": "finding", "finding": {**finding, field: value}}
        )
        with pytest.raises(StateError) as refusal:
            Scratchpad(session, f"h{n}").load()
        assert f"h{n}.jsonl" in str(refusal.value)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"kind": "command", "run": "rm"},
        {"kind": "note", "text": "x" * 100_000},
        {"kind": "shown", "path": "a", "start": 0, "end": 5},
        {"kind": "status", "finding": "f1", "status": "great"},
        {"kind": "origin", "finding": "../../x"},
    ],
)
def test_hostile_records_are_refused_when_read_back(session: Session, body: dict[str, object]) -> None:
    plant(session, body)
    with pytest.raises(StateError):
        Scratchpad(session, "t9").load()


def test_a_finding_twice_in_a_scratchpad_is_one(make_recorder: MakeRecorder, session: Session) -> None:
    finding = sound_finding(make_recorder)
    for _ in range(3):
        plant(session, {"kind": "finding", "finding": finding})
    assert len(Scratchpad(session, "t9").load().findings) == 1


def test_sigkill_is_what_the_children_died_of() -> None:
    assert run_in_child(lambda say: os.kill(os.getpid(), signal.SIGKILL)).killed
