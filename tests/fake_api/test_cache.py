"""The prompt cache: what is written, what is read, and what makes it miss."""

from __future__ import annotations

import copy
import itertools
import threading
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fake_api import FakeApi, Ruled, prompt, reply, samples
from tests.fake_api.cache import PromptCache
from tests.fake_api.catalog import MODELS
from tests.fake_api.clock import Clock
from tests.fake_api.samples import PLAIN, marked, user, words

SYSTEM = [marked({"type": "text", "text": words(1500, "s")})]


def fake(**options: Any) -> FakeApi:
    return FakeApi(model=Ruled(lambda _: reply.say("ok")), **options)


def body(**changes: Any) -> dict[str, Any]:
    return {
        "model": PLAIN,
        "max_tokens": 50,
        "system": SYSTEM,
        "messages": [user("hi")],
        "tools": samples.TOOLS,
        **changes,
    }


def usage(client: Any, request: dict[str, Any]) -> tuple[int, int, int]:
    """(uncached, written, read)."""
    told = client.messages.create(**request).usage
    return told.input_tokens, told.cache_creation_input_tokens, told.cache_read_input_tokens


def test_second_request_reads_what_the_first_wrote() -> None:
    with fake() as api, api.client() as client:
        uncached, written, read = usage(client, body())
        assert (read, written > 1500, uncached < 20) == (0, True, True)
        assert usage(client, body()) == (uncached, 0, written)
        assert api.totals.input_cost == pytest.approx(
            sum(c.input_tokens + 1.25 * c.write_5m_tokens + 0.1 * c.read_tokens for c in api.ledger)
        )


