"""Each refusal of the fake, through the real SDK: the right exception class, status, error type and text."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import anthropic
import pytest

from tests.fake_api import COMPATIBLE, FakeApi, Ruled, reply, samples
from tests.fake_api.assertions import assert_all_valid
from tests.fake_api.samples import BOUND, MANUAL, PLAIN, assistant, marked, result, use, user, words

Body = dict[str, Any]


@pytest.fixture(scope="module")
def api() -> Iterator[FakeApi]:
    with FakeApi(model=Ruled(lambda _: reply.say("ok"))) as fake:
        yield fake
        assert not fake.problems


@pytest.fixture(scope="module")
def client(api: FakeApi) -> Iterator[Any]:
    with api.client() as made:
        yield made


def body(model: str = PLAIN, **changes: Any) -> Body:
    return {"model": model, "max_tokens": 100, "messages": [user("hi")], "tools": samples.TOOLS, **changes}


def history(*messages: Body, model: str = PLAIN, **changes: Any) -> Body:
    return body(model, messages=list(messages), **changes)


def closed(**properties: Any) -> Body:
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {"output_config": {"format": {"type": "json_schema", "schema": schema}}}


def edits(*edit: Body, betas: str = "context-management-2025-06-27") -> Body:
    headers = {"extra_headers": {"anthropic-beta": betas}} if betas else {}
    return {"extra_body": {"context_management": {"edits": list(edit)}}, **headers}


REFUSED: dict[str, tuple[Body, str]] = {
    # conversation
    "no messages": (history(), "at least one message is required"),
    "first message": (history(assistant("x"), user("hi")), 'first message must use the "user" role'),
    "bad role": (history({"role": "tool", "content": "x"}), "messages.0.role: Input should be"),
    "system role on an older model": (
        history(user("hi"), {"role": "system", "content": "state"}, model="claude-opus-4-6"),
        "role 'system' is not supported",
    ),
    "system after assistant": (
        history(user("hi"), assistant("x"), {"role": "system", "content": "state"}, user("y")),
        "a `system` message must follow a `user` message",
    ),
    "unanswered call": (
        history(user("hi"), assistant(use("c1")), user("go on")),
        "without `tool_result` blocks immediately",
    ),
    "unanswered call at the end": (
        history(user("hi"), assistant(use("c1"))),
        "without `tool_result` blocks immediately",
    ),
    "one of two answered": (
        history(user("hi"), assistant(use("c1"), use("c2")), user(result("c2"))),
        "immediately after: c1",
    ),
    "text before the result": (
        history(user("hi"), assistant(use("c1")), user("look:", result("c1"))),
        "without `tool_result` blocks immediately",
    ),
    "answered one turn late": (
        history(user("hi"), assistant(use("c1")), user("wait"), assistant("ok"), user(result("c1"))),
        "without `tool_result` blocks immediately",
    ),
    "result without call": (history(user("hi"), assistant("x"), user(result("c9"))), "unexpected `tool_use_id` found"),
    "result in the first message": (history(user(result("c9"))), "unexpected `tool_use_id` found"),
    "result twice": (
        history(user("hi"), assistant(use("c1")), user(result("c1"), result("c1"))),
        "each tool_use must have a single result",
    ),
    "call id twice": (
        history(user("hi"), assistant(use("c1")), user(result("c1")), assistant(use("c1")), user(result("c1"))),
        "`tool_use` ids must be unique",
    ),
    "tool_use in a user turn": (history(user(use("c1"))), "are not permitted in `user` messages"),
    "tool_result in an assistant turn": (
        history(user("hi"), assistant(result("c1")), user("x")),
        "not permitted in `assistant`",
    ),
    "prefill": (history(user("hi"), assistant("The answer is")), "does not support assistant message prefill"),
    "prefill ending in white space": (
        history(user("hi"), assistant("The answer is "), model=MANUAL),
        "final assistant content cannot end with trailing whitespace",
    ),
    # blocks
    "empty text": (history(user("hi", "")), "text content blocks must be non-empty"),
    "blank text": (history(user(" \n")), "text content blocks must contain non-whitespace text"),
    "empty string content": (history({"role": "user", "content": ""}), "must have non-empty content"),
    "no content": (history({"role": "user", "content": []}), "all messages must have non-empty content"),
    "blank text in a result": (
        history(user("hi"), assistant(use("c1")), user({**result("c1"), "content": [{"type": "text", "text": ""}]})),
        "text content blocks must be non-empty",
    ),
    "unknown block": (history(user({"type": "video", "url": "x"})), "Input tag 'video'"),
    "unknown field of a block": (
        history(user({"type": "text", "text": "x", "note": 1})),
        "note: Extra inputs are not permitted",
    ),
    "missing field of a block": (history(user("hi"), assistant({"type": "tool_use", "id": "c1"})), "Field required"),
    "unknown field of a message": (history({"role": "user", "content": "x", "name": "me"}), "name: Extra inputs"),
    "forged thinking": (
        history(user("hi"), assistant({"type": "thinking", "thinking": "x", "signature": "abc"}, "y"), user("z")),
        "messages.1.content.0: Invalid `signature` in `thinking` block",
    ),
    # top level
    "unknown field": (body(extra_body={"frobnicate": 1}), "frobnicate: Extra inputs are not permitted"),
    "temperature": (body(extra_body={"temperature": 0.5}), "temperature: Extra inputs are not permitted"),
    "max_tokens too large": (body(max_tokens=128_001, stream=True), "128001 > 128000, which is the maximum allowed"),
    "prompt too long": (
        body("claude-haiku-5-5", messages=[user(words(200_000))]),
        "tokens > 200000 maximum",
    ),
    "five breakpoints": (
        history(*(user(marked({"type": "text", "text": f"t{n}"})) for n in range(5))),
        "A maximum of 4 blocks with cache_control may be provided. Found 5.",
    ),
    "long lifetime after short": (
        history(
            user(marked({"type": "text", "text": "a"})),
            user(marked({"type": "text", "text": "b"}, "1h")),
        ),
        "must not come after a ttl='5m'",
    ),
    "cache mark on thinking": (
        history(user("hi"), assistant(marked({"type": "thinking", "thinking": "x", "signature": "s"})), user("z")),
        "cache_control: Extra inputs are not permitted",
    ),
    # tools
    "tool name": (body(tools=[{**samples.READ, "name": "read file"}]), "String should match pattern"),
    "long tool name": (body(tools=[{**samples.READ, "name": "x" * 65}]), "String should match pattern"),
    "tool twice": (body(tools=[samples.READ, samples.READ]), "Tool names must be unique"),
    "tool schema": (body(tools=[{**samples.READ, "input_schema": {}}]), "input_schema.type: Field required"),
    "open strict tool": (
        body(tools=[{"name": "x", "input_schema": {"type": "object", "properties": {}}, "strict": True}]),
        "'additionalProperties' must be explicitly set to false",
    ),
    "forced tool on a model that refuses it": (
        body(BOUND, tool_choice={"type": "tool", "name": "read"}),
        "type 'tool' is not supported for this model",
    ),
    "any tool on a model that refuses it": (body(BOUND, tool_choice={"type": "any"}), "type 'any' is not supported"),
    "forced tool with manual thinking": (
        body(MANUAL, max_tokens=5000, tool_choice={"type": "any"}, thinking={"type": "enabled", "budget_tokens": 2000}),
        "Thinking may not be enabled when tool_choice forces tool use.",
    ),
    "forced tool that is not there": (
        body(tool_choice={"type": "tool", "name": "nope"}),
        "not found in provided tools",
    ),
    "tool choice without tools": (
        body(tools=[], tool_choice={"type": "auto"}),
        "only be specified while providing `tools`",
    ),
    # thinking and effort
    "manual thinking on a new model": (
        body(thinking={"type": "enabled", "budget_tokens": 2000}, max_tokens=5000),
        "'enabled' is not supported for this model",
    ),
    "adaptive thinking on an old model": (body(MANUAL, thinking={"type": "adaptive"}), "'adaptive' is not supported"),
    "thinking cannot be disabled": (
        body("claude-fable-5-1", thinking={"type": "disabled"}),
        "'disabled' is not supported",
    ),
    "small thinking budget": (
        body(MANUAL, max_tokens=5000, thinking={"type": "enabled", "budget_tokens": 100}),
        "greater than or equal to 1024",
    ),
    "thinking budget over max_tokens": (
        body(MANUAL, max_tokens=1500, thinking={"type": "enabled", "budget_tokens": 1500}),
        "`max_tokens` must be greater than `thinking.budget_tokens`",
    ),
    "block binding without its beta": (
        body(BOUND, thinking={"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}),
        "block_binding: Extra inputs are not permitted",
    ),
    "effort": (body(MANUAL, output_config={"effort": "high"}), "does not support the effort level 'high'"),
    # structured outputs
    "open object": (
        body(output_config={"format": {"type": "json_schema", "schema": {"type": "object", "properties": {}}}}),
        "'additionalProperties' must be explicitly set to false",
    ),
    "number limits": (body(**closed(n={"type": "integer", "minimum": 0})), "property 'minimum' is not supported"),
    "string limits": (body(**closed(s={"type": "string", "maxLength": 9})), "property 'maxLength' is not supported"),
    "array limits": (
        body(**closed(a={"type": "array", "items": {}, "maxItems": 3})),
        "property 'maxItems' is not supported",
    ),
    "recursive schema": (
        body(**closed(x={"type": "array", "items": {"$ref": "#/properties/x"}})),
        "Recursive schemas are not supported",
    ),
    # context management
    "edits without a beta": (
        body(**edits({"type": "clear_tool_uses_20250919"}, betas="")),
        "context_management: Extra inputs",
    ),
    "edit of another beta": (body(**edits({"type": "compact_20260112"})), "Input tag 'compact_20260112'"),
    "unknown edit": (body(**edits({"type": "forget_all"})), "Input tag 'forget_all'"),
    "low compaction trigger": (
        body(
            **edits(
                {"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 40_000}},
                betas="compact-2026-01-12",
            )
        ),
        "greater than or equal to 50000",
    ),
    "compaction without its beta": (body(extra_body={"compaction": {"type": "summarize"}}), "compaction: Extra inputs"),
    "unknown beta": (
        body(extra_headers={"anthropic-beta": "time-travel-2030-01-01"}),
        "Unexpected value(s) `time-travel",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_400(client: Any, name: str) -> None:
    asked, text = REFUSED[name]
    with pytest.raises(anthropic.BadRequestError) as refusal:
        client.messages.create(**asked)
    error = refusal.value
    assert (error.status_code, error.type) == (400, "invalid_request_error")
    assert text in str(error.api_message)
    assert error.request_id and error.request_id.startswith("req_")


ACCEPTED: dict[str, Body] = {
    "plain": body(),
    "same-role turns are merged": history(
        user("a"), user("b"), assistant(use("c1")), assistant(use("c2")), user(result("c1")), user(result("c2"), "more")
    ),
    "system message after the user turn": history(user("hi"), {"role": "system", "content": "state"}),
    "system message after results": history(
        user("hi"), assistant(use("c1")), user(result("c1")), {"role": "system", "content": "state"}
    ),
    "four breakpoints": history(*(user(marked({"type": "text", "text": f"t{n}"})) for n in range(4))),
    "prefill on an old model": history(user("hi"), assistant("The answer is"), model=MANUAL),
    "empty result": history(user("hi"), assistant(use("c1")), user({"type": "tool_result", "tool_use_id": "c1"})),
    "effort": body(BOUND, output_config={"effort": "low"}),
    "forced tool": body(tool_choice={"type": "tool", "name": "read"}),
    "temperature on the old API version": body(
        MANUAL, extra_body={"temperature": 0.5}, extra_headers={"anthropic-version": "2023-06-01"}
    ),
    "prewarming": body(max_tokens=0),
    "closed schema": body(**closed(a={"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "null"}]}})),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted(client: Any, name: str) -> None:
    message = client.messages.create(**ACCEPTED[name])
    assert message.stop_reason == ("max_tokens" if name == "prewarming" else "end_turn")


@pytest.mark.parametrize("name", ["unanswered call", "empty text", "open object", "prompt too long"])
def test_streamed_and_counted_requests_are_checked_too(client: Any, name: str) -> None:
    asked, text = REFUSED[name]
    with pytest.raises(anthropic.BadRequestError, match="Error code: 400") as refusal:
        client.messages.create(**asked, stream=True)
    assert text in str(refusal.value)
    counted = {k: v for k, v in asked.items() if k != "max_tokens"}
    if name == "prompt too long":
        assert client.messages.count_tokens(**counted).input_tokens > 200_000
    else:
        with pytest.raises(anthropic.BadRequestError):
            client.messages.count_tokens(**counted)


def test_keys_and_versions(api: FakeApi) -> None:
    def refusal(expected: type[anthropic.APIStatusError], **options: Any) -> anthropic.APIStatusError:
        with api.client(**options) as other, pytest.raises(expected) as caught:
            other.messages.create(**body())
        return caught.value

    wrong = refusal(anthropic.AuthenticationError, api_key="sk-wrong")
    assert (wrong.status_code, wrong.type) == (401, "authentication_error")
    wrong = refusal(anthropic.AuthenticationError, default_headers={"x-api-key": "sk-wrong"})
    assert wrong.api_message == "invalid x-api-key"
    none = refusal(anthropic.AuthenticationError, default_headers={"Authorization": anthropic.Omit()})
    assert none.api_message == "x-api-key header is required"
    version = refusal(anthropic.BadRequestError, default_headers={"anthropic-version": anthropic.Omit()})
    assert version.api_message == "anthropic-version: header is required"
    version = refusal(anthropic.BadRequestError, default_headers={"anthropic-version": "1999-01-01"})
    assert "not a valid version" in str(version.api_message)


def test_unknown_and_retired_models_are_not_found(client: Any) -> None:
    for model in ("claude-nine", "claude-mythos-preview"):
        with warnings.catch_warnings(), pytest.raises(anthropic.NotFoundError) as refusal:
            warnings.simplefilter("ignore", DeprecationWarning)
            client.messages.create(**{**body(), "model": model})
        assert refusal.value.type == "not_found_error"
        assert refusal.value.api_message == f"model: {model}"
    with pytest.raises(anthropic.NotFoundError):
        client.models.retrieve("claude-nine")


def test_body_over_32_mb_is_413(client: Any) -> None:
    with pytest.raises(anthropic.ContentTooLargeError) as refusal:
        client.messages.create(**body(messages=[user("x" * (33 * 1024 * 1024))]))
    assert refusal.value.status_code == 413


def test_compatible_server_checks_next_to_nothing() -> None:
    with FakeApi(model=Ruled(lambda _: reply.say("ok")), persona=COMPATIBLE) as lenient, lenient.client() as other:
        for name in ("unanswered call", "unknown field", "five breakpoints", "edits without a beta"):
            assert other.messages.create(**REFUSED[name][0]).stop_reason == "end_turn"


def test_assert_all_valid_names_what_was_refused(api: FakeApi) -> None:
    good = [r for r in api.requests if r.status == 200]
    assert_all_valid(good)
    bad = [r for r in api.requests if r.status == 400]
    with pytest.raises(AssertionError, match="400"):
        assert_all_valid(bad[:1])


def test_every_text_of_a_refusal_is_tried() -> None:
    """No two entries of the table are the same request by mistake."""
    seen: list[Body] = []
    for asked, _ in REFUSED.values():
        assert asked not in seen
        seen.append(asked)
