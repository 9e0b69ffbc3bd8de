"""Server-side clearing and compaction: what is applied, what is reported, what must come back."""

from __future__ import annotations

from typing import Any

import anthropic
import pytest
from anthropic.types.compaction_block_ambiguous_error import CompactionBlockAmbiguousError
from anthropic.types.compaction_block_misplaced_error import CompactionBlockMisplacedError

from tests.fake_api import FakeApi, Ruled, reply, samples
from tests.fake_api.models.base import Call
from tests.fake_api.reply import Reply
from tests.fake_api.samples import BOUND, PLAIN, answers, assistant, result, said, use, user, words

EDITING = ["context-management-2025-06-27"]
COMPACTING = ["compact-2026-01-12"]
ON_DEMAND = ["compact-2026-09-04"]


def clear(trigger: int, keep: int = 2, **more: Any) -> dict[str, Any]:
    return {
        "edits": [
            {
                "type": "clear_tool_uses_20250919",
                "trigger": {"type": "input_tokens", "value": trigger},
                "keep": {"type": "tool_uses", "value": keep},
                **more,
            }
        ]
    }


def body(turns: int, size: int = 200, **changes: Any) -> dict[str, Any]:
    messages = samples.conversation(turns, size)
    return {"model": PLAIN, "max_tokens": 300, "tools": samples.TOOLS, "messages": messages, **changes}


def fake(**options: Any) -> FakeApi:
    return FakeApi(model=Ruled(lambda _: reply.say("ok")), **options)


def test_old_results_are_cleared_and_reported() -> None:
    with fake() as api, api.client() as client:
        whole = client.messages.count_tokens(**{k: v for k, v in body(10).items() if k != "max_tokens"}).input_tokens
        message = client.beta.messages.create(**body(10), context_management=clear(1000), betas=EDITING)
        edit = message.context_management.applied_edits[0]
        seen = api.created[-1].visible
    assert edit.type == "clear_tool_uses_20250919"
    assert edit.cleared_tool_uses > 3
    assert message.usage.input_tokens == pytest.approx(whole - edit.cleared_input_tokens, abs=3)
    contents = [b["content"] for m in seen or () for b in m["content"] if b["type"] == "tool_result"]
    assert len(contents) == 10
    assert sum("cleared" in c for c in contents) == edit.cleared_tool_uses
    assert all("cleared" not in c for c in contents[-2:])


def test_below_the_trigger_nothing_is_edited() -> None:
    with fake() as api, api.client() as client:
        message = client.beta.messages.create(**body(10), context_management=clear(900_000), betas=EDITING)
        assert message.context_management.applied_edits == []
        assert api.created[-1].visible is None


def test_clearing_comes_in_batches_and_stays() -> None:
    """Between two clearings the prefix does not move, so the cache can be read."""
    cleared = []
    with fake() as api, api.client() as client:
        for turns in range(1, 25):
            message = client.beta.messages.create(**body(turns), context_management=clear(3000), betas=EDITING)
            applied = message.context_management.applied_edits
            cleared.append(applied[0].cleared_tool_uses if applied else 0)
        assert max(r.prompt_tokens for r in api.created) <= 3000 + 500
    assert cleared == sorted(cleared)
    assert 2 < len(set(cleared)) < 10


def test_excluded_tools_inputs_and_minimum() -> None:
    with fake() as api, api.client() as client:
        kept = client.beta.messages.create(
            **body(10), context_management=clear(1000, exclude_tools=["read"]), betas=EDITING
        )
        assert kept.context_management.applied_edits == []
        little = clear(1000, clear_at_least={"type": "input_tokens", "value": 500_000})
        assert not client.beta.messages.create(
            **body(10), context_management=little, betas=EDITING
        ).context_management.applied_edits
        client.beta.messages.create(**body(10), context_management=clear(1000, clear_tool_inputs=True), betas=EDITING)
        first = api.created[-1].visible or []
    assert first[1]["content"][0]["input"] == {}


def test_count_tokens_previews_the_edits() -> None:
    with fake() as api, api.client() as client:
        request = {k: v for k, v in body(10).items() if k != "max_tokens"}
        told = client.beta.messages.count_tokens(**request, context_management=clear(1000), betas=EDITING)
        message = client.beta.messages.create(**body(10), context_management=clear(1000), betas=EDITING)
    assert told.input_tokens == message.usage.input_tokens
    assert told.context_management.original_input_tokens > told.input_tokens + 500


def test_server_side_edits_do_not_break_bound_thinking() -> None:
    def reads(call: Call) -> Reply:
        return reply.call(reply.tool("read", path=f"f{call.turn}.py"))

    edits = {
        "edits": [
            {"type": "clear_thinking_20251015", "keep": {"type": "thinking_turns", "value": 2}},
            *clear(1500)["edits"],
        ]
    }
    with FakeApi(model=Ruled(reads)) as api, api.client() as client:
        request: dict[str, Any] = {"model": BOUND, "max_tokens": 500, "tools": samples.TOOLS, "messages": [user("hi")]}
        for _ in range(12):
            message = client.beta.messages.create(**request, context_management=edits, betas=EDITING)
            request["messages"] += [said(message), answers(message, words(150))]
        assert all(r.status == 200 for r in api.created)
        applied = message.context_management.applied_edits
        kinds = [e.type for e in applied]
        before = {k: v for k, v in request.items() if k != "max_tokens"}
        before["messages"] = request["messages"][:-2]
        whole = client.messages.count_tokens(**before).input_tokens
        assert message.usage.input_tokens == pytest.approx(whole - sum(e.cleared_input_tokens for e in applied), abs=4)
    assert kinds == ["clear_thinking_20251015", "clear_tool_uses_20250919"]


