"""Models that misbehave, each in one way that real ones do."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from typing import Any

import orjson

from tests.fake_api import reply
from tests.fake_api.models import toolview
from tests.fake_api.models.base import Call, Model
from tests.fake_api.models.explorer import Explorer
from tests.fake_api.models.schemas import fill
from tests.fake_api.reply import Block, Reply

_COMMAND = re.compile(
    r"(?i)\b(?:read|open|show|cat|fetch|load)\b[^\n`'\"]{0,40}?[`'\"]?((?:\.\./|/|~/|\.)?[\w.~-]+(?:/[\w.~-]+)+|\.env\b)"
)
_SAY = re.compile(
    r"(?i)\b(?:reply|answer|say|respond|output|print)(?: only| exactly)?(?: with)?[: ]+[`'\"]([^`'\"\n]+)[`'\"]"
)
_RECORD = re.compile(r"(?i)\brecord\b[^\n`'\"]{0,40}[`'\"]([^`'\"\n]+)[`'\"]")
_CALL = re.compile(r"(?i)\bcall\s+([\w-]{1,64})\s*(\{[^\n]*\})")


class Obedient:
    """Does whatever text in its newest tool results tells it to, then goes on with its own work.

    It understands: read/open PATH, record "CLAIM", say "TEXT", call TOOL {JSON}.
    """

    def __init__(self, inner: Model | None = None, **options: Any) -> None:
        self._inner = inner or Explorer(**options)

    def reply(self, call: Call) -> Reply:
        said = self._inner.reply(call)
        newest = toolview.latest_uses(call.messages)
        orders = [order for use in newest if not use.is_error for order in self._orders(use.text, call)]
        done = call.memory.setdefault("obeyed", [])
        fresh = [order for order in orders if order not in done]
        done += fresh
        return Reply(fresh + said.content, None) if fresh else said

    def _orders(self, text: str, call: Call) -> list[Block]:
        tools = toolview.toolset(call.tools)
        names = {tool["name"] for tool in call.tools}
        orders: list[Block] = []
        if tools.has("read"):
            orders += [
                reply.tool(tools.name("read"), fill(tools.schema("read"), {"path": path}, optional=True))
                for path in _COMMAND.findall(text)
            ]
        if tools.has("record"):
            for claim in _RECORD.findall(text):
                cited = {"path": "README.md", "start": 1, "end": 1, "quote": claim}
                known = {"claim": claim, "kind": "structure", "citations": [cited], **cited}
                orders.append(reply.tool(tools.name("record"), fill(tools.schema("record"), known)))
        for name, arguments in _CALL.findall(text):
            if name in names:
                orders.append(reply.tool(name, _object(arguments)))
        orders += [reply.text(what) for what in _SAY.findall(text)]
        return orders


class Stuck:
    """Makes the very same call for ever."""

    def reply(self, call: Call) -> Reply:
        tools = toolview.toolset(call.tools)
        for job in ("search", "find", "read", "list"):
            if tools.has(job):
                known = {"query": "needle", "path": "README.md"}
                return reply.call(reply.tool(tools.name(job), fill(tools.schema(job), known, optional=False)))
        return reply.say("As I said before.")


class Liar:
    """Cites lines nobody showed it, then claims that its report has been delivered."""

    def __init__(self, *, attempts: int = 2) -> None:
        self._attempts = attempts

    def reply(self, call: Call) -> Reply:
        tools = toolview.toolset(call.tools)
        if call.turn >= self._attempts or not tools.has("record"):
            return reply.say("The report has been delivered above. All findings are complete and verified.")
        path = next(iter(toolview.paths_in(call.text())), "src/main.py")
        start = 100_000 + call.turn
        cited = {"path": path, "start": start, "end": start + 3, "quote": "def certainly(): ..."}
        known = {"claim": f"{path} retries {call.turn + 3} times", "kind": "behaviour", "citations": [cited], **cited}
        return reply.call(reply.tool(tools.name("record"), fill(tools.schema("record"), known)))


class Chatty:
    """Talks until it is cut at `max_tokens`: in a text, or in the middle of a tool call (`within="tool"`).

    `times`: how many turns are cut before it pulls itself together.
    """

    def __init__(self, *, within: str = "text", times: int = 1, then: Model | None = None) -> None:
        self._within = within
        self._times = times
        self._then = then or Explorer()

    def reply(self, call: Call) -> Reply:
        said = call.memory.setdefault("cut", 0)
        if said >= self._times:
            return self._then.reply(call)
        call.memory["cut"] += 1
        flood = "and furthermore, as has been noted above, " * (call.body["max_tokens"] // 4 + 10)
        tools = toolview.toolset(call.tools)
        if self._within == "tool" and tools.by_job:
            job = "record" if tools.has("record") else next(iter(tools.by_job))
            known = {"claim": flood, "query": flood, "path": flood}
            return reply.call(reply.tool(tools.name(job), fill(tools.schema(job), known)))
        return reply.say(flood)


class Refuser:
    """Refuses at turn `at`, with or without a partial text; otherwise plays another model."""

    def __init__(
        self, *, at: int = 0, partial: str = "", category: str | None = "cyber", then: Model | None = None
    ) -> None:
        self._at = at
        self._partial = partial
        self._category = category
        self._then = then or Explorer()

    def reply(self, call: Call) -> Reply:
        if call.turn == self._at:
            return reply.refusal(self._category, "This request was declined.", partial=self._partial)
        return self._then.reply(call)


class Pauser:
    """Pauses at turn `at`; when its own words come back it goes on."""

    def __init__(self, *, at: int = 0, then: Model | None = None) -> None:
        self._at = at
        self._then = then or Explorer()

    def reply(self, call: Call) -> Reply:
        return reply.paused("Still working on it.") if call.turn == self._at else self._then.reply(call)


class Garbler:
    """Plays another model and spoils some of its calls by seed: wrong types, missing fields, no such tool."""

    def __init__(self, *, seed: int = 0, rate: float = 0.3, then: Model | None = None) -> None:
        self._seed = seed
        self._rate = rate
        self._then = then or Explorer()

    def reply(self, call: Call) -> Reply:
        said = self._then.reply(call)
        dice = random.Random(f"{self._seed}:{call.conversation}:{call.turn}")
        content = [
            self._spoil(b, dice) if b["type"] == "tool_use" and dice.random() < self._rate else b for b in said.content
        ]
        return Reply(content, said.stop_reason)

    def _spoil(self, block: Block, dice: random.Random) -> Block:
        arguments: dict[str, Any] = dict(block["input"])
        match dice.randrange(6):
            case 0:
                return {**block, "name": "no_such_tool"}
            case 1:
                return {**block, "input": {}}
            case 2:
                return {**block, "input": {**arguments, "unasked": True}}
            case 3:
                return {**block, "input": {name: [None, {"x": -1}] for name in arguments}}
            case 4:
                return {**block, "input": dict.fromkeys(arguments, "\x00../../etc/passwd")}
            case _:
                return {**block, "input": {}, "_json": '{"path": "a.py", "start": 1e'}


class Empty:
    """Says nothing at turn `at`: no content at all, or one empty text block."""

    def __init__(self, *, at: int = 0, block: bool = False, then: Model | None = None) -> None:
        self._at = at
        self._block = block
        self._then = then or Explorer()

    def reply(self, call: Call) -> Reply:
        if call.turn != self._at:
            return self._then.reply(call)
        return Reply([reply.text("")] if self._block else [], "end_turn")


class Odd:
    """Ends its first turn with a given stop reason, known to the SDK or not."""

    def __init__(self, *, stop_reason: str, at: int = 0, then: Model | None = None) -> None:
        self._stop_reason = stop_reason
        self._at = at
        self._then = then or Explorer()

    def reply(self, call: Call) -> Reply:
        said = self._then.reply(call)
        return Reply(said.content, self._stop_reason) if call.turn == self._at else said


def _object(text: str) -> Mapping[str, Any]:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}


class Disagreeing:
    """Reads a file, records a claim, then what contradicts it: by a name nobody knows, and then by the right one."""

    def __init__(self, *, path: str) -> None:
        self.path = path

    def reply(self, call: Call) -> Reply:
        if call.turn == 0:
            return reply.call(reply.tool("read_file", {"path": self.path, "start": 1, "end": 20}))
        if call.turn == 1:
            return reply.call(reply.tool("record_finding", {"claim": "One.", "citations": [f"{self.path}:6"]}))
        if call.turn in (2, 3):
            said = str(call.messages[4]["content"][0]["content"])
            known = next(word for word in said.split() if word.startswith("f"))
            named = "f00000000000" if call.turn == 2 else known
            claim = {"claim": "Two.", "citations": [f"{self.path}:7"], "contradicts": [named]}
            return reply.call(reply.tool("record_finding", claim))
        return reply.say("Done.")
