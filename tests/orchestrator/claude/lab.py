"""Whole explorations through the real command line, in a process of its own, against the fake API in another."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from manifests.sessions import TRANSCRIPT_SCHEMA, Session, SessionStore
from orchestrator.spend import entries_of
from subagents.claude.ledger import Entry
from tests.fake_api.ledger import Charge
from tests.fake_api.process import FakeApiProcess
from tests.repositories import git, write
from tests.running import Leadline

QUESTION = "How do orders, payment and shipping work together?"
AREAS = ("orders", "payment", "shipping")


def make_works(folder: Path, *, parts: int = 4, areas: Sequence[str] = AREAS) -> Path:
    """A few packages of a few modules each, that import one another."""
    files = {"README.md": "# Works\n\nOrders are paid, then shipped.\n"}
    for number, area in enumerate(areas):
        for part in range(parts):
            files[f"{area}/{area}_{part}.py"] = _module(number, area, part, before=areas[number - 1] if number else "")
    write(folder, files)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "All of it")
    return folder


def _module(number: int, area: str, part: int, *, before: str) -> str:
    lines = [f'"""Part {part} of {area}: what happens to an order there."""', ""]
    if before:
        lines += [f"from {before}.{before}_{part} import {before}_step_{part}_0", ""]
    for n in range(6):
        lines += [
            "",
            f"def {area}_step_{part}_{n}(order, limit={number * 100 + part * 10 + n}):",
            f'    """Step {n} of {area} in part {part}."""',
            f"    order.{area} = limit * {n + 1} + {part}",
            f"    return order.next('{area}', {part}, {n})",
            "",
        ]
    return "\n".join(lines)


@dataclass(frozen=True)
class Lab(Leadline):
    """The command line, pointed at one fake."""

    api: FakeApiProcess | None = None
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        assert self.api is not None
        config = self.home / "config.toml"
        return {**super().environment, **self.api.env, "LEADLINE_CONFIG": str(config)}

    def configure(self, *, limits: str = "", **claude: object) -> None:
        """Write the person's configuration file."""
        values = {"model": "claude-opus-5", "fan_out": 3, "outage_limit_s": 20.0, **claude}
        lines = ["[claude]", *(f"{name} = {json.dumps(value)}" for name, value in values.items())]
        lines += ["[claude.prices.default]", "per_million = 3.0", "[limits]", limits]
        (self.home / "config.toml").write_text("\n".join(lines) + "\n")

    def explore(self, repo: Path, *options: str, question: str = QUESTION, code: int = 0) -> Any:
        return self.json("explore", str(repo), question, "--engine", "claude", *options, code=code)

    @contextmanager
    def session(self, name: str) -> Iterator[Session]:
        """Opened for reading."""
        store = SessionStore(self.home / "state", redact=lambda value: value)
        with store.read(store.resolve(name)) as session:
            yield session

    def entries(self, name: str) -> list[Entry]:
        """Every request that a session has on record."""
        with self.session(name) as session:
            return [e for n in session.names_of("transcripts", ".jsonl") for e in entries_of(session, n)]

    def openings(self, name: str) -> dict[str, str]:
        """First text of each conversation, by the name of its transcript."""
        with self.session(name) as session:
            found = {}
            for one in session.names_of("transcripts", ".jsonl"):
                for record in session.read_log(f"transcripts/{one}.jsonl", TRANSCRIPT_SCHEMA):
                    if record.body["k"] == "open":
                        found[one] = str(record.body["opening"])
            return found


@contextmanager
def lab(home: Path, *, settings: Mapping[str, Any] | None = None, **model: Any) -> Iterator[Lab]:
    """A fake that plays the standard model (see tests.fake_api.models), and the command line that talks to it."""
    home.mkdir(exist_ok=True)
    behaviour = {"name": "standard", "tasks": 3, "rounds": 2, "steps": 3, **model}
    with FakeApiProcess(model=behaviour, **(settings or {})) as api:
        made = Lab(home, api)
        made.configure()
        yield made


def charged(charge: Charge) -> tuple[int, ...]:
    return (
        charge.input_tokens,
        charge.write_5m_tokens + charge.write_1h_tokens,
        charge.read_tokens,
        charge.output_tokens,
    )


def entered(entry: Entry) -> tuple[int | None, ...]:
    usage = entry.usage
    return (usage.uncached, (usage.write_5m or 0) + (usage.write_1h or 0), usage.read, usage.output)


def assert_ledger_equals_charges(entries: list[Entry], charges: list[Charge]) -> None:
    """What was reported is entered to the token; for each reply that was lost there is an entry that says unknown."""
    known = Counter(entered(e) for e in entries if not e.unknown)
    lost = [e for e in entries if e.unknown]
    paid = Counter(charged(c) for c in charges)
    assert not known - paid, f"entered but never charged: {known - paid}"
    unreported = list((paid - known).elements())
    assert len(unreported) <= len(lost), f"charged but not entered: {unreported}"
    most = [(e.task, e.turn, e.bound_input) for e in lost]
    assert sum(sum(one[:3]) for one in unreported) <= sum(e.bound_input for e in lost), (unreported, most)


def text_of(body: Mapping[str, Any]) -> str:
    """All that a request says outside of tool results."""
    system = body.get("system") or []
    parts = [system] if isinstance(system, str) else [block["text"] for block in system]
    for message in body["messages"]:
        content = message["content"]
        parts += [content] if isinstance(content, str) else [b["text"] for b in content if b["type"] == "text"]
    return "\n".join(parts)


def opening_of(body: Mapping[str, Any]) -> str:
    content = body["messages"][0]["content"]
    return content if isinstance(content, str) else str(content[0]["text"])


def tool_results(body: Mapping[str, Any]) -> Iterator[str]:
    for message in body["messages"]:
        for block in message["content"] if isinstance(message["content"], list) else ():
            if block["type"] == "tool_result":
                content = block["content"]
                yield content if isinstance(content, str) else "\n".join(p.get("text", "") for p in content)


def finished_tasks(done: subprocess.CompletedProcess[str]) -> set[str]:
    """Ids of the finished tasks in what `show --tasks --json` printed."""
    return {t["id"] for t in json.loads(done.stdout)["tasks"] if t["status"] == "finished"}
