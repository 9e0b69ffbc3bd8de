"""What a request must look like before it may leave: the seams of the Messages API, checked on our side.

A request that fails here was built wrong by an edit of ours, never by the model: it is a bug, and it is named by its
seam instead of being sent. Rules: the API's documented validation; see docs/design-notes/context.md.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

from manifests.errors import EngineError
from subagents.claude.messages import THINKING, Param, Request

Seam = Literal[
    "roles",
    "empty_content",
    "blank_text",
    "results_first",
    "unpaired_call",
    "foreign_result",
    "duplicate_id",
    "bad_id",
    "thinking_altered",
    "thinking_order",
    "compaction_first",
    "breakpoints",
    "tool_names",
    "last_role",
]
MAX_BREAKPOINTS = 4
_ID = re.compile(r"[a-zA-Z0-9_-]+\Z")
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}\Z")


class SeamBroken(EngineError):
    """A request of ours that the API would refuse."""

    def __init__(self, seam: Seam, where: str, detail: str) -> None:
        super().__init__(
            f"request not sent: seam {seam!r} is broken at {where}: {detail}",
            hint="this is a defect of leadline: report it; the session is saved and resumes",
        )
        self.seam = seam


def check_request(request: Request, *, signed: Collection[str] = (), may_end_with_assistant: bool = False) -> None:
    """Raise SeamBroken at the first broken seam.

    `signed` holds `signature_key` of every signed thinking block as received; an empty collection skips that check.
    `may_end_with_assistant` is true only to continue a paused turn.
    """
    body = request.body
    _check_tools(body.get("tools", ()))
    _check_breakpoints(body)
    messages = body["messages"]
    _check_roles(messages, may_end_with_assistant)
    due: tuple[str, ...] = ()
    seen: set[str] = set()
    for number, message in enumerate(messages):
        where = f"messages.{number}"
        content = message["content"]
        _check_content(content, where)
        if message["role"] == "assistant":
            _check_thinking(content, where, signed)
            due = tuple(block["id"] for block in content if block["type"] == "tool_use")
            _check_ids(due, seen, where)
        else:
            _check_results(content, due, where)
            due = ()
        _check_compaction(content, number, where)
    if due:
        raise SeamBroken("unpaired_call", "the end", f"no results for {sorted(due)}")


def signature_key(block: Mapping[str, Any]) -> str:
    """One string that changes when a thinking block does: all its parts that the model wrote."""
    return f"{block.get('signature', '')}\0{block.get('thinking', '')}\0{block.get('data', '')}"


def _check_tools(tools: Sequence[Param]) -> None:
    names = [tool["name"] for tool in tools]
    for name in names:
        if not _NAME.match(name):
            raise SeamBroken("tool_names", "tools", f"{name!r} is no tool name")
    if len(set(names)) != len(names):
        raise SeamBroken("tool_names", "tools", "two tools of one name")


def _check_breakpoints(body: Param) -> None:
    marks = sum(1 for tool in body.get("tools", ()) if tool.get("cache_control"))
    system = body.get("system", ())
    if not isinstance(system, str):
        marks += sum(1 for block in system if block.get("cache_control"))
    for number, message in enumerate(body["messages"]):
        for block in message["content"]:
            if not block.get("cache_control"):
                continue
            marks += 1
            if block["type"] in THINKING:
                raise SeamBroken("breakpoints", f"messages.{number}", "a thinking block takes no breakpoint")
    if marks > MAX_BREAKPOINTS:
        raise SeamBroken("breakpoints", "the request", f"{marks} breakpoints, {MAX_BREAKPOINTS} allowed")


def _check_roles(messages: Sequence[Param], may_end_with_assistant: bool) -> None:
    if not messages:
        raise SeamBroken("roles", "messages", "none")
    for number, message in enumerate(messages):
        wanted = "user" if number % 2 == 0 else "assistant"
        compacted = number == 0 and message["content"] and message["content"][0].get("type") == "compaction"
        if message["role"] != wanted and not compacted:
            raise SeamBroken("roles", f"messages.{number}", f"{message['role']!r} where {wanted!r} belongs")
    if messages[-1]["role"] != "user" and not may_end_with_assistant:
        raise SeamBroken("last_role", f"messages.{len(messages) - 1}", "a request ends with a user turn")


def _check_content(content: Sequence[Param], where: str) -> None:
    if not content:
        raise SeamBroken("empty_content", where, "no blocks")
    for block in content:
        if block["type"] == "text" and not block["text"].strip():
            raise SeamBroken("blank_text", where, "a text block of white space")
        if block["type"] == "tool_result" and not block["content"]:
            raise SeamBroken("blank_text", where, "a tool result without content")


def _check_thinking(content: Sequence[Param], where: str, signed: Collection[str]) -> None:
    for block in content:
        if block["type"] in THINKING and signed and signature_key(block) not in signed:
            raise SeamBroken("thinking_altered", where, "a thinking block is not as it was received")
    if content[-1]["type"] in THINKING:
        raise SeamBroken("thinking_order", where, "an assistant turn ends in thinking")


def _check_ids(calls: Sequence[str], seen: set[str], where: str) -> None:
    for call in calls:
        if not _ID.match(call):
            raise SeamBroken("bad_id", where, f"{call!r} is no id of a call")
        if call in seen:
            raise SeamBroken("duplicate_id", where, f"the id {call!r} is used twice")
        seen.add(call)


def _check_results(content: Sequence[Param], due: Sequence[str], where: str) -> None:
    kinds = [block["type"] == "tool_result" for block in content]
    if kinds != sorted(kinds, reverse=True):
        raise SeamBroken("results_first", where, "text stands before a tool result")
    got = [block["tool_use_id"] for block in content if block["type"] == "tool_result"]
    if foreign := sorted(set(got) - set(due)):
        raise SeamBroken("foreign_result", where, f"results for {foreign}, which the turn before did not call")
    if missing := sorted(set(due) - set(got)):
        raise SeamBroken("unpaired_call", where, f"no results for {missing}")
    if len(got) != len(set(got)):
        raise SeamBroken("duplicate_id", where, "two results for one call")


def _check_compaction(content: Sequence[Param], number: int, where: str) -> None:
    if any(block["type"] == "compaction" for block in content[1:]):
        raise SeamBroken("compaction_first", where, f"a compaction block is not the first of message {number}")
