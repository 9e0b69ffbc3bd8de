"""What leaves is what the SDK's typed method would send; a stream reads the same however it is cut."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subagents.claude.client import make_endpoint
from subagents.claude.events import EventDecoder
from subagents.claude.messages import Request
from subagents.claude.replies import StreamReader
from subagents.claude.stops import Trouble
from tests.fake_api.models.explorer import Explorer
from tests.fake_api.thread import FakeApi
from tests.subagents.claude.world import settings_for

BODY = {
    "model": "claude-opus-5",
    "max_tokens": 500,
    "system": [{"type": "text", "text": "Über alles: \u2028 \U0001f600", "cache_control": {"type": "ephemeral"}}],
    "messages": [{"role": "user", "content": [{"type": "text", "text": 'a "quoted"\nline\t\x7f'}]}],
    "output_config": {"effort": "low"},
}
VARYING = {"content-length", "idempotency-key", "x-stainless-read-timeout"}


@pytest.mark.parametrize("betas", [(), ("context-management-2025-06-27", "compact-2026-01-12")])
async def test_a_request_is_the_one_that_the_typed_method_sends(betas: tuple[str, ...]) -> None:
    request = Request(body=BODY, betas=betas)
    with FakeApi(model=Explorer(steps=1)) as api:
        endpoint = make_endpoint(settings_for(api))
        reader = StreamReader()
        await endpoint.send(request, reader, _nothing, _nothing)
        stream = await endpoint._typed(request)
        typed = StreamReader()
        async for event in stream:
            typed.take(event.to_dict(mode="json"))
        await endpoint.close()
        ours, theirs = api.created
    assert ours.json == theirs.json
    assert (ours.method, ours.path, ours.query) == (theirs.method, theirs.path, theirs.query)
    strip = [{k: v for k, v in r.headers.items() if k not in VARYING} for r in (ours, theirs)]
    assert strip[0] == strip[1]
    said = [{**b, "id": ""} for b in reader.message()["content"]]
    assert said == [{**b, "id": ""} for b in typed.message()["content"]]


EVENTS: list[dict[str, Any]] = [
    {"type": "message_start", "message": {"id": "m", "model": "x", "usage": {"input_tokens": 5}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "zw\u00f6lf\r\n\r\n"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "\u2028 data: x"}},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}},
    {"type": "message_stop"},
]


@given(cuts=st.lists(st.integers(0, 900)), newline=st.sampled_from(["\n", "\r\n", "\r"]), ping=st.integers(0, 6))
def test_a_stream_reads_the_same_wherever_it_is_cut(cuts: list[int], newline: str, ping: int) -> None:
    parts = [f"event: {e['type']}\ndata: {json.dumps(e, ensure_ascii=False)}\n\n" for e in EVENTS]
    parts.insert(ping, ': a comment\nevent: ping\ndata: {"type": "ping"}\n\n')
    data = "".join(parts).replace("\n", newline).encode()
    edges = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    decoder = EventDecoder()
    got = [e for a, b in pairwise(edges) for e in decoder.feed(data[a:b])]
    got += list(decoder.feed(b""))
    if newline == "\r":
        got += list(decoder.feed(b"\n"))  # the last half of a line's end is held until more comes
    assert got == EVENTS


def test_what_no_blank_line_ends_is_not_read() -> None:
    decoder = EventDecoder()
    assert list(decoder.feed(b'event: message_stop\ndata: {"type": "message_stop"}\n')) == []


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        ('{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}', "throttled"),
        ('{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9 > 8"}}', "too_long"),
        ('{"type":"error","error":{"type":"never_heard_of","message":"?"}}', "broken"),
        ("<html>", "broken"),
        ("[]", "broken"),
    ],
)
def test_an_error_inside_a_stream_is_trouble_of_its_kind(data: str, kind: str) -> None:
    with pytest.raises(Trouble) as caught:
        list(EventDecoder().feed(f"event: error\ndata: {data}\n\n".encode()))
    assert caught.value.kind == kind


def _nothing() -> None:
    return None
