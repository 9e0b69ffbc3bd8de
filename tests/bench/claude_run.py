"""What side-by-side subagents cost: six of ours on one warmed prefix against six naive agents with the same results.

Both talk to the fake API through the real SDK: the same model, tools and instructions, the same tasks. The naive agents
start all at once, keep every result whole and mark the newest message for the cache, as most agents do. Ours go
through dispatch, warming, trimming and clearing, and the answer counts on our side.

    python -m tests.bench.claude_run [--agents 6] [--steps 30] [--model claude-opus-5]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from manifests.tasks import Task
from orchestrator.dispatch import Heartbeat, Limits, dispatch
from subagents.engine import Coverage, Outcome
from tests.bench.claude_cost import LINES, files, input_cost, naive
from tests.fake_api import reply
from tests.fake_api.ledger import Charge, Totals
from tests.fake_api.models.base import Call, block_text
from tests.fake_api.models.planner import FINDING_ID
from tests.fake_api.reply import Reply
from tests.fake_api.thread import FakeApi
from tests.subagents.claude.world import World, make_repository, opened, session_on, settings_for


class Walkers:
    """Each agent reads its own files, one a step, and records the fact planted in each; then it answers."""

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def reply(self, call: Call) -> Reply:
        if call.output_schema is not None:
            return _answer(call)
        first = int(
            next(w for w in call.user_text().split() if w.startswith("AGENT-")).removeprefix("AGENT-").strip(".,?")
        )
        seen = call.memory.setdefault("facts", set())
        blocks: list[reply.Block] = []
        newest = "\n".join(block_text(b) for b in call.messages[-1]["content"])
        for line in newest.splitlines():
            number, bar, text = line.partition("|")
            if bar and "FACT-" in text and text not in seen:
                seen.add(text)
                fact = text[text.index("FACT-") :]
                part = fact.removeprefix("FACT-").split()[0]
                claim = {
                    "claim": f"{fact}.",
                    "citations": [f"facts/part{part}.py:{number.strip()}"],
                    "kind": "structure",
                }
                blocks.append(reply.tool("record_finding", claim))
        if call.turn < self.steps:
            path = f"facts/part{first * self.steps + call.turn:03}.py"
            blocks.append(reply.tool("read_file", {"path": path, "start": 1, "end": LINES}))
        return Reply(blocks) if blocks else reply.say("All facts are recorded.")


def _answer(call: Call) -> Reply:
    """Ten statements that rest on all findings together."""
    ids = list(dict.fromkeys(FINDING_ID.findall(call.text())))
    parts = [ids[n::10] for n in range(min(10, len(ids)))]
    statements = [{"text": f"Part {n} of the facts.", "findings": part} for n, part in enumerate(parts, 1)]
    return reply.say(json.dumps({"found": True, "statements": statements}))


@dataclass(frozen=True, kw_only=True)
class Result:
    """`prefix_writes`: how many of our first requests wrote the shared prefix instead of reading it."""

    ours: float
    naive: float
    prefix_writes: int
    facts: int
    recovered: int
    seconds: float

    @property
    def ratio(self) -> float:
        return self.ours / self.naive


async def measure(*, agents: int, steps: int, model: str, folder: Path) -> Result:
    repository = folder / "facts"
    repository.mkdir()
    make_repository(repository, files(agents * steps))
    with opened(repository, folder / "cache") as workspace, session_on(workspace, folder / "state") as here:
        tasks = [here.task(f"Find all facts that belong to AGENT-{n}.") for n in range(agents)]
        with FakeApi(model=Walkers(steps), keep_bodies=True) as api:
            started = time.monotonic()
            await explore(here, api, tasks, model=model, max_turns=steps + 10)
            seconds = time.monotonic() - started
            ours, charges = api.totals, api.ledger
            body = next(r.json for r in api.created if r.json.get("tools"))
            fixed = {k: v for k, v in body.items() if k in ("model", "system", "tools")}
        claims = {f.claim for task in tasks for f in here.recorder(task).findings()}
        with FakeApi(model=Walkers(steps), keep_bodies=False, window_tokens=10_000_000) as api:
            fixed["max_tokens"] = 4_000
            asks = [f"Find all facts that belong to AGENT-{n}." for n in range(agents)]
            await asyncio.gather(*(asyncio.to_thread(naive, api, fixed, repository, ask) for ask in asks))
            theirs: Totals = api.totals
    return Result(
        ours=input_cost(ours),
        naive=input_cost(theirs),
        prefix_writes=prefix_writes(charges),
        facts=agents * steps,
        recovered=sum(f"FACT-{n:03} is word{n * 7919 % 100_003:05}." in claims for n in range(agents * steps)),
        seconds=seconds,
    )


async def explore(here: World, api: Any, tasks: list[Task], *, model: str, max_turns: int) -> None:
    """All tasks side by side, then the answer."""
    engine = here.engine(settings_for(api, model=model, max_turns=max_turns))

    async def run(task: Task, heartbeat: Heartbeat) -> Outcome:
        return await engine.investigate(here.context(task))

    async def ended(task: Task, outcome: Outcome) -> None:
        assert outcome.status == "finished", (task.question, outcome)

    limits = Limits(parallel=len(tasks), silence_s=60, deadline=time.monotonic() + 600)
    try:
        assert await dispatch(tasks, limits, run, ended)
        await engine.answer(here.workspace, here.registry.all(), Coverage())
    finally:
        await engine.close()


def prefix_writes(charges: list[Charge]) -> int:
    """First requests of subagents that found nothing in the cache."""
    first: dict[str, Charge] = {}
    for charge in charges:
        if charge.write_5m_tokens or charge.read_tokens:
            first.setdefault(charge.conversation, charge)
    return sum(1 for charge in first.values() if charge.read_tokens == 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", type=int, default=6)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--model", default="claude-opus-5")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        made = asyncio.run(measure(agents=given.agents, steps=given.steps, model=given.model, folder=Path(folder)))
    print(f"{given.agents} agents of {given.steps} steps, {made.seconds:.1f} s")
    print(f"ours {made.ours:,.0f}, naive {made.naive:,.0f}, ratio {made.ratio:.3f}")
    print(f"writes of the shared prefix {made.prefix_writes}; facts {made.recovered} of {made.facts}")


if __name__ == "__main__":
    main()
