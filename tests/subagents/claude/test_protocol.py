"""The validator refuses, by name, each thing that the API refuses."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from subagents.claude.messages import Request
from subagents.claude.protocol import SeamBroken, check_request, signature_key

THINKING = {"type": "thinking", "thinking": "hm", "signature": "s1"}
GOOD: dict[str, Any] = {
    "model": "m",
    "max_tokens": 10,
    "tools": [{"name": "find", "input_schema": {"type": "object"}}],
    "system": [{"type": "text", "text": "You explore.", "cache_control": {"type": "ephemeral"}}],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "Go."}]},
        {
            "role": "assistant",
            "content": [
                THINKING,
                {"type": "tool_use", "id": "a", "name": "find", "input": {}},
                {"type": "tool_use", "id": "b", "name": "find", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "b", "content": "2"},
                {"type": "tool_result", "tool_use_id": "a", "content": "1"},
                {"type": "text", "text": "state"},
            ],
        },
    ],
}


def _mark(block: dict[str, Any]) -> None:
    block["cache_control"] = {"type": "ephemeral"}


BREAKS: dict[str, tuple[str, Callable[[dict[str, Any]], object]]] = {
    "a result is missing": ("unpaired_call", lambda b: b["messages"][2]["content"].pop(0)),
    "a call at the end": ("last_role", lambda b: b["messages"].pop()),
    "a result nobody called": ("foreign_result", lambda b: b["messages"][2]["content"][0].update(tool_use_id="z")),
    "a result twice": ("duplicate_id", lambda b: b["messages"][2]["content"].insert(0, b["messages"][2]["content"][0])),
    "text before results": ("results_first", lambda b: b["messages"][2]["content"].reverse()),
    "blank text": ("blank_text", lambda b: b["messages"][0]["content"][0].update(text=" \n")),
    "no content": ("empty_content", lambda b: b["messages"][0].update(content=[])),
    "two user turns": ("roles", lambda b: b["messages"].insert(0, b["messages"][0])),
    "no messages": ("roles", lambda b: b.update(messages=[])),
    "thinking altered": ("thinking_altered", lambda b: b["messages"][1]["content"][0].update(thinking="hmm")),
    "thinking last": ("thinking_order", lambda b: b["messages"][1]["content"].reverse()),
    "id with a space": ("bad_id", lambda b: b["messages"][1]["content"][1].update(id="a b")),
    "id used twice": ("duplicate_id", lambda b: b["messages"][1]["content"][1].update(id="b")),
    "tool name": ("tool_names", lambda b: b["tools"][0].update(name="fi nd")),
    "two tools of a name": ("tool_names", lambda b: b["tools"].append(b["tools"][0])),
    "mark on thinking": ("breakpoints", lambda b: _mark(b["messages"][1]["content"][0])),
    "five marks": (
        "breakpoints",
        lambda b: [_mark(x) for x in (*b["messages"][2]["content"], b["messages"][0]["content"][0])],
    ),
    "compaction in the middle": (
        "compaction_first",
        lambda b: b["messages"][1]["content"].insert(1, {"type": "compaction", "content": "x"}),
    ),
}


def checked(body: dict[str, Any]) -> None:
    check_request(Request(body=body), signed={signature_key(THINKING)})


def test_a_valid_request_passes() -> None:
    checked(copy.deepcopy(GOOD))


@pytest.mark.parametrize("name", BREAKS)
def test_each_broken_seam_is_named(name: str) -> None:
    seam, breaking = BREAKS[name]
    body = copy.deepcopy(GOOD)
    breaking(body)
    with pytest.raises(SeamBroken) as caught:
        checked(body)
    assert caught.value.seam == seam
    assert caught.value.exit_code == 4


def test_a_paused_turn_may_be_sent_back_last() -> None:
    body = copy.deepcopy(GOOD)
    body["messages"] = [*body["messages"], {"role": "assistant", "content": [{"type": "text", "text": "so far"}]}]
    check_request(Request(body=body), may_end_with_assistant=True)
    with pytest.raises(SeamBroken):
        check_request(Request(body=body))
