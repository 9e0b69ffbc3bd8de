"""The protocol as the SDK sees it: plain and streamed replies, counting, models, servers that tell less."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fake_api import COMPATIBLE, FakeApi, Persona, Ruled, Scripted, reply, samples, streaming

TURN = reply.Reply(
    [
        reply.thinking('Let me see: é, \U0001f980 and "quotes".'),
        reply.text("I look at two files."),
        reply.tool("read", path='src/ünïcode "x"\\n.py', start=1, end=1_000_000),
        reply.tool("find", query='\t\n\u2028 nested {"a": [1.5e-3]}'),
    ]
)


def same(plain: Any, streamed: Any) -> None:
    def shape(message: Any) -> list[dict[str, Any]]:
        return [{k: v for k, v in b.to_dict().items() if k not in {"id", "signature"}} for b in message.content]

    assert shape(plain) == shape(streamed)
    assert plain.stop_reason == streamed.stop_reason == "tool_use"
    assert plain.usage.output_tokens == streamed.usage.output_tokens
    assert plain.usage.input_tokens == streamed.usage.input_tokens


@pytest.mark.parametrize("odd_chunks", [False, True])
def test_streamed_reply_equals_the_plain_one(odd_chunks: bool) -> None:
    with FakeApi(model=Scripted([TURN]), odd_chunks=odd_chunks, max_deltas=40) as api, api.client() as client:
        body = {"model": samples.PLAIN, "max_tokens": 500, "messages": [samples.user("hi")], "tools": samples.TOOLS}
        plain = client.messages.create(**body)
        with client.messages.stream(**body) as stream:
            streamed = stream.get_final_message()
    same(plain, streamed)
    assert [b.type for b in plain.content] == ["thinking", "text", "tool_use", "tool_use"]


async def test_async_client_reads_the_same_reply_on_one_connection() -> None:
    with FakeApi(model=Scripted([TURN])) as api:
        async with api.async_client() as client:
            body = {"model": samples.PLAIN, "max_tokens": 500, "messages": [samples.user("hi")], "tools": samples.TOOLS}
            plain = await client.messages.create(**body)
            async with client.beta.messages.stream(**body) as stream:
                streamed = await stream.get_final_message()
        same(plain, streamed)
        assert len(api.created) == 2
        assert not api.problems


def test_events_come_in_the_order_of_the_real_api() -> None:
    with FakeApi(model=Scripted([TURN])) as api, api.client() as client:
        stream = client.messages.with_raw_response.create(
            model=samples.PLAIN, max_tokens=500, messages=[samples.user("hi")], tools=samples.TOOLS, stream=True
        )
        raw = stream.http_response.read().decode()
    names = [line.removeprefix("event: ") for line in raw.splitlines() if line.startswith("event: ")]
    assert names[:3] == ["message_start", "content_block_start", "ping"]
    assert names[-2:] == ["message_delta", "message_stop"]
    assert names.count("content_block_start") == names.count("content_block_stop") == 4
    assert '"type":"signature_delta"' in raw
    assert '"partial_json":""' in raw


@given(text=st.text(min_size=1, max_size=400), most=st.integers(1, 50))
def test_pieces_join_to_the_whole(text: str, most: int) -> None:
    parts = list(streaming.pieces(text, most))
    assert "".join(parts) == text
    assert len(parts) <= most
    assert all(parts)


def test_count_tokens_says_what_the_reply_is_charged() -> None:
    with FakeApi(model=Scripted([reply.say("ok")])) as api, api.client() as client:
        body = {
            "model": samples.PLAIN,
            "messages": samples.conversation(3),
            "tools": samples.TOOLS,
            "system": "You are careful.",
        }
        counted = client.messages.count_tokens(**body).input_tokens
        message = client.messages.create(**body, max_tokens=50)
    assert counted == message.usage.input_tokens > 600
    assert api.ledger[0].prompt_tokens == counted


def test_models_tell_window_limit_and_capabilities() -> None:
    with (
        FakeApi(window_tokens=12_345, specs={samples.BOUND: {"max_output_tokens": 777}}) as api,
        api.client() as client,
    ):
        models = {m.id: m for m in client.models.list(limit=5)}
        assert "claude-mythos-preview" not in models
        info = client.models.retrieve(samples.BOUND)
        assert (info.max_input_tokens, info.max_tokens, info.lifecycle) == (12_345, 777, "active")
        assert info.capabilities.context_management.clear_tool_uses_20250919.supported
        assert not info.capabilities.thinking.types.enabled.supported
        assert client.beta.models.retrieve(samples.BOUND).capabilities.compaction.summarize.supported
        assert len(models) == len(list(client.models.list(limit=1000)))


@pytest.mark.parametrize("usage", ["null_cache", "none"])
def test_compatible_server_leaves_nearly_all_null(usage: str) -> None:
    persona = Persona(
        **{
            **{f: getattr(COMPATIBLE, f) for f in COMPATIBLE.__dataclass_fields__},
            "usage": usage,
            "shows_n_ctx": True,
        }
    )
    specs = {"gemma": {}}
    with FakeApi(model=Scripted([reply.say("hm")]), persona=persona, specs=specs) as api, api.client() as client:
        info = client.models.retrieve("gemma")
        assert info.max_input_tokens is None
        assert info.capabilities is None
        assert info.to_dict()["meta"]["n_ctx"] == 32_768
        message = client.messages.create(
            model="gemma", max_tokens=9, messages=[samples.user("hi")], extra_body={"temperature": 1, "nonsense": 2}
        )
        assert message.content[0].text == "hm"
        if usage == "null_cache":
            assert message.usage.cache_read_input_tokens is None
            assert message.usage.input_tokens > 0
        else:
            assert "usage" not in message.to_dict()
        events = list(client.messages.create(model="gemma", max_tokens=9, messages=[samples.user("hi")], stream=True))
        assert events[-1].type == "message_stop"


def test_reply_is_cut_at_max_tokens_in_the_middle_of_a_call() -> None:
    long = reply.call(reply.tool("read", path="x" * 4000))
    with FakeApi(model=Scripted([long])) as api, api.client() as client:
        body = {"model": samples.PLAIN, "max_tokens": 50, "messages": [samples.user("hi")], "tools": samples.TOOLS}
        plain = client.messages.create(**body)
        with client.messages.stream(**body) as stream:
            streamed = stream.get_final_message()
    assert plain.stop_reason == streamed.stop_reason == "max_tokens"
    assert plain.usage.output_tokens == 50
    assert plain.content[0].input == {}
    assert len(streamed.content[0].input.get("path", "")) < 4000


def test_full_window_ends_the_reply_with_its_own_stop_reason() -> None:
    with FakeApi(model=Scripted([reply.say("word " * 5000)]), window_tokens=400) as api, api.client() as client:
        message = client.messages.create(
            model=samples.PLAIN, max_tokens=2000, messages=[samples.user(samples.words(100))]
        )
    assert message.stop_reason == "model_context_window_exceeded"
    assert message.usage.input_tokens + message.usage.output_tokens == 400


def test_stop_sequence_cuts_and_is_named() -> None:
    with FakeApi(model=Scripted([reply.say("one END two")])) as api, api.client() as client:
        message = client.messages.create(
            model=samples.PLAIN, max_tokens=50, messages=[samples.user("hi")], stop_sequences=["END"]
        )
    assert (message.stop_reason, message.stop_sequence, message.content[0].text) == ("stop_sequence", "END", "one ")


def test_paused_turn_may_come_back_as_it_is() -> None:
    script = Scripted([reply.paused("half"), reply.say("whole")])
    with FakeApi(model=script) as api, api.client() as client:
        first = client.messages.create(model=samples.PLAIN, max_tokens=50, messages=[samples.user("hi")])
        assert first.stop_reason == "pause_turn"
        again = [samples.user("hi"), samples.said(first)]
        second = client.messages.create(model=samples.PLAIN, max_tokens=50, messages=again)
    assert second.content[0].text == "whole"


def test_same_request_again_gets_the_same_turn_of_the_script() -> None:
    with FakeApi(model=Scripted([reply.say("first")])) as api, api.client() as client:
        for _ in range(3):
            message = client.messages.create(model=samples.PLAIN, max_tokens=50, messages=[samples.user("hi")])
            assert message.content[0].text == "first"
        assert not api.problems


def test_exhausted_script_is_a_problem_of_the_test() -> None:
    import anthropic

    with FakeApi(model=Scripted([])) as api, api.client() as client:
        with pytest.raises(anthropic.InternalServerError):
            client.messages.create(model=samples.PLAIN, max_tokens=50, messages=[samples.user("hi")])
        assert "ScriptExhausted" in api.problems[0]


def test_requests_are_kept_byte_for_byte() -> None:
    with FakeApi(model=Ruled(lambda _: reply.say("ok"))) as api, api.client() as client:
        history: list[dict[str, Any]] = []
        for n in range(6):
            history += (
                [samples.user(f"turn {n} é")] if not history else [samples.assistant("ok"), samples.user(f"turn {n}")]
            )
            client.messages.create(model=samples.PLAIN, max_tokens=50, messages=history)
        kept = api.created
        assert [len(r.json["messages"]) for r in kept] == [1, 3, 5, 7, 9, 11]
        assert kept[3].json["messages"] == history[:7]
        assert all(int(r.headers["content-length"]) == len(r.body) for r in kept)
