"""Running the calls of one turn: side by side, each bounded in time, none able to hurt another.

Errors of the model's making become tool errors. What the model cannot help (state that cannot be written, an engine
that is gone) is raised after all calls of the turn have ended, so that no finished result is lost.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from manifests.errors import EngineError, LeadlineError, StateError
from subagents.claude.messages import ToolResult, ToolUse
from subagents.engine import TaskStopped
from subagents.prompts import defused
from subagents.tools.desk import Desk, as_tool_error
from subagents.tools.output import ToolError, ToolOutput
from subagents.tools.schema import Tool

CALL_TIMEOUT_S = 60.0
MAX_CALLS = 24
"""Of one turn; more are answered with an error, so that one reply cannot start a thousand searches."""
MAX_RESULT_CHARS = 24_000
SHORT_REF = 19
"""Characters of an evidence reference in a digest: `sha256:` and 12 hex digits."""

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Remembered:
    step: int
    output: ToolOutput
    evidence: str
    times: int = 1


@dataclass(slots=True)
class Toolbox:
    """The tools of one subagent, and its memory of identical calls."""

    desk: Desk
    tools: Sequence[Tool]
    max_turn_chars: int = 96_000
    """Of all results of one turn together: what one step may add to the context."""
    news: int = 0
    """New lines shown, findings, notes and questions of the last turn; what `progress` looks at."""
    _most: int = MAX_RESULT_CHARS
    _by_name: dict[str, Tool] = field(default_factory=dict)
    _memory: dict[bytes, _Remembered] = field(default_factory=dict)
    _seen_lines: set[tuple[str, int]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._by_name = {tool.name: tool for tool in self.tools}

    def params(self, *, strict: bool) -> list[dict[str, Any]]:
        """For the request, sorted by name: the same tools always give the same bytes."""
        return [tool.param(strict=strict) for tool in sorted(self.tools, key=lambda tool: tool.name)]

    async def run_all(
        self, calls: Sequence[ToolUse], *, step: int, visible_from: int, done: Callable[[ToolResult], None]
    ) -> list[ToolResult]:
        """Results in the order of the calls. `done` is called for each as soon as it is there.

        `visible_from`: results of steps from here on still stand in the context in full.
        """
        self.news = 0
        self._most = max(1_000, min(MAX_RESULT_CHARS, self.max_turn_chars // max(1, len(calls))))
        tasks = [
            asyncio.ensure_future(self._run(call, step, visible_from, position, done))
            for position, call in enumerate(calls)
        ]
        try:
            results = await asyncio.gather(*tasks, return_exceptions=True)
        except asyncio.CancelledError:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            raise
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return [result for result in results if isinstance(result, ToolResult)]

    async def _run(
        self, call: ToolUse, step: int, visible_from: int, position: int, done: Callable[[ToolResult], None]
    ) -> ToolResult:
        try:
            result = await self._result(call, step, visible_from, position)
        except ToolError as error:
            result = ToolResult(
                tool_use_id=call.id,
                tool=call.name,
                text=self._clean(error.text)[: self._most],
                is_error=True,
                log=f"{call.name}: error {error.code}",
            )
        done(result)
        return result

    async def _result(self, call: ToolUse, step: int, visible_from: int, position: int) -> ToolResult:
        tool = self._by_name.get(call.name)
        if tool is None:
            names = ", ".join(sorted(self._by_name))
            raise ToolError("unknown_tool", f"there is no tool {call.name!r}", f"There are {names}.")
        if position >= MAX_CALLS:
            raise ToolError("rejected", f"more than {MAX_CALLS} calls in one turn", "Call the rest in the next turn.")
        if call.broken:
            raise ToolError(
                "call_cut",
                "the arguments are no complete JSON object, probably cut at the output limit",
                f"Call {call.name} again, with shorter arguments.",
            )
        arguments = tool.arguments(call.input)
        key = orjson.dumps([tool.name, arguments], option=orjson.OPT_SORT_KEYS)
        if tool.remember and (known := self._memory.get(key)) is not None:
            return self._again(call, known, visible_from)
        output = await self._call(tool, arguments)
        return self._took(call, tool, output, key, step)

    async def _call(self, tool: Tool, arguments: dict[str, Any]) -> ToolOutput:
        try:
            if tool.inline:
                given: ToolOutput | Awaitable[ToolOutput] = tool.function(self.desk, **arguments)
                return given if isinstance(given, ToolOutput) else await given
            work = asyncio.to_thread(tool.function, self.desk, **arguments)
            return await asyncio.wait_for(work, CALL_TIMEOUT_S)
        except TimeoutError:
            self.desk.timed_out.append(f"{tool.name} {orjson.dumps(arguments).decode()[:100]}")
            raise ToolError(
                "timed_out",
                f"{tool.name} took longer than {CALL_TIMEOUT_S:g} s; this says nothing about what is there",
                "Narrow the call: a folder, a longer pattern.",
            ) from None
        except (ToolError, StateError, EngineError, TaskStopped):
            raise
        except LeadlineError as error:
            raise as_tool_error(error) from error
        except Exception as error:
            _log.exception("tool %s failed", tool.name)
            raise ToolError(
                "failed",
                f"{tool.name} failed: {type(error).__name__}",
                "Use another tool for this; it is a defect of ours.",
            ) from error

    def _took(self, call: ToolUse, tool: Tool, output: ToolOutput, key: bytes, step: int) -> ToolResult:
        desk = self.desk
        text = self._clean(output.text)
        whole = text
        if len(text) > self._most:
            text = f"{text[: self._most]}\n[... cut: {len(text) - self._most:,} more characters in evidence]"
            output = replace(output, shown=still_shown(output.shown, text))
        desk.took(output)
        digest, evidence = self._clean(output.digest), ""
        if not output.keep:
            raw = self._clean(output.raw) if output.raw else whole
            evidence = desk.recorder.evidence(
                raw.encode("utf-8", "surrogatepass"), tool=tool.name, arguments=dict(call.input)
            )
            desk.evidence_refs.append(evidence)
            digest = f"{digest} [evidence {evidence[:SHORT_REF]}]"
            if tool.remember:
                self._memory[key] = _Remembered(step, output, evidence)
        self.news += output.news + self._new_lines(output)
        return ToolResult(
            tool_use_id=call.id,
            tool=tool.name,
            text=text,
            digest="" if output.keep else f"[result cleared] {digest}",
            evidence=evidence,
            keep=output.keep,
            log=self._clean(output.log),
            shown=tuple(output.shown),
        )

    def _clean(self, text: str) -> str:
        """Without secrets, and without anything that could pass for the program's own frames."""
        return defused(self.desk.redact(text))

    def _new_lines(self, output: ToolOutput) -> int:
        new = 0
        for path, first, last in output.shown:
            for line in range(first, last + 1):
                if (path, line) not in self._seen_lines:
                    self._seen_lines.add((path, line))
                    new += 1
        return new

    def _again(self, call: ToolUse, known: _Remembered, visible_from: int) -> ToolResult:
        """An identical call: a pointer while its answer still stands, the answer once more when that was cleared."""
        known.times += 1
        said = f"Same call as in step {known.step + 1}."
        text = self._clean(known.output.text)[: self._most]
        digest = f"{said} {self._clean(known.output.digest)} [evidence {known.evidence[:SHORT_REF]}]"
        if known.step >= visible_from:
            text, body_digest = f"{said} Its result stands above, unchanged.", ""
        elif known.times > 3:
            text = f"{digest}\nAsked {known.times} times: record what it shows, or ask something else."
            body_digest = ""
        else:
            text, body_digest = f"{said}\n{text}", f"[result cleared] {digest}"
        return ToolResult(
            tool_use_id=call.id,
            tool=call.name,
            text=text,
            digest=body_digest,
            evidence=known.evidence,
            log=f"{self._clean(known.output.log)} (again)",
        )

    def restore(self, step: int, call: ToolUse, result: ToolResult) -> None:
        """Take in a call of an earlier process: what was shown, noted, settled and read counts on."""
        desk = self.desk
        for path, first, last in result.shown:
            desk.recorder.shown(path, first, last)
            desk.files_read.add(path)
            desk.read.setdefault(path, [])
            if result.tool == "read_file":
                desk.read[path].append((first, last))
            self._seen_lines.update((path, line) for line in range(first, last + 1))
        if result.evidence:
            desk.evidence_refs.append(result.evidence)
        if result.is_error:
            return
        if call.name == "note" and isinstance(call.input.get("text"), str):
            desk.notes.append(str(call.input["text"]))
        if call.name == "update_open_questions":
            settled = call.input.get("settle")
            desk.settled.update(str(q) for q in settled if isinstance(q, str)) if isinstance(settled, list) else None
        if call.name in ("search_text", "find") and result.log:
            desk.searched.append(result.log)


_NUMBERED = re.compile(r"^ *(\d+)\|", re.MULTILINE)


def still_shown(shown: Sequence[tuple[str, int, int]], text: str) -> list[tuple[str, int, int]]:
    """The shown lines whose numbers still stand in a text that was cut."""
    numbers = {int(number) for number in _NUMBERED.findall(text)}
    kept: list[tuple[str, int, int]] = []
    for path, first, last in shown:
        lines = [line for line in range(first, last + 1) if line in numbers]
        if lines:
            kept.append((path, lines[0], lines[-1]))
    return kept
