"""What durability and redaction cost: python -m tests.bench.state_cost [FOLDER WITH CODE]

Step: one transcript record, one piece of evidence, one finding; beside the same bytes committed to SQLite (WAL,
synchronous FULL), as checkpointers do, in the same run. Redaction: over the Python files of the folder (default: the
standard library), beside counting their words with a regular expression.
"""

from __future__ import annotations

import re
import sqlite3
import statistics
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from manifests.manifest import Manifest, SnapshotRecord
from manifests.sessions import TRANSCRIPT_SCHEMA, Session, SessionStore
from scratch.evidence import EvidenceStore
from scratch.recorder import FindingRegistry, TaskRecorder
from scratch.redaction import Redactor, redact_text
from tests.scratch.conftest import APP, MemorySource, NoText

STEPS = 150
TOOL_OUTPUT = (APP + "\n") * 4


def median_ms(step: Callable[[int], object]) -> float:
    spent = []
    for n in range(STEPS):
        started = time.perf_counter()
        step(n)
        spent.append((time.perf_counter() - started) * 1e3)
    return statistics.median(spent)


def our_steps(session: Session) -> dict[str, float]:
    redactor = Redactor()
    evidence = EvidenceStore(session, redact=redactor.data)
    recorder = TaskRecorder(
        session,
        task="t0",
        phase=1,
        source=MemorySource({"src/app.py": APP}),
        registry=FindingRegistry(),
        evidence=evidence,
        redactor=redactor,
        cannot_read=NoText,
    )
    recorder.shown("src/app.py", 1, 40)
    transcript = session.log("transcripts/t0.jsonl", TRANSCRIPT_SCHEMA)

    def append(n: int) -> None:
        transcript.append({"role": "user", "content": [{"type": "tool_result", "content": f"{n} {TOOL_OUTPUT}"}]})

    def keep(n: int) -> None:
        recorder.evidence(f"{n} {TOOL_OUTPUT}".encode(), tool="read", arguments={"path": "src/app.py", "n": n})

    def record(n: int) -> None:
        recorder.record(
            f"It does step {n} before the next one", kind="flow", citations=[("src/app.py", n % 38 + 1, n % 38 + 2)]
        )

    def step(n: int) -> None:
        append(n + STEPS)
        keep(n + STEPS)
        record(n + STEPS)

    return {
        "transcript record": median_ms(append),
        "evidence": median_ms(keep),
        "finding": median_ms(record),
        "whole step": median_ms(step),
    }


def sqlite_step(folder: Path) -> float:
    connection = sqlite3.connect(folder / "checkpoints.db", isolation_level=None)
    connection.execute("pragma journal_mode=wal")
    connection.execute("pragma synchronous=full")
    connection.execute("create table steps (n integer primary key, body blob)")
    body = TOOL_OUTPUT.encode() * 2

    def step(n: int) -> None:
        connection.execute("insert into steps values (?, ?)", (n, body))

    spent = median_ms(step)
    connection.close()
    return spent


def manifest_for(session: Session) -> Manifest:
    at = "2026-01-01T00:00:00.000000Z"
    return Manifest(
        session=session.id,
        repository=session.repository,
        root="/",
        question="?",
        engine="static",
        snapshot=SnapshotRecord(kind="git", commit=None, tree="a" * 40, dirty=False),
        created_at=at,
        updated_at=at,
    )


def cpu_s(work: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(3):
        started = time.process_time()
        work()
        best = min(best, time.process_time() - started)
    return best


def redaction(folder: Path) -> None:
    texts = [path.read_text(errors="replace") for path in sorted(folder.rglob("*.py")) if path.is_file()]
    megabytes = sum(map(len, texts)) / 1e6
    words = re.compile(r"\w+")
    ours = cpu_s(lambda: [redact_text(text) for text in texts])
    counting = cpu_s(lambda: [sum(1 for _ in words.finditer(text)) for text in texts])
    removed = sum(sum(redact_text(text)[1].values()) for text in texts)
    print(f"redaction     {megabytes / ours:6.1f} MB/s of CPU ({megabytes:.1f} MB, {removed} removed)")
    print(f"word counting {megabytes / counting:6.1f} MB/s; ratio {ours / counting:.2f}")


def main(arguments: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = SessionStore(Path(folder) / "state", redact=Redactor().json)
        with store.create("bench") as session:
            manifest = manifest_for(session)
            for what, spent in our_steps(session).items():
                print(f"{what:18} {spent:6.2f} ms")
            print(f"{'manifest':18} {median_ms(lambda n: session.write_manifest(manifest)):6.2f} ms")
        print(f"{'SQLite commit':18} {sqlite_step(Path(folder)):6.2f} ms")
    redaction(Path(arguments[0] if arguments else sysconfig.get_paths()["stdlib"]))


if __name__ == "__main__":
    main(sys.argv[1:])
