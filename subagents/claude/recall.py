"""What the context layout is worth on the model in use: facts are planted, the context is treated, facts are asked for.

Facts stand at the start (opening), in the middle and at the end of the steps; of those in the steps, some were recorded
as findings (so the state block restates them) and some were only shown in a result. Each context is asked as it is,
after clearing and after compaction. `leadline eval recall` prints the table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from subagents.claude.agent import Sender
from subagents.claude.assemble import FixedPart, assemble
from subagents.claude.attempts import until_answered
from subagents.claude.brake import Brake
from subagents.claude.compaction import compacted
from subagents.claude.config import ModelFacts
from subagents.claude.history import Edits, History
from subagents.claude.ledger import Entry
from subagents.claude.messages import AssistantTurn, Pair, Reply, Request, ToolResult, ToolUse, Usage, UserTurn
from subagents.claude.protocol import check_request
from subagents.claude.replies import StreamReader, reply_of, usage_of
from subagents.claude.state_block import StateBlock
from subagents.claude.stops import Trouble, as_error
from subagents.claude.tokens import TokenMeter, raw_tokens, text_tokens

Place = Literal["start", "middle, recorded", "middle, only shown", "end, recorded", "end, only shown"]
Treatment = Literal["as it is", "cleared", "compacted"]
PLACES: tuple[Place, ...] = get_args(Place)
TREATMENTS: tuple[Treatment, ...] = get_args(Treatment)
STEP_TOKENS = 1_000
_PROMPT = (
    "You answer from this conversation alone. When asked for values, answer with one line `name = value` for each."
)
_ASK = (
    "Which values were stated above for these names? {names}. One line each; write `unknown` for what you do not find."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    name: str
    value: str
    place: Place

    @property
    def claim(self) -> str:
        return f"{self.name} is set to {self.value}."


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallCell:
    """One length, one treatment, one place."""

    length_tokens: int
    treatment: Treatment
    place: Place
    planted: int
    recovered: int


def facts_for(length_tokens: int, each: int = 3) -> list[Fact]:
    """The same facts for the same length; values that nobody could guess."""
    return [
        Fact(
            name=f"LIMIT-{length_tokens % 9_973}-{p * each + n}",
            value=f"v{(length_tokens * 7_919 + p * 104_729 + n * 1_299_709) % 1_000_003}",
            place=place,
        )
        for p, place in enumerate(PLACES)
        for n in range(each)
    ]


def conversation(length_tokens: int, facts: Sequence[Fact], treatment: Treatment) -> History:
    """A conversation of about so many tokens that holds the facts, treated."""
    steps = max(4, length_tokens // STEP_TOKENS)
    by_step: dict[int, list[Fact]] = {}
    for n, fact in enumerate(f for f in facts if f.place != "start"):
        at = steps // 2 + n % 2 if fact.place.startswith("middle") else steps - 1
        by_step.setdefault(at, []).append(fact)
    start = "\n".join(f"- {f.claim}" for f in facts if f.place == "start")
    pairs = tuple(_pair(n, by_step.get(n, [])) for n in range(steps))
    recorded = tuple(f"{f.claim} (conf/part.py:1)" for f in facts if f.place.endswith(", recorded"))
    state = StateBlock(goal="Know all limits.", findings=recorded, step=steps).render()
    last = pairs[-1]
    assert last.user is not None
    names = ", ".join(f.name for f in facts)
    asked = replace(last.user, notices=(state,), state=_ASK.format(names=names))  # the question comes last of all
    history = History(
        opening=f"Question: which limits are there?\n\nKnown so far:\n{start}",
        pairs=(*pairs[:-1], replace(last, user=asked)),
        edits=Edits(mode="batch"),
    )
    if treatment == "cleared":
        return replace(history, edits=history.edits.advanced(cleared=steps - 1))
    if treatment == "compacted":
        return replace(history, edits=compacted(history, before=steps - 1, max_tokens=1_000))
    return history


def _pair(number: int, facts: Sequence[Fact]) -> Pair:
    lines = [f"{n}|setting_{number}_{n} = compute(order, stage={n}, weight={number * 31 + n})" for n in range(1, 40)]
    text = ""
    while text_tokens(text) < STEP_TOKENS - 150:
        text += "\n".join(lines) + "\n"
    middle = len(text) // 2
    text = text[:middle] + "\n" + "\n".join(f.claim for f in facts) + "\n" + text[middle:]
    call = ToolUse(id=f"toolu_{number}", name="read_file", input={"path": f"conf/part{number}.py"})
    result = ToolResult(
        tool_use_id=call.id,
        tool="read_file",
        text=text,
        digest=f"[result cleared] read_file conf/part{number}.py 1-40",
        log=f"read_file conf/part{number}.py 1-40",
    )
    return Pair(number=number, assistant=AssistantTurn(blocks=(call,)), user=UserTurn(results=(result,)))


def recovered(reply: str, facts: Sequence[Fact]) -> dict[Place, int]:
    """How many facts of each place a reply gives back, name and value in one line."""
    found = dict.fromkeys(PLACES, 0)
    lines = reply.splitlines()
    for fact in facts:
        pattern = re.compile(rf"(?<![\w-]){re.escape(fact.name)}(?![\w-]).*(?<!\w){re.escape(fact.value)}(?!\w)")
        found[fact.place] += any(pattern.search(line) for line in lines)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One request: a context of one length under one treatment, asked for all of its facts."""

    length_tokens: int
    treatment: Treatment
    facts: tuple[Fact, ...]
    request: Request
    raw_input: int
    """Its size in uncalibrated tokens."""


