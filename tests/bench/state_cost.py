"""What durability and redaction cost: python -m tests.bench.state_cost [FOLDER WITH CODE]

Step, as a subagent with a model takes it: a tool's result becomes evidence, the next reply is recorded, and a finding
that rests on the evidence. Beside it, in the same run: the same bytes committed
to SQLite (WAL, synchronous FULL), and a step of a LangGraph agent with its SQLite checkpointer (durability "sync")
that adds the same message to its state; the latter where `pip install 'leadline[bench]'` was done. Redaction: over the
Python files of the folder (default: the standard library), beside counting their words with a regular expression.
"""

from __future__ import annotations

import importlib.util
import operator
import re
import sqlite3
import statistics
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, TypedDict

from manifests.fileops import SystemFileOps, install
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


class Syncs(SystemFileOps):
    """The real operations; counts those that wait for the disk. What one costs wavers, how many there are does not."""

    def __init__(self) -> None:
        self.count = 0

    def sync(self, descriptor: int, *, label: str, data_only: bool) -> None:
        self.count += 1
        super().sync(descriptor, label=label, data_only=data_only)

    def sync_folder(self, folder: Path, *, label: str) -> None:
        self.count += 1
        super().sync_folder(folder, label=label)


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

    def keep(n: int) -> str:
        return recorder.evidence(f"{n} {TOOL_OUTPUT}".encode(), tool="read", arguments={"path": "src/app.py", "n": n})

    def record(n: int, evidence: tuple[str, ...] = ()) -> None:
        citations = [("src/app.py", n % 38 + 1, n % 38 + 2)]
        recorder.record(f"It does step {n} before the next one", kind="flow", citations=citations, evidence=evidence)

    def step(n: int) -> None:
        reference = keep(n + STEPS)
        append(n + STEPS)
        record(n + STEPS, (reference,))

    counting = Syncs()
    before = install(counting)
    for n in range(10):
        step(n - STEPS)
    install(before)
    print(f"{counting.count / 10:.1f} syncs a step")
    return {
        "transcript record": median_ms(append),
        "evidence": median_ms(keep),
        "finding": median_ms(record),
        "whole step": median_ms(step),
    }


def sqlite_step(folder: Path) -> tuple[float, float]:
    """Median ms of a commit, and MB on disk after all."""
    connection = sqlite3.connect(folder / "checkpoints.db", isolation_level=None)
    connection.execute("pragma journal_mode=wal")
    connection.execute("pragma synchronous=full")
    connection.execute("create table steps (n integer primary key, body blob)")
    body = TOOL_OUTPUT.encode() * 2

    def step(n: int) -> None:
        connection.execute("insert into steps values (?, ?)", (n, body))

    spent = median_ms(step)
    size = on_disk(folder, "checkpoints.db*")
    connection.close()
    return spent, size


def langgraph_steps(folder: Path) -> tuple[float, float] | None:
    """Median ms of a step, and MB on disk after all; None where it is not installed."""
    if importlib.util.find_spec("langgraph") is None:
        return None
    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.graph import END, START, StateGraph

    marks: list[float] = []

    def agent(state: object) -> dict[str, Any]:
        marks.append(time.perf_counter())
        result = {"type": "tool_result", "content": f"{len(marks)} {TOOL_OUTPUT}"}
        return {"messages": [{"role": "user", "content": [result]}]}

    graph = StateGraph(TypedDict("Messages", {"messages": Annotated[list[Any], operator.add]}))
    graph.add_node("agent", agent)
    graph.add_edge(START, "agent")
    graph.add_conditional_edges("agent", lambda _: "agent" if len(marks) < STEPS else END)
    with SqliteSaver.from_conn_string(str(folder / "langgraph.db")) as saver:
        settings = {"configurable": {"thread_id": "1"}, "recursion_limit": STEPS + 10}
        graph.compile(checkpointer=saver).invoke({"messages": []}, settings, durability="sync")
        size = on_disk(folder, "langgraph.db*")
    return statistics.median(after - before for before, after in pairwise(marks)) * 1e3, size


def on_disk(folder: Path, pattern: str) -> float:
    """MB."""
    return sum(file.stat().st_size for file in folder.rglob(pattern) if file.is_file()) / 1e6


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
            spent = our_steps(session)
            size = on_disk(Path(folder), "*")
            manifest = manifest_for(session)
            spent["manifest"] = median_ms(lambda n: session.write_manifest(manifest))
        for what, ms in spent.items():
            print(f"{what:18} {ms:6.2f} ms")
        print(f"{'':18} {size:.1f} MB on disk, {2 * STEPS} records, pieces of evidence and findings")
        peers = {"SQLite commit": sqlite_step(Path(folder)), "LangGraph, SQLite": langgraph_steps(Path(folder))}
        for what, peer in peers.items():
            if peer is None:
                print(f"{what:18} not installed: pip install 'leadline[bench]'")
                continue
            ratio = spent["whole step"] / peer[0]
            print(f"{what:18} {peer[0]:6.2f} ms, {peer[1]:.1f} MB on disk; our whole step x{ratio:.2f}")
    redaction(Path(arguments[0] if arguments else sysconfig.get_paths()["stdlib"]))


if __name__ == "__main__":
    main(sys.argv[1:])
