"""What is configured stands in the requests, and what the model does not accept is refused before anything is sent."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from manifests.errors import UsageError
from orchestrator.summaries import build_summary
from subagents.claude.client import make_endpoint
from subagents.claude.config import ClaudeSettings, settings_from
from subagents.claude.server_side import DIAGNOSIS_BETA
from subagents.claude.stops import Trouble, as_error
from subagents.engine import Workspace
from tests.fake_api.assertions import assert_all_valid
from tests.fake_api.models.explorer import Explorer
from tests.fake_api.thread import FakeApi
from tests.subagents.claude.world import World, settings_for


async def test_the_apis_own_cache_diagnosis_is_asked_for_with_the_reply_before(here: World) -> None:
    with FakeApi(model=Explorer(steps=3)) as api:
        assert (await here.run(settings_for(api, diagnostics=True))).status == "finished"
        assert_all_valid(api.requests)
        asked = [r.json["diagnostics"]["previous_message_id"] for r in api.created]
        assert asked[0] is None and all(asked[1:]) and len(set(asked)) == len(asked) >= 4
        assert all(DIAGNOSIS_BETA in r.headers["anthropic-beta"] for r in api.created)


async def test_the_cache_may_be_written_for_an_hour(here: World) -> None:
    with FakeApi(model=Explorer(steps=3)) as api:
        await here.run(settings_for(api, cache_ttl="1h"))
        assert_all_valid(api.requests)
    usages = [entry.usage for entry in here.entries]
    assert usages[0].write_1h and usages[1].read
    assert not any(usage.write_5m for usage in usages)


async def test_without_a_cache_nothing_is_marked(here: World) -> None:
    with FakeApi(model=Explorer(steps=3)) as api:
        assert (await here.run(settings_for(api, cache=False))).status == "finished"
        assert not any(b"cache_control" in r.body for r in api.created)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"model": "claude-opus-5-5", "thinking": "enabled", "thinking_budget_tokens": 2_000}, "thinking"),
        ({"model": "claude-haiku-4-5", "effort": "max"}, "effort"),
        ({"model": "claude-opus-4-5", "thinking": "enabled", "thinking_budget_tokens": 90_000}, "thinking"),
    ],
)
async def test_what_the_model_does_not_accept_is_refused_before_anything_is_sent(
    here: World, settings: dict[str, Any], named: str
) -> None:
    with FakeApi(model=Explorer(steps=3)) as api:
        with pytest.raises(UsageError, match=named) as caught:
            await here.run(settings_for(api, **settings))
        assert api.created == []
    assert caught.value.hint


@pytest.mark.parametrize("address", ["notaurl", "http://", "ftp://host", "http://host:port", "//host"])
def test_an_address_that_is_none_is_refused_when_it_is_read(address: str) -> None:
    with pytest.raises(UsageError, match="address") as caught:
        settings_from({}, {"ANTHROPIC_BASE_URL": address})
    assert "ANTHROPIC_BASE_URL" in caught.value.hint


def test_white_space_around_a_key_is_no_part_of_it_and_other_characters_are_refused_unprinted() -> None:
    assert settings_from({"api_key": " sk-1\n"}, {}).api_key == "sk-1"
    assert settings_from({}, {"ANTHROPIC_API_KEY": "sk-2\r\n"}).api_key == "sk-2"
    assert settings_from({}, {"ANTHROPIC_AUTH_TOKEN": " sk-3"}).auth_token == "sk-3"
    for key in ("sk\r-4", "sk 4", "sk\x004", "sk-\u00e4"):
        with pytest.raises(UsageError, match="ANTHROPIC_API_KEY") as caught:
            settings_from({}, {"ANTHROPIC_API_KEY": key})
        assert key not in f"{caught.value} {caught.value.hint}"


def test_prices_are_read_with_the_rest() -> None:
    with pytest.raises(UsageError, match="per_milion"):
        settings_from({"prices": {"default": {"per_milion": 3.0}}}, {})


async def test_a_model_that_the_endpoint_does_not_list_is_told_with_those_it_has() -> None:
    with FakeApi(model=Explorer(steps=1)) as api:
        endpoint = make_endpoint(settings_for(api))
        with pytest.raises(UsageError, match="claude-opus-5x") as caught:
            await endpoint.facts("claude-opus-5x")
        await endpoint.close()
    assert caught.value.hint.startswith("set claude.model or LEADLINE_MODEL to one it has: claude-opus-5")


async def test_a_web_page_is_no_messages_api() -> None:
    with serving(lambda path: (200, "text/html", b"<html><body>It works!</body></html>")) as settings:
        endpoint = make_endpoint(settings)
        with pytest.raises(Trouble, match="It works") as caught:
            await endpoint.facts("m")
        await endpoint.close()
    assert as_error(caught.value).exit_code == 2


async def test_a_list_that_goes_on_elsewhere_proves_no_model_unknown() -> None:
    some = json.dumps({"data": [{"id": "other", "type": "model"}], "has_more": True}).encode()

    def answer(path: str) -> tuple[int, str, bytes]:
        return (200 if path.startswith("/v1/models?") else 404), "application/json", some

    with serving(answer) as settings:
        endpoint = make_endpoint(settings)
        with pytest.raises(UsageError, match="does not say how large the window of 'm' is"):
            await endpoint.facts("m")
        await endpoint.close()


@contextmanager
def serving(answer: Callable[[str], tuple[int, str, bytes]]) -> Iterator[ClaudeSettings]:
    """Settings that reach a server on loopback which answers every GET with (status, content type, body)."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, kind, body = answer(self.path)
            self.send_response(status)
            self.send_header("content-type", kind)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield ClaudeSettings(base_url=f"http://127.0.0.1:{server.server_port}", api_key="k", model="m")
        server.shutdown()


async def test_after_a_phase_that_brought_nothing_no_other_is_planned(here: World, workspace: Workspace) -> None:
    with FakeApi(model=Explorer(steps=3)) as api:
        engine = here.engine(settings_for(api))
        try:
            assert await engine.plan(workspace, 2, [build_summary(1, "explore", [])]) is None
            assert await engine.plan(workspace, engine.settings.max_phases + 1, []) is None
        finally:
            await engine.close()
        assert api.requests == []
