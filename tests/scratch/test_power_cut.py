"""Whatever a power cut takes, no record names evidence that is gone, and nothing acknowledged is lost."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from manifests.fileops import install
from manifests.sessions import TRANSCRIPT_SCHEMA, SessionStore
from scratch.evidence import EvidenceStore
from scratch.recorder import FindingRegistry, TaskRecorder
from scratch.redaction import Redactor
from scratch.scratchpad import all_findings
from tests.faults.places import quick_folder
from tests.faults.power import Powered, PowerLost
from tests.manifests.test_sessions import make_manifest
from tests.scratch.conftest import APP, MemorySource, NoText

LARGE = b"large " * 200_000


def work(store: SessionStore, say: Callable[[str], None]) -> None:
    """Two tasks as an engine runs them: output becomes evidence, a transcript names it, a reply is synced, findings."""
    redactor = Redactor()
    with store.create("repo-1") as session:
        session.write_manifest(make_manifest(session.id))
        say("begun")
        evidence = EvidenceStore(session, redact=redactor.data)
        registry = FindingRegistry()
        for task in ("t1", "t2", "t3"):
            recorder = TaskRecorder(
                session,
                task=task,
                phase=1,
                source=MemorySource({"src/app.py": APP}),
                registry=registry,
                evidence=evidence,
                redactor=redactor,
                cannot_read=NoText,
            )
            log = None
            if task != "t3":  # which has no transcript
                log = session.log(f"transcripts/{task}.jsonl", TRANSCRIPT_SCHEMA)
                log.append({"k": "open"})
            recorder.shown("src/app.py", 1, 40)
            for n, data in enumerate((b"of " + task.encode(), *[LARGE] * (task == "t2"), b"the same for all")):
                reference = recorder.evidence(data, tool="read", arguments={"n": n})
                if log is not None:
                    log.append({"k": "result", "evidence": reference}, sync=False)
                if data != b"the same for all":
                    claim, citations = f"It does {n} for {task}", [("src/app.py", 1, 2)]
                    say(recorder.record(claim, kind="flow", citations=citations, evidence=[reference]).id)
            if task == "t2" and log is not None:  # in t1 nothing follows what both were given
                log.append({"k": "reply"})


def check(root: Path, said: list[str]) -> None:
    store = SessionStore(root, redact=lambda body: body)
    folders = [path for path in root.glob("*/*") if path.is_dir()]
    if not folders or not (folders[0] / "manifest.json").exists():
        assert said == []
        return
    (entry,) = store.list(deep_check_s=60)
    assert entry.status == "interrupted", entry
    with store.open(entry) as session:
        evidence = EvidenceStore(session, redact=lambda data: data)
        findings = all_findings(session)
        assert set(said[1:]) <= set(findings)
        named = {reference for finding in findings.values() for reference in finding.evidence}
        for task in session.names_of("transcripts", ".jsonl"):
            for record in session.read_log(f"transcripts/{task}.jsonl", TRANSCRIPT_SCHEMA):
                if record.body["k"] == "result":
                    named.add(str(record.body["evidence"]))
        for reference in named:
            assert evidence.get(reference)
        assert list(evidence.damage()) == []
        evidence.put(b"and it goes on", tool="read", task="t1")


LOSES: dict[str, Callable[[Path], bool]] = {
    "everything": lambda path: True,
    "evidence": lambda path: path.name == "evidence.jsonl" or path.parent.parent.name == "evidence",
    "transcripts": lambda path: path.suffix == ".jsonl" and path.parent.name == "transcripts",
    "the first transcript": lambda path: path.name == "t1.jsonl" and path.parent.name == "transcripts",
    "scratchpads": lambda path: path.suffix == ".jsonl" and path.parent.name == "scratch",
}


def test_no_record_names_evidence_that_the_power_took() -> None:
    with quick_folder() as folder:
        operations = Powered()
        (folder / "whole").mkdir(0o700)
        before = install(operations)
        try:
            work(SessionStore(folder / "whole", redact=lambda body: body), lambda text: None)
        finally:
            install(before)
        assert operations.count > 60
        for at in range(1, operations.count + 1):
            said: list[str] = []
            cut = Powered(at)
            root = folder / "state" / str(at)
            root.mkdir(0o700, parents=True)
            before = install(cut)
            try:
                with pytest.raises(PowerLost):
                    work(SessionStore(root, redact=lambda body: body), said.append)
            finally:
                install(before)
            for name, loses in LOSES.items():
                kept = folder / "kept" / name / str(at)
                cut.kept(root, kept, loses=loses)
                check(kept, said)
                shutil.rmtree(kept)