def test_automatic_compaction_starts_the_reply_and_is_billed_apart() -> None:
    edits = {"edits": [{"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 50_000}}]}
    with fake() as api, api.client() as client:
        request = body(30, 2000)
        message = client.beta.messages.create(**request, context_management=edits, betas=COMPACTING)
        assert [b.type for b in message.content] == ["compaction", "text"]
        assert [i.type for i in message.usage.iterations] == ["compaction", "message"]
        assert message.usage.iterations[0].input_tokens > 50_000
        assert message.usage.input_tokens < 10_000
        assert [c.kind for c in api.ledger] == ["compaction", "message"]
        request["messages"] += [said(message), user("and now?")]
        again = client.beta.messages.create(**request, context_management=edits, betas=COMPACTING)
        assert again.usage.input_tokens < 10_000
        assert [b.type for b in again.content] == ["text"]
        with client.beta.messages.stream(**body(30, 2000), context_management=edits, betas=COMPACTING) as stream:
            streamed = stream.get_final_message()
        assert streamed.content[0].content == message.content[0].content
        assert [i.type for i in streamed.usage.iterations] == ["compaction", "message"]


def test_pause_after_compaction_stops_there() -> None:
    edit = {
        "type": "compact_20260112",
        "trigger": {"type": "input_tokens", "value": 50_000},
        "pause_after_compaction": True,
    }
    with fake() as api, api.client() as client:
        message = client.beta.messages.create(**body(30, 2000), context_management={"edits": [edit]}, betas=COMPACTING)
    assert message.stop_reason == "compaction"
    assert [b.type for b in message.content] == ["compaction"]
    assert message.usage.input_tokens == 0


def compacted(client: Any, request: dict[str, Any]) -> Any:
    return client.beta.messages.create(**request, compaction={"type": "summarize"}, betas=ON_DEMAND)


def test_on_demand_compaction_returns_one_signed_block_that_comes_first() -> None:
    with fake() as api, api.client() as client:
        request = body(10)
        message = compacted(client, request)
        assert (message.stop_reason, [b.type for b in message.content]) == ("compaction", ["compaction"])
        assert message.content[0].signature
        assert [i.type for i in message.usage.iterations] == ["compaction"]
        with client.beta.messages.stream(**request, compaction={"type": "summarize"}, betas=ON_DEMAND) as stream:
            assert stream.get_final_message().content[0].signature
        tail = {**request, "messages": [said(message), user("go on")]}
        shorter = client.beta.messages.create(**tail, betas=ON_DEMAND)
    assert shorter.usage.input_tokens < 1000


def test_bound_thinking_of_the_kept_tail_survives_on_demand_compaction() -> None:
    def reads(call: Call) -> Reply:
        return reply.call(reply.tool("read", path=f"f{call.turn}.py"))

    with FakeApi(model=Ruled(reads)) as api, api.client() as client:
        request: dict[str, Any] = {"model": BOUND, "max_tokens": 500, "tools": samples.TOOLS, "messages": [user("hi")]}
        for _ in range(6):
            message = client.beta.messages.create(**request)
            request["messages"] += [said(message), answers(message)]
        head, tail = request["messages"][:9], request["messages"][9:]
        block = said(compacted(client, {**request, "messages": head}))
        kept = {**request, "messages": [block, *tail]}
        assert client.beta.messages.create(**kept).stop_reason == "tool_use"
        wrong = {**request, "messages": [block, *request["messages"][7:]]}
        with pytest.raises(anthropic.BadRequestError):
            client.beta.messages.create(**wrong)


def test_what_is_refused_about_compaction_blocks() -> None:
    with fake() as api, api.client() as client:
        request = body(3)
        block = said(compacted(client, request))["content"][0]

        def refused(messages: list[dict[str, Any]], code: str, kind: type[anthropic.BadRequestError]) -> None:
            with pytest.raises(kind) as refusal:
                client.beta.messages.create(**{**request, "messages": messages}, betas=ON_DEMAND)
            assert refusal.value.error_code == code

        go = user("go on")
        refused(
            [assistant(block), go, assistant(block), go], "compaction_block_ambiguous", CompactionBlockAmbiguousError
        )
        refused([go, assistant(block), go], "compaction_block_misplaced", CompactionBlockMisplacedError)
        changed = {**block, "content": block["content"] + "!"}
        refused([assistant(changed), go], "compaction_content_mismatch", anthropic.BadRequestError)
        forged = {**block, "signature": "forged"}
        refused([assistant(forged), go], "compaction_signature_invalid", anthropic.BadRequestError)
        with pytest.raises(anthropic.BadRequestError) as refusal:
            compacted(client, {**request, "messages": [user("hi"), assistant(use("c1"))]})
        assert refusal.value.error_code == "compaction_incomplete_turn"
        for clash in ({"stop_sequences": ["x"]}, {"tool_choice": {"type": "any"}}):
            with pytest.raises(anthropic.BadRequestError, match="cannot be combined"):
                compacted(client, {**request, **clash})


def test_failed_compaction_blocks_count_for_nothing() -> None:
    with fake() as api, api.client() as client:
        empty = {"type": "compaction", "content": None}
        messages = [user("hi"), assistant(empty, use("c1")), user(result("c1"))]
        message = client.beta.messages.create(
            model=PLAIN, max_tokens=50, messages=messages, tools=samples.TOOLS, betas=ON_DEMAND
        )
    assert message.stop_reason == "end_turn"
