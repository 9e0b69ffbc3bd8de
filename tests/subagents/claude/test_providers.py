"""The SDK's clients for clouds are a matter of configuration, and what they cannot do is one clear line."""

from __future__ import annotations

import sys
import types
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import httpx2
import pytest
from anthropic import AnthropicError

from manifests.errors import UsageError
from subagents.claude.client import make_endpoint
from subagents.claude.config import ClaudeSettings
from subagents.claude.messages import Request
from subagents.claude.replies import StreamReader
from subagents.claude.stops import SessionClosed, as_error, trouble_of
from tests.fake_api.models.explorer import Explorer
from tests.fake_api.thread import FakeApi
from tests.subagents.claude.world import World, settings_for

BODY = {"model": "m", "max_tokens": 50, "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}]}


async def test_a_task_is_carried_out_through_foundry(here: World) -> None:
    """Its client has no list of models: the window is taken from the configuration."""
    with FakeApi(model=Explorer(steps=3)) as api:
        outcome = await here.run(settings_for(api, provider="foundry", window_tokens=200_000))
        assert api.problems == []
        assert {r.headers.get("api-key") for r in api.created} == {api.api_key}
    assert outcome.status == "finished"
    assert here.recorder(here.task()).findings()


@pytest.mark.parametrize(
    ("provider", "missing"), [("bedrock", "boto3"), ("bedrock", "botocore"), ("vertex", "google.auth")]
)
def test_a_cloud_whose_packages_are_not_installed_is_one_clear_line(
    monkeypatch: pytest.MonkeyPatch, provider: Any, missing: str
) -> None:
    for name in ("boto3", "botocore", "google.auth"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(UsageError, match="not installed") as caught:
        make_endpoint(ClaudeSettings(provider=provider, region="eu-west-1", project="p", model="m"))
    assert f"anthropic[{provider}]" in caught.value.hint


@pytest.mark.parametrize("settings", [{"provider": "foundry"}, {"provider": "vertex"}, {"provider": "bedrock"}])
def test_a_cloud_that_is_not_configured_is_one_clear_line(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any]
) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "CLOUD_ML_REGION", "ANTHROPIC_FOUNDRY_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(UsageError) as caught:
        make_endpoint(ClaudeSettings(model="m", **settings))
    assert caught.value.hint


class _Stream:
    """What a cloud's typed method gives: its own content type, and events that the SDK has decoded."""

    def __init__(self, content_type: str) -> None:
        self.response = httpx2.Response(200, headers={"content-type": content_type})

    async def __aiter__(self) -> AsyncIterator[Mapping[str, Any]]:
        yield {"type": "message_start", "message": {"id": "m", "model": "x", "usage": {"input_tokens": 5}}}
        yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Hello"}}
        yield {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}}
        yield {"type": "message_stop"}


@pytest.mark.parametrize("content_type", ["application/vnd.amazon.eventstream", "text/event-stream; charset=utf-8"])
async def test_the_streams_of_all_clouds_are_read(monkeypatch: pytest.MonkeyPatch, content_type: str) -> None:
    endpoint = make_endpoint(ClaudeSettings(provider="foundry", resource="r", api_key="k", model="m"))

    async def typed(_: Request) -> _Stream:
        return _Stream(content_type)

    monkeypatch.setattr(endpoint, "_typed", typed)
    message, _ = await endpoint.send(Request(body=BODY), StreamReader(), _nothing, _nothing)
    await endpoint.close()
    assert message["content"] == [{"type": "text", "text": "Hello"}]


_nothing: Callable[[], None] = lambda: None  # noqa: E731


def test_credentials_that_a_cloud_does_not_find_stop_the_session_and_what_it_cannot_do_is_usage() -> None:
    class NoCredentialsError(Exception):
        """As botocore's."""

    NoCredentialsError.__module__ = "botocore.exceptions"
    unresolved = RuntimeError("Could not resolve AWS credentials from session")  # the SDK's own words
    for error in (NoCredentialsError("Unable to locate credentials"), unresolved):
        assert isinstance(as_error(trouble_of(error)), SessionClosed)
    assert trouble_of(AnthropicError("Token counting is not supported in Bedrock yet")).kind == "usage"
