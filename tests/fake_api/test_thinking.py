"""Thinking that comes back: signatures, and on the newest models the conversation that they are bound to."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import anthropic
import pytest

from tests.fake_api import FakeApi, Ruled, reply, samples
from tests.fake_api.models.base import Call
from tests.fake_api.reply import Reply
from tests.fake_api.samples import BOUND, MANUAL, answers, result, said, user

BINDING = ["thinking-binding-controls-2026-08-01"]


def reads(call: Call) -> Reply:
    """Reads a file at each turn."""
    return reply.call(reply.tool("read", path=f"f{call.turn}.py"), before=f"step {call.turn}")


def grown(client: Any, model: str, turns: int, **settings: Any) -> dict[str, Any]:
    """A conversation of that many tool calls, all thinking kept, ready for the next request."""
    messages = [user("Question: where?")]
    request = {"model": model, "max_tokens": 4000, "tools": samples.TOOLS, "system": "Be exact.", "messages": messages}
    request.update(settings)
    for _ in range(turns):
        message = client.messages.create(**request)
        assert message.content[0].type == "thinking"
        messages += [said(message), answers(message)]
    return request


def test_unaltered_conversation_is_accepted_for_ever() -> None:
    with FakeApi(model=Ruled(reads)) as api, api.client() as client:
        grown(client, BOUND, 6)
        assert [r.status for r in api.created] == [200] * 6


def edit_result(request: dict[str, Any]) -> None:
    request["messages"][2]["content"][0]["content"] = "[cleared]"


def edit_system(request: dict[str, Any]) -> None:
    request["system"] = "Be exact. It is Tuesday."


def edit_tools(request: dict[str, Any]) -> None:
    request["tools"] = request["tools"][:2]


def drop_first_turn(request: dict[str, Any]) -> None:
    del request["messages"][1:3]


def insert_text(request: dict[str, Any]) -> None:
    request["messages"][2]["content"].append({"type": "text", "text": "<state>new</state>"})


EDITS: list[Callable[[dict[str, Any]], None]] = [edit_result, edit_system, edit_tools, drop_first_turn, insert_text]


@pytest.mark.parametrize("edit", EDITS)
def test_edit_before_bound_thinking_is_refused(edit: Callable[[dict[str, Any]], None]) -> None:
    with FakeApi(model=Ruled(reads)) as api, api.client() as client:
        request = copy.deepcopy(grown(client, BOUND, 3))
        edit(request)
        with pytest.raises(anthropic.BadRequestError, match="created in a different conversation"):
            client.messages.create(**request)


@pytest.mark.parametrize("edit", EDITS)
def test_same_edit_is_fine_where_thinking_is_not_bound(edit: Callable[[dict[str, Any]], None]) -> None:
    with FakeApi(model=Ruled(reads)) as api, api.client() as client:
        request = copy.deepcopy(grown(client, "claude-opus-5", 3, thinking={"type": "adaptive"}))
        edit(request)
        assert client.messages.create(**request).stop_reason == "tool_use"


@pytest.mark.parametrize("edit", EDITS)
def test_drop_block_drops_and_reports(edit: Callable[[dict[str, Any]], None]) -> None:
    with FakeApi(model=Ruled(reads)) as api, api.client() as client:
        request = copy.deepcopy(grown(client, BOUND, 3))
        edit(request)
        request["thinking"] = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
        message = client.beta.messages.create(**request, betas=BINDING)
        dropped = [t.to_dict() for t in message.input_transformations]
    assert dropped
    assert {d["reason"] for d in dropped} == {"prefix_binding_mismatch"}
    assert dropped[-1]["path"] == f"messages.{len(request['messages']) - 2}.content.0"


def test_appending_moving_marks_and_dropping_thinking_are_safe() -> None:
    with FakeApi(model=Ruled(reads)) as api, api.client() as client:
        request = grown(client, BOUND, 4)
        request["messages"][-1]["content"].append(samples.marked({"type": "text", "text": "state"}))
        client.messages.create(**request)
        request["messages"][-1]["content"][-1].pop("cache_control")
        samples_first = request["messages"][0]["content"][0]
        samples_first["cache_control"] = {"type": "ephemeral"}
        request["system"] = [samples.marked({"type": "text", "text": request["system"]})]
        for oldest in (1, 3, 5, 7):
            client.messages.create(**request)
            del request["messages"][oldest]["content"][0]
        client.messages.create(**request)
        assert all(r.status == 200 for r in api.created)


@pytest.mark.parametrize("model", [BOUND, "claude-opus-5", MANUAL])
def test_altered_thinking_is_refused_on_every_model(model: str) -> None:
    settings = {"thinking": {"type": "enabled", "budget_tokens": 1024} if model == MANUAL else {"type": "adaptive"}}
    with FakeApi(model=Ruled(reads)) as api, api.client() as client:
        request = grown(client, model, 2, **settings)
        request["messages"][1]["content"][0]["thinking"] += "!"
        with pytest.raises(anthropic.BadRequestError, match=r"messages.1.content.0: Invalid `signature` in `thinking`"):
            client.messages.create(**request)


def test_manual_thinking_must_lead_a_running_tool_loop() -> None:
    with FakeApi(model=Ruled(reads)) as api, api.client() as client:
        request = grown(client, MANUAL, 2, thinking={"type": "enabled", "budget_tokens": 1024})
        del request["messages"][-2]["content"][0]
        with pytest.raises(anthropic.BadRequestError, match="a final `assistant` message must start with a thinking"):
            client.messages.create(**request)


def test_thinking_of_another_model_is_dropped() -> None:
    with FakeApi(model=Ruled(reads)) as api, api.client() as client:
        request = grown(client, BOUND, 2)
        request["model"] = "claude-sonnet-5-5"
        message = client.beta.messages.create(**request, betas=BINDING)
        assert [t.reason for t in message.input_transformations] == ["model_binding_mismatch"] * 2


def test_redacted_and_omitted_thinking_go_round() -> None:
    def hidden(call: Call) -> Reply:
        return Reply([reply.redacted(), reply.thinking("secret"), reply.tool("read", path=f"{call.turn}.py")])

    with FakeApi(model=Ruled(hidden)) as api, api.client() as client:
        request: dict[str, Any] = {
            "model": BOUND,
            "max_tokens": 500,
            "tools": samples.TOOLS,
            "messages": [user("hi")],
            "thinking": {"type": "adaptive", "display": "omitted"},
        }
        for _ in range(3):
            message = client.messages.create(**request)
            assert message.content[1].thinking == ""
            assert message.content[1].signature
            request["messages"] += [said(message), answers(message)]
        assert all(r.status == 200 for r in api.created)


def test_restarted_server_knows_its_signatures() -> None:
    with FakeApi(model=Ruled(reads)) as api, api.client() as client:
        request = grown(client, BOUND, 2)
    with FakeApi(model=Ruled(reads)) as api, api.client() as client:
        client.messages.create(**request)
        request["messages"][2]["content"][0] = result(request["messages"][1]["content"][-1]["id"], "other")
        with pytest.raises(anthropic.BadRequestError):
            client.messages.create(**request)
