"""Every stop reason and every exception of the SDK means something here, on purpose."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import get_args

import anthropic
import httpx2
import pytest
from anthropic._exceptions import AnthropicError
from anthropic.types import StopReason
from anthropic.types.beta import BetaStopReason

from manifests.errors import EngineError, UsageError
from subagents.claude.stops import (
    BY_CLASS,
    STOP_ACTIONS,
    SessionClosed,
    Trouble,
    as_error,
    retry_after_s,
    stop_action,
    trouble_in_stream,
    trouble_of,
)


@pytest.mark.parametrize("reason", sorted({*get_args(StopReason), *get_args(BetaStopReason)}))
def test_each_stop_reason_of_the_sdk_has_an_action(reason: str) -> None:
    assert stop_action(reason)


def test_no_action_is_kept_for_a_reason_the_sdk_does_not_know() -> None:
    assert set(STOP_ACTIONS) == {*get_args(StopReason), *get_args(BetaStopReason)}


def test_an_unknown_reason_is_an_error() -> None:
    with pytest.raises(EngineError, match="tea_break"):
        stop_action("tea_break")


def subclasses(cls: type) -> Iterator[type]:
    for sub in cls.__subclasses__():
        yield sub
        yield from subclasses(sub)


BASES = {"AnthropicError", "APIError"}
ERRORS = sorted(
    {c for c in subclasses(AnthropicError) if c.__module__.startswith("anthropic") and c.__name__ not in BASES},
    key=lambda c: c.__name__,
)


@pytest.mark.parametrize("cls", ERRORS, ids=lambda c: c.__name__)
def test_each_exception_of_the_sdk_is_mapped_by_itself_or_by_its_status(cls: type) -> None:
    found = [c.__name__ for c in cls.__mro__ if c.__name__ in BY_CLASS]
    assert found, f"{cls.__name__} is not mapped"
    if cls.__name__ not in BY_CLASS:
        assert found[0] != "APIStatusError", f"{cls.__name__} has a status of its own that is not mapped"


def test_the_walk_sees_the_sdk_whole() -> None:
    assert len(ERRORS) > 25
    assert {"RateLimitError", "OverloadedError", "CredentialsError"} <= {c.__name__ for c in ERRORS}


def status_error(status: int, body: object, **headers: str) -> anthropic.APIStatusError:
    client = anthropic.Anthropic(api_key="k", base_url="http://127.0.0.1:9")
    response = httpx2.Response(
        status, headers=headers, content=json.dumps(body), request=httpx2.Request("POST", "http://127.0.0.1:9")
    )
    error = client._make_status_error("refused", body=body, response=response)
    client.close()
    return error


CASES = [
    (400, "invalid_request_error", "bad_request"),
    (401, "authentication_error", "closed"),
    (402, "billing_error", "closed"),
    (403, "permission_error", "closed"),
    (404, "not_found_error", "usage"),
    (413, "request_too_large", "too_large"),
    (429, "rate_limit_error", "throttled"),
    (500, "api_error", "throttled"),
    (503, "api_error", "throttled"),
    (504, "timeout_error", "throttled"),
    (529, "overloaded_error", "throttled"),
    (200, "overloaded_error", "throttled"),
    (200, "invalid_request_error", "bad_request"),
    (418, "teapot", "bad_request"),
    (599, "odd", "throttled"),
]


@pytest.mark.parametrize(("status", "kind", "wanted"), CASES)
def test_statuses_and_errors_told_in_a_stream_are_told_apart(status: int, kind: str, wanted: str) -> None:
    trouble = trouble_of(status_error(status, {"type": "error", "error": {"type": kind, "message": "m"}}))
    assert trouble.kind == wanted
    assert not trouble.may_be_charged or status == 200


def test_a_full_window_is_not_any_invalid_request() -> None:
    body = {"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 2 > 1"}}
    assert trouble_of(status_error(400, body)).kind == "too_long"


def test_an_empty_account_is_told_as_an_invalid_request_and_closes_the_session() -> None:
    said = "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing."
    body = {"type": "error", "error": {"type": "invalid_request_error", "message": said}}
    trouble = trouble_of(status_error(400, body))
    assert trouble.kind == "closed"
    assert as_error(trouble).exit_code == 4
    assert trouble_in_stream(json.dumps(body).encode()).kind == "closed"


def test_a_stream_that_breaks_may_have_been_charged_and_a_refused_connection_was_not() -> None:
    assert trouble_of(httpx2.ReadError("cut")).may_be_charged
    assert not trouble_of(httpx2.ConnectError("refused")).may_be_charged
    request = httpx2.Request("POST", "http://127.0.0.1:9")
    wrapped = anthropic.APIConnectionError(request=request)
    wrapped.__cause__ = httpx2.ConnectError("refused")
    assert not trouble_of(wrapped).may_be_charged


def test_exceptions_of_ours_are_not_swallowed() -> None:
    with pytest.raises(ZeroDivisionError):
        trouble_of(ZeroDivisionError())


def test_waits_are_read_from_both_headers_and_nonsense_is_no_wait() -> None:
    assert retry_after_s("1500", "7") == 1.5
    assert retry_after_s(None, "7") == 7
    assert retry_after_s(None, "soon") is None
    assert retry_after_s(None, "nan") is None
    assert retry_after_s(None, "Wed, 21 Oct 2015 07:28:00 GMT") == 0
    assert retry_after_s(None, None) is None
    limited = status_error(429, {}, **{"retry-after": "11"})
    assert trouble_of(limited).retry_after_s == 11


def test_what_the_person_is_told_has_the_right_exit_code() -> None:
    assert isinstance(as_error(Trouble("closed", "no")), SessionClosed)
    assert isinstance(as_error(Trouble("usage", "no")), UsageError)
    assert "batch up to step 4" in str(as_error(Trouble("bad_request", "no"), after_edit="batch up to step 4"))