def probes_for(model: ModelFacts, *, lengths: Sequence[int], each: int = 3) -> list[Probe]:
    """Every length under every treatment, shortest first; lengths past what the window holds are left out.

    Nothing of it is marked for the cache: each context is sent once.
    """
    most = model.window_tokens - model.reply_tokens
    fixed = FixedPart(
        model=model.model,
        max_tokens=min(2_000, model.reply_tokens),
        role_prompt=_PROMPT,
        tools=_TOOLS,
        cache=False,
    )
    probes = []
    for length in sorted({length for length in lengths if length * 1.5 < most}):
        facts = tuple(facts_for(length, each))
        for treatment in TREATMENTS:
            request = assemble(fixed, conversation(length, facts, treatment))
            probes.append(
                Probe(
                    length_tokens=length,
                    treatment=treatment,
                    facts=facts,
                    request=request,
                    raw_input=raw_tokens(request.body),
                )
            )
    return probes


async def evaluate(
    sender: Sender,
    probes: Sequence[Probe],
    *,
    brake: Brake,
    on_entry: Callable[[Entry], None] = lambda _: None,
    may_send: Callable[[Probe], bool] = lambda _: True,
) -> list[RecallCell]:
    """Ask one after the other, until `may_send` says no. Raises what ends a session: a refused key, an outage."""
    cells: list[RecallCell] = []
    for probe in probes:
        if not may_send(probe):
            break
        got = recovered(await _asked(sender, probe, brake, on_entry), probe.facts)
        cells += [
            RecallCell(
                length_tokens=probe.length_tokens,
                treatment=probe.treatment,
                place=place,
                planted=sum(fact.place == place for fact in probe.facts),
                recovered=got[place],
            )
            for place in PLACES
        ]
    return cells


_TOOLS = (
    {
        "name": "read_file",
        "description": "Read a file.",
        "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}, "additionalProperties": False},
    },
)


async def _asked(sender: Sender, probe: Probe, brake: Brake, on_entry: Callable[[Entry], None]) -> str:
    """The text of the reply. Every attempt is entered, those that broke too."""
    request = probe.request
    check_request(request)

    def entered(usage: Usage) -> None:
        on_entry(
            Entry(
                task="recall",
                turn=0,
                kind="recall",
                usage=usage,
                bound_input=TokenMeter().bound(probe.raw_input),
                bound_output=int(request.body["max_tokens"]),
            )
        )

    async def attempt(reader: StreamReader) -> Reply:
        async with brake.passing():
            message, headers = await sender.send(request, reader, _nothing, _nothing)
        brake.succeeded(headers)
        return reply_of(message, reader.usage, number=0, used_ids=())

    def failed(trouble: Trouble, reader: StreamReader) -> None:
        if reader.started or trouble.may_be_charged:
            entered(replace(usage_of(reader.usage), output=None) if reader.started else Usage())

    try:
        reply = await until_answered(attempt, brake=brake, failed=failed)
    except Trouble as trouble:
        raise as_error(trouble) from trouble
    entered(reply.usage)
    return reply.turn.text


def _nothing() -> None:
    """Nobody waits for a sign of life: the client's time-out ends a request."""


def table(cells: Sequence[RecallCell]) -> str:
    """The cells as Markdown, a row for each length and treatment."""
    head = ["length", "context", *PLACES]
    rows: dict[tuple[int, str], dict[str, str]] = {}
    for cell in cells:
        row = rows.setdefault((cell.length_tokens, cell.treatment), {})
        row[cell.place] = f"{cell.recovered}/{cell.planted}"
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for (length, treatment), row in rows.items():
        lines.append("| " + " | ".join([f"{length:,}", treatment, *(row.get(p, "") for p in PLACES)]) + " |")
    return "\n".join(lines)
