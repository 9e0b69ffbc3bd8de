"""What an exploration costs: our context against the naive loop, on the same calls with the same raw results.

Both talk to the fake API through the real SDK with the same model, tools and instructions. The naive loop keeps every
result whole and marks the newest message for the cache, as most agents do. Each result of about 2,500 tokens holds a
planted fact, which the model records as soon as it sees it; at the end every fact has to be among the findings.

    python -m tests.bench.claude_cost [--steps 60,120,240,400] [--model claude-opus-5] [--clearing MODE]
"""

from __future__ import annotations

import argparse
import asyncio
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fake_api import reply
from tests.fake_api.ledger import Totals
from tests.fake_api.models.base import Call, block_text
from tests.fake_api.reply import Reply
from tests.fake_api.thread import FakeApi
from tests.subagents.claude.world import make_repository, opened, session_on, settings_for

LINES = 140
"""Of a file; about 2,500 tokens as the fake counts for the default model."""
_FACT = re.compile(r"^ ?(\d+)\|.*(FACT-(\d+) is \w+)", re.MULTILINE)


def files(steps: int) -> dict[str, str]:
    """One file for each step, all of one size: a later step must not cost more because its file's number is longer."""
    made = {"README.md": "# Facts\n"}
    for n in range(steps):
        lines = [f"value_{n:03}_{i} = compute_{n % 7}(order_{i}, limit={i})" for i in range(LINES)]
        lines[(n * 37) % (LINES - 10) + 5] += f"  # FACT-{n:03} is word{n * 7919 % 100_003:05}"
        made[f"facts/part{n:03}.py"] = "\n".join(lines) + "\n"
    return made


def look(n: int) -> reply.Block:
    """The n-th look: a range of a file that nothing can be trimmed from."""
    return reply.tool("read_file", {"path": f"facts/part{n:03}.py", "start": 1, "end": LINES})


@dataclass
class Walker:
    """Looks `steps` times and records each fact it is shown, once."""

    steps: int

    def reply(self, call: Call) -> Reply:
        seen = call.memory.setdefault("facts", set())
        blocks: list[reply.Block] = []
        newest = "\n".join(block_text(b) for b in call.messages[-1]["content"])
        for line, fact, number in _FACT.findall(newest):
            if number not in seen:
                seen.add(number)
                claim = {"claim": f"{fact}.", "citations": [f"facts/part{number}.py:{line}"], "kind": "structure"}
                blocks.append(reply.tool("record_finding", claim))
        if call.turn < self.steps:
            blocks.append(look(call.turn))
        return Reply(blocks) if blocks else reply.say("All facts are recorded.")


def input_cost(totals: Totals) -> float:
    """Price-weighted input in uncached tokens."""
    return totals.input_tokens + 1.25 * totals.write_tokens + 0.1 * totals.read_tokens


def naive(api: FakeApi, fixed: dict[str, Any], repository: Path, ask: str = "Find all facts.") -> None:
    """The whole history at every step, the newest message marked; results as a shell would give them."""
    client = api.client()
    messages: list[dict[str, Any]] = [{"role": "user", "content": [{"type": "text", "text": ask}]}]
    while True:
        marked = [*messages[:-1], {**messages[-1], "content": [dict(b) for b in messages[-1]["content"]]}]
        marked[-1]["content"][-1]["cache_control"] = {"type": "ephemeral"}
        said = client.messages.create(**fixed, messages=marked)
        blocks = [b.to_dict() for b in said.content]
        messages.append({"role": "assistant", "content": blocks})
        calls = [b for b in blocks if b["type"] == "tool_use"]
        if not calls:
            client.close()
            return
        results = [{"type": "tool_result", "tool_use_id": c["id"], "content": _raw(c, repository)} for c in calls]
        messages.append({"role": "user", "content": results})


def _raw(call: dict[str, Any], repository: Path) -> str:
    if call["name"] == "record_finding":
        return "recorded"
    text = (repository / call["input"]["path"]).read_text()
    return "\n".join(f"{n}|{line}" for n, line in enumerate(text.splitlines(), 1))


@dataclass(frozen=True, kw_only=True)
class Result:
    steps: int
    ours: float
    naive: float
    facts: int
    recovered: int
    read_share: float

    @property
    def ratio(self) -> float:
        return self.ours / self.naive


async def measure(steps: int, *, model: str, folder: Path, **options: Any) -> Result:
    """One run of each on a repository of its own."""
    repository = folder / f"facts{steps}"
    repository.mkdir()
    make_repository(repository, files(steps))
    with opened(repository, folder / "cache") as workspace, session_on(workspace, folder / f"state{steps}") as here:
        with FakeApi(model=Walker(steps), keep_bodies=True) as api:
            settings = settings_for(api, model=model, max_turns=steps + 10, **options)
            outcome = await here.run(settings)
            assert outcome.status == "finished", outcome
            ours = api.totals
            fixed = {k: v for k, v in api.created[0].json.items() if k in ("model", "max_tokens", "system", "tools")}
        claims = {f.claim for f in here.recorder(here.task()).findings()}
        with FakeApi(model=Walker(steps), keep_bodies=False, window_tokens=10_000_000) as api:
            fixed["max_tokens"] = 4_000
            await asyncio.to_thread(naive, api, fixed, repository)
            theirs = api.totals
    recovered = sum(f"FACT-{n:03} is word{n * 7919 % 100_003:05}." in claims for n in range(steps))
    read = ours.read_tokens / (ours.read_tokens + ours.write_tokens + ours.input_tokens)
    return Result(
        steps=steps,
        ours=input_cost(ours),
        naive=input_cost(theirs),
        facts=steps,
        recovered=recovered,
        read_share=read,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", default="60,120")
    parser.add_argument("--model", default="claude-opus-5")
    parser.add_argument("--clearing", default="auto")
    given = parser.parse_args()
    print(f"{'steps':>6} {'ours':>12} {'naive':>12} {'ratio':>7} {'facts':>9} {'read share':>11}")
    for steps in (int(text) for text in given.steps.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            made = asyncio.run(measure(steps, model=given.model, folder=Path(folder), clearing=given.clearing))
        print(
            f"{made.steps:>6} {made.ours:>12,.0f} {made.naive:>12,.0f} {made.ratio:>7.3f} "
            f"{made.recovered:>4}/{made.facts:<4} {made.read_share:>11.3f}"
        )


if __name__ == "__main__":
    main()
