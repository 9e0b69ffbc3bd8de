"""Each fault as the SDK feels it, what it costs, and what is served right after it."""

from __future__ import annotations

from typing import Any

import anthropic
import httpx2
import pytest

from tests.fake_api import FakeApi, Fault, FaultPlan, Ruled, faults, reply, samples
from tests.fake_api.faults import FaultCase
from tests.fake_api.limits import RateLimit
from tests.fake_api.samples import PLAIN, user

LONG = reply.call(reply.tool("read", path="x/y.py"), before="some words before the call " * 5)


def fake(*planned: Fault, **options: Any) -> FakeApi:
    plan = FaultPlan(faults.by_number(dict(enumerate(planned))))
    return FakeApi(model=Ruled(lambda _: LONG), faults=plan, **options)


def body(**changes: Any) -> dict[str, Any]:
    return {"model": PLAIN, "max_tokens": 500, "messages": [user("hi")], "tools": samples.TOOLS, **changes}


def streamed(client: Any) -> Any:
    with client.messages.stream(**body()) as stream:
        return stream.get_final_message()


STATUSES = [
    (401, anthropic.AuthenticationError, "authentication_error"),
    (402, anthropic.APIStatusError, "billing_error"),
    (403, anthropic.PermissionDeniedError, "permission_error"),
    (408, anthropic.APIStatusError, "timeout_error"),
    (409, anthropic.ConflictError, "conflict_error"),
    (413, anthropic.APIStatusError, "invalid_request_error"),
    (429, anthropic.RateLimitError, "rate_limit_error"),
    (500, anthropic.InternalServerError, "api_error"),
    (503, anthropic.InternalServerError, "api_error"),
    (504, anthropic.InternalServerError, "timeout_error"),
    (529, anthropic.InternalServerError, "overloaded_error"),
]


@pytest.mark.parametrize(("status", "kind", "name"), STATUSES)
def test_status_raises_its_class_and_costs_nothing(
    status: int, kind: type[anthropic.APIStatusError], name: str
) -> None:
    with fake(Fault(status=status), Fault(status=status)) as api, api.client() as client:
        for attempt in (lambda: client.messages.create(**body()), lambda: streamed(client)):
            with pytest.raises(kind) as failure:
                attempt()
            assert (failure.value.status_code, failure.value.type) == (status, name)
        assert api.ledger == []
        assert streamed(client).stop_reason == "tool_use"


def test_sdk_retries_what_it_may_retry() -> None:
    planned = (Fault(status=529), Fault(kind="reset_before"))
    with fake(*planned) as api, api.client(max_retries=2) as client:
        assert client.messages.create(**body()).stop_reason == "tool_use"
        assert [r.fault for r in api.created] == ["status", "reset_before", None]
        assert len(api.ledger) == 1


def test_retry_after_is_told() -> None:
    with fake(Fault(status=429, retry_after_s=17)) as api, api.client() as client:
        with pytest.raises(anthropic.RateLimitError) as failure:
            client.messages.create(**body())
        assert failure.value.response.headers["retry-after"] == "17"


def test_reset_before_the_first_byte_is_a_connection_error() -> None:
    with fake(*[Fault(kind="reset_before")] * 2) as api, api.client() as client:
        with pytest.raises(anthropic.APIConnectionError):
            client.messages.create(**body())
        with pytest.raises(anthropic.APIConnectionError):
            streamed(client)
        assert api.ledger == []


@pytest.mark.parametrize("kind", ["reset_mid", "reset_after_headers"])
def test_broken_stream_raises_an_error_of_the_http_library_and_is_charged(kind: Any) -> None:
    with fake(Fault(kind=kind, after_events=4)) as api, api.client() as client:
        with pytest.raises(httpx2.TransportError):
            streamed(client)
        assert [c.delivered for c in api.ledger] == [False]
        assert api.ledger[0].input_tokens > 0
        assert streamed(client).stop_reason == "tool_use"


@pytest.mark.parametrize("kind", ["reset_mid", "reset_after_headers"])
def test_broken_plain_answer_is_an_error(kind: Any) -> None:
    with fake(Fault(kind=kind)) as api, api.client() as client:
        with pytest.raises((httpx2.TransportError, anthropic.APIConnectionError)):
            client.messages.create(**body())
        assert [c.delivered for c in api.ledger] == [False]


def test_stream_that_ends_early_but_cleanly_raises_nothing() -> None:
    with fake(Fault(kind="end_early", after_events=5)) as api, api.client() as client:
        message = streamed(client)
        assert message.stop_reason is None
        assert [c.delivered for c in api.ledger] == [False]


def test_sse_error_event_raises_a_status_error_with_status_200() -> None:
    with fake(Fault(kind="sse_error", after_events=3)) as api, api.client() as client:
        with pytest.raises(anthropic.APIStatusError) as failure:
            streamed(client)
        assert failure.value.status_code == 200
        assert failure.value.type == "overloaded_error"


@pytest.mark.parametrize("kind", ["cut_json", "garbage"])
def test_cut_or_senseless_event_is_no_reply(kind: Any) -> None:
    with fake(Fault(kind=kind, after_events=4), Fault(kind=kind)) as api, api.client() as client:
        with pytest.raises(ValueError, match=r"."):
            streamed(client)
        with pytest.raises((ValueError, anthropic.APIError)):
            client.messages.create(**body())
        assert streamed(client).stop_reason == "tool_use"


@pytest.mark.parametrize("status", [200, 502])
def test_html_is_not_a_message(status: int) -> None:
    with fake(Fault(kind="html", status=status)) as api, api.client() as client:
        if status == 200:
            answer = client.messages.create(**body())
            assert not hasattr(answer, "content")
        else:
            with pytest.raises(anthropic.InternalServerError):
                client.messages.create(**body())
        assert api.created[0].fault == "html"


def test_stall_is_a_timeout_of_the_client() -> None:
    with fake(Fault(kind="stall", seconds=0.4)) as api, api.client(timeout=0.1) as client:
        with pytest.raises(anthropic.APITimeoutError):
            client.messages.create(**body())
        assert len(api.created) == 1


def test_seeded_schedule_is_the_same_each_time() -> None:
    def schedule(seed: int) -> list[str | None]:
        rule = faults.seeded(seed, 0.4, most=5)
        cases = [FaultCase(number=n, conversation="c", turn=0, body={}) for n in range(40)]
        return [fault.kind if (fault := rule(case)) else None for case in cases]

    assert schedule(7) == schedule(7)
    assert schedule(7) != schedule(8)
    assert sum(kind is not None for kind in schedule(7)) == 5


def test_rate_limit_refuses_until_the_clock_moves() -> None:
    limit = RateLimit(requests_per_minute=2, tokens_per_minute=100_000)
    with fake(limit=limit) as api, api.client() as client:
        raw = client.messages.with_raw_response.create(**body())
        assert raw.headers["anthropic-ratelimit-requests-limit"] == "2"
        client.messages.create(**body())
        with pytest.raises(anthropic.RateLimitError) as failure:
            client.messages.create(**body())
        headers = failure.value.response.headers
        assert (headers["retry-after"], headers["anthropic-ratelimit-requests-remaining"]) == ("60", "0")
        api.advance(60)
        assert client.messages.create(**body()).stop_reason == "tool_use"


def test_invalid_request_is_refused_even_where_a_fault_is_due() -> None:
    with fake(Fault(status=529)) as api, api.client() as client:
        with pytest.raises(anthropic.BadRequestError):
            client.messages.create(**body(messages=[samples.assistant("x")]))
        assert api.created[0].fault is None
