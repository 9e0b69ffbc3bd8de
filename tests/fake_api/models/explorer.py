"""A model that explores with whatever tools it is given: it looks around, reads, records what it read, and ends.

Findings cite lines that a tool really returned. It never makes the same call twice, so it goes on for as many steps as
it is asked to; what it remembers is kept per conversation by the server and told from the request where that is lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from tests.fake_api import reply
from tests.fake_api.models import toolview
from tests.fake_api.models.base import Call
from tests.fake_api.models.schemas import fill
from tests.fake_api.models.toolview import Shown, ToolSet
from tests.fake_api.reply import Block, Reply

WINDOW_LINES = 60


@dataclass(slots=True)
class Memory:
    """What the explorer knows of one conversation, beyond what the request still shows."""

    calls: set[bytes] = field(default_factory=set)
    paths: list[str] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    next_line: dict[str, int] = field(default_factory=dict)
    exhausted: set[str] = field(default_factory=set)
    recorded: set[str] = field(default_factory=set)
    accepted: int = 0
    turns: dict[int, Reply] = field(default_factory=dict)


class Explorer:
    """`steps` turns with tools, `parallel` calls in each; a finding at every `record_every`-th read."""

    def __init__(
        self,
        *,
        steps: int = 6,
        parallel: int = 2,
        record_every: int = 1,
        final: str = "Exploration finished; the findings are recorded.",
        read_lines: int = WINDOW_LINES,
    ) -> None:
        self.steps = steps
        self.parallel = parallel
        self.record_every = record_every
        self.final = final
        self.read_lines = read_lines

    def reply(self, call: Call) -> Reply:
        memory: Memory = call.memory.setdefault("explorer", Memory())
        if call.turn not in memory.turns:
            memory.turns[call.turn] = self._next(call, memory)
        said = memory.turns[call.turn]
        return Reply(list(said.content), said.stop_reason)

    def _next(self, call: Call, memory: Memory) -> Reply:
        tools = toolview.toolset(call.tools)
        read = self._learn(call, memory, tools)
        records = self._records(call, memory, tools, read)
        if call.turn >= self.steps or not tools.by_job:
            return Reply([reply.text("Last findings."), *records]) if records else reply.say(self.final)
        blocks = records + self._look(call, memory, tools, max(1, self.parallel - len(records)))
        if not blocks:
            return reply.say(self.final)
        return Reply(blocks)

    def _learn(self, call: Call, memory: Memory, tools: ToolSet) -> list[Shown]:
        """Take in the newest results: paths to look at, lines to cite."""
        read: list[Shown] = []
        for use in toolview.latest_uses(call.messages):
            is_read = tools.has("read") and use.name == tools.name("read")
            path = toolview.path_argument(use.input)
            if is_read and path is not None:
                lines = {} if use.is_error else toolview.lines_in(use.text)
                if lines:
                    read.append(Shown(path, lines))
                    memory.next_line[path] = max(memory.next_line.get(path, 1), max(lines) + 1)
                elif not use.is_error or "range" in use.text:
                    memory.exhausted.add(path)
            elif tools.has("record") and use.name == tools.name("record"):
                memory.accepted += not use.is_error
            elif tools.has("list") and use.name == tools.name("list"):
                files, folders = toolview.listing_in(use.text, toolview.path_argument(use.input) or "")
                memory.paths += [p for p in files if p not in memory.paths]
                memory.folders += [f for f in folders if f not in memory.folders]
            elif not use.is_error:
                memory.paths += [p for p in toolview.paths_in(use.text) if p not in memory.paths]
        return read

    def _records(self, call: Call, memory: Memory, tools: ToolSet, read: Sequence[Shown]) -> list[Block]:
        if not tools.has("record"):
            return []
        blocks: list[Block] = []
        for shown in read:
            key = f"{shown.path}:{min(shown.lines)}"
            if key in memory.recorded:
                continue
            memory.recorded.add(key)
            if (len(memory.recorded) - 1) % self.record_every:
                continue
            blocks.append(self._record(tools, shown))
        return blocks

    def _record(self, tools: ToolSet, shown: Shown) -> Block:
        numbers = sorted(n for n, text in shown.lines.items() if text.strip())
        start = numbers[0] if numbers else min(shown.lines)
        end = start
        while end + 1 in shown.lines and end - start < 2:
            end += 1
        quote = "\n".join(shown.lines[n] for n in range(start, end + 1))
        snippet = " ".join(shown.lines[start].split())[:80]
        cited = {"path": shown.path, "start": start, "end": end, "quote": quote}
        known: dict[str, Any] = {
            "claim": f"{shown.path} has at line {start}: {snippet}",
            "kind": "structure",
            "citations": [cited],
            "symbols": toolview.terms(snippet)[:1],
            "confidence": 0.9,
            "relevance": 0.6,
            **cited,
        }
        return reply.tool(tools.name("record"), fill(tools.schema("record"), known))

    def _look(self, call: Call, memory: Memory, tools: ToolSet, most: int) -> list[Block]:
        blocks: list[Block] = []
        asked = question(call)
        words = list(dict.fromkeys([*toolview.terms(asked), *toolview.terms(call.user_text())[:200]])) or ["main"]
        for name, arguments in self._ideas(memory, tools, words, asked):
            key = orjson.dumps([name, arguments], option=orjson.OPT_SORT_KEYS)
            if key in memory.calls:
                continue
            memory.calls.add(key)
            blocks.append(reply.tool(name, arguments))
            if len(blocks) >= most:
                break
        return blocks

    def _ideas(
        self, memory: Memory, tools: ToolSet, words: Sequence[str], asked: str
    ) -> list[tuple[str, dict[str, Any]]]:
        """Calls worth making, best first; those already made are passed over by the caller."""
        ideas: list[tuple[str, Mapping[str, Any]]] = []
        if not memory.calls:
            ideas += [("find", {"query": asked}), ("search", {"query": words[0]}), ("list", {"path": ""})]
        for path in sorted(memory.paths, key=lambda p: memory.next_line.get(p, 0)):
            if path not in memory.exhausted:
                start = memory.next_line.get(path, 1)
                ideas.append(("read", {"path": path, "start": start, "end": start + self.read_lines - 1}))
        ideas += [("list", {"path": folder}) for folder in memory.folders]
        for word in words:
            ideas += [("search", {"query": word}), ("symbol", {"symbol": word}), ("find", {"query": word})]
        ideas += [("history", {"path": p, "start": 1, "end": 20}) for p in memory.paths]
        return [(tools.name(job), fill(tools.schema(job), known)) for job, known in ideas if tools.has(job)]


def question(call: Call) -> str:
    """The question of a task: what follows `question:` in the first user text, else its first line."""
    text = call.user_text()
    for line in text.splitlines():
        head, colon, rest = line.partition(":")
        if colon and "question" in head.lower() and rest.strip():
            return rest.strip()[:300]
    return next((line.strip() for line in text.splitlines() if line.strip()), "overview")[:300]