@pytest.mark.parametrize(
    ("change", "missed"),
    [
        ({"tools": samples.TOOLS[:2]}, "all"),
        ({"tools": [samples.READ, samples.FIND, samples.RECORD]}, "all"),
        ({"system": [marked({"type": "text", "text": words(1500, "s") + "."})]}, "all"),
        ({"model": "claude-opus-4-8"}, "all"),
        ({"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}}, "messages"),
        ({"output_config": {"effort": "low"}}, "messages"),
        ({"thinking": {"type": "adaptive"}}, "messages"),
        ({"max_tokens": 51}, "nothing"),
    ],
)
def test_what_a_change_misses(change: dict[str, Any], missed: str) -> None:
    first = body(messages=[user(marked({"type": "text", "text": words(900, "m")})), samples.assistant("x"), user("y")])
    with fake() as api, api.client() as client:
        _, whole, _ = usage(client, first)
        _, written, read = usage(client, {**first, **change})
    if missed == "all":
        assert read == 0
        assert written > 0
    elif missed == "messages":
        assert 1500 < read < whole
        assert written == whole - read
    else:
        assert (written, read) == (0, whole)


def test_growing_conversation_is_written_once_and_read_ever_after() -> None:
    with fake() as api, api.client() as client:
        for turns in range(1, 8):
            messages = samples.conversation(turns, 300)
            messages[-1]["content"][-1] = marked(messages[-1]["content"][-1])
            usage(client, body(messages=messages))
        charges = api.ledger
    for before, now in itertools.pairwise(charges):
        assert now.read_tokens == before.read_tokens + before.write_5m_tokens
        assert now.input_tokens == 0


def test_lookback_ends_after_twenty_blocks() -> None:
    def asked(blocks: int) -> dict[str, Any]:
        content = [{"type": "text", "text": words(60, f"b{n}x")} for n in range(blocks)]
        return body(system=[], tools=[], messages=[user(*content[:-1], marked(content[-1]))])

    with fake() as api, api.client() as client:
        _, written, _ = usage(client, asked(30))
        assert usage(client, asked(49))[2] == written
        api.service.cache.clear()
        usage(client, asked(30))
        assert usage(client, asked(50))[2] == 0


def test_prefix_below_the_minimum_is_not_cached() -> None:
    small = body(system=[marked({"type": "text", "text": words(100)})], tools=[])
    with fake() as api, api.client() as client:
        for _ in range(2):
            assert usage(client, small)[1:] == (0, 0)
        model = {"model": "claude-opus-4-6"}
        assert usage(client, {**body(), **model})[1:] == (0, 0)


def test_entries_live_five_minutes_after_their_last_use_or_an_hour() -> None:
    with fake() as api, api.client() as client:
        _, written, _ = usage(client, body())
        for _ in range(3):
            api.advance(299)
            assert usage(client, body())[2] == written
        api.advance(301)
        assert usage(client, body())[1:] == (written, 0)
        hour = body(system=[marked({"type": "text", "text": words(1500, "h")}, "1h")])
        told = client.messages.create(**hour).usage
        assert told.cache_creation.ephemeral_1h_input_tokens == told.cache_creation_input_tokens > 0
        api.advance(3599)
        assert usage(client, hour)[2] == told.cache_creation_input_tokens
        api.advance(3601)
        assert usage(client, hour)[2] == 0


def test_parallel_first_requests_each_pay_for_the_write() -> None:
    with fake(latency_s=0.15) as api, api.client() as client:
        threads = [threading.Thread(target=usage, args=(client, body(messages=[user(f"q{n}")]))) for n in range(5)]
        begun = time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert time.monotonic() - begun >= 0.15
        assert [c.write_5m_tokens > 0 for c in api.ledger] == [True] * 5
        usage(client, body())
        assert api.ledger[-1].read_tokens > 0


def test_top_level_mark_goes_to_the_last_block() -> None:
    with fake() as api, api.client() as client:
        plain = body(system="", messages=[user(words(800))], cache_control={"type": "ephemeral"})
        uncached, written, _ = usage(client, plain)
        assert uncached == 0
        assert usage(client, plain) == (0, 0, written)


def test_prewarming_writes_without_a_reply() -> None:
    with fake() as api, api.client() as client:
        message = client.messages.create(**body(max_tokens=0))
        assert message.content == []
        assert message.usage.output_tokens == 0
        assert usage(client, body())[2] == message.usage.cache_creation_input_tokens


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({}, None),
        ({"messages": [user("hi"), samples.assistant("ok"), user("more")]}, None),
        ({"tools": samples.TOOLS[:1]}, "tools_changed"),
        ({"system": "other"}, "system_changed"),
        ({"messages": [user("hello")]}, "messages_changed"),
        ({"model": "claude-opus-4-8"}, "model_changed"),
        ({"output_config": {"effort": "low"}}, "unavailable"),
    ],
)
def test_diagnostics_name_what_changed(change: dict[str, Any], reason: str | None) -> None:
    with fake() as api, api.client() as client:
        first = client.messages.create(**body(), diagnostics={"previous_message_id": None})
        assert first.diagnostics is None
        second = client.messages.create(**{**body(), **change}, diagnostics={"previous_message_id": first.id})
    told = second.diagnostics.cache_miss_reason.type if second.diagnostics else None
    assert told == reason


def test_diagnostics_of_an_unknown_message() -> None:
    with fake() as api, api.client() as client:
        message = client.messages.create(**body(), diagnostics={"previous_message_id": "msg_nobody"})
    assert message.diagnostics.cache_miss_reason.type == "previous_message_not_found"


@settings(max_examples=60, deadline=None)
@given(sizes=st.lists(st.integers(1, 400), min_size=1, max_size=12), marks=st.sets(st.integers(0, 11), max_size=4))
def test_parts_always_add_up_to_the_prompt(sizes: list[int], marks: set[int]) -> None:
    content = [{"type": "text", "text": words(size, f"z{n}q")} for n, size in enumerate(sizes)]
    content = [marked(block) if n in marks else block for n, block in enumerate(content)]
    messages = [{"role": "user", "content": content}]
    spec = MODELS[PLAIN]
    cache = PromptCache(Clock())
    built = prompt.build({}, copy.deepcopy(messages), spec, prompt.PromptMemo())
    for _ in range(2):
        use = cache.measure(built, spec.min_cache_tokens)
        assert use.input_tokens + use.write_tokens + use.read_tokens == built.tokens
        assert min(use.input_tokens, use.write_5m_tokens, use.write_1h_tokens, use.read_tokens) >= 0
        cache.commit(use)
    assert use.write_tokens == 0
