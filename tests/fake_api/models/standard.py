"""The model of most tests: plans when asked for structured output, explores when it has tools, else says a sentence."""

from __future__ import annotations

from typing import Any

from tests.fake_api import reply
from tests.fake_api.models import toolview
from tests.fake_api.models.base import Call, Model
from tests.fake_api.models.explorer import Explorer
from tests.fake_api.models.planner import Planner
from tests.fake_api.reply import Reply


class Standard:
    """Options of the explorer by their names; `tasks` and `rounds` are the planner's."""

    def __init__(self, *, tasks: int = 3, rounds: int = 1, explorer: Model | None = None, **options: Any) -> None:
        self.planner = Planner(tasks=tasks, rounds=rounds)
        self.explorer = explorer or Explorer(**options)

    def reply(self, call: Call) -> Reply:
        if call.output_schema is not None or call.forced_tool is not None:
            return self.planner.reply(call)
        if toolview.toolset(call.tools).by_job:
            return self.explorer.reply(call)
        if len(call.tools) == 1:
            return self.planner.reply(call)
        return reply.say("There is nothing to do without tools.")
