"""Every kind of turn, cleared, compacted and both, goes back to the endpoint without being refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from subagents.claude.context import Pressure
from subagents.claude.replies import StreamReader
from tests.fake_api import reply
from tests.fake_api.assertions import assert_all_valid
from tests.fake_api.models.base import Model
from tests.fake_api.models.explorer import Explorer
from tests.fake_api.models.scripted import Scripted
from tests.fake_api.reply import Reply
from tests.fake_api.thread import FakeApi
from tests.subagents.claude.world import World, settings_for

CUT = Reply([reply.text("What I have seen so far is that")], "max_tokens")
TALK: tuple[int, Callable[[], Model]] = (3, lambda: Scripted([CUT], repeat_last=True))
CALLS: tuple[int, Callable[[], Model]] = (6, lambda: Explorer(steps=9, parallel=2))
PLAIN, THINKING = "claude-opus-5", "claude-opus-5-5"
CASES = [
    *((model, "none", *TALK) for model in (PLAIN, THINKING)),
    *((model, clearing, *CALLS) for model in (PLAIN, THINKING) for clearing in ("none", "behind", "batch")),
]


@pytest.mark.parametrize(("model", "clearing", "turns", "made"), CASES)
async def test_what_was_said_goes_back_after_each_edit(
    here: World, model: str, clearing: Any, turns: int, made: Callable[[], Model]
) -> None:
    with FakeApi(model=made()) as api:
        settings = settings_for(api, model=model, max_turns=turns, clearing=clearing, server_side=False)
        assert (await here.run(settings)).failure == "the limit on turns was reached"
        engine = here.engine(settings)
        try:
            agent = await engine.agent(here.context(here.task()))
            assert len(agent.history.pairs) == turns
            sizes = [await sent(agent, await agent.next_request())]
            for pressure in ("clear", "compact", "compact_hard", "clear_newest"):
                sizes.append(await sent(agent, await shrunk(agent, pressure)))
            assert agent.history.edits.compacted == turns - 1
            assert sizes[-1] <= sizes[0] + 400, "the account and the state block, at most"
        finally:
            await engine.close()
        assert_all_valid(api.requests)
        assert api.problems == []


async def shrunk(agent: Any, pressure: Pressure) -> Any:
    """The request after an edit of this strength; where it changes nothing any more, the same one again."""
    agent._shrink(pressure)
    return await agent.next_request()


async def sent(agent: Any, request: Any) -> int:
    """Checked here, taken there; its size."""
    agent.check(request)
    await agent.sender.send(request, StreamReader(), lambda: None, lambda: None)
    return int(agent.raw_size(request))
