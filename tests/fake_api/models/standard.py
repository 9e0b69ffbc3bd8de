"""The model of most tests: plans and answers by structured output, explores or checks claims with tools."""

from __future__ import annotations

from typing import Any

from tests.fake_api import reply
from tests.fake_api.models import toolview
from tests.fake_api.models.base import Call, Model
from tests.fake_api.models.explorer import Explorer
from tests.fake_api.models.planner import Planner
from tests.fake_api.models.verifier import Verifier
from tests.fake_api.reply import Reply


class Standard:
    """Options of the explorer by their names; `tasks` and `rounds` are the planner's, `verdict` the verifier's.

    It checks claims where the system prompt speaks of `UPHELD`.
    """

    def __init__(
        self,
        *,
        tasks: int = 3,
        rounds: int = 1,
        verdict: str = "UPHELD",
        explorer: Model | None = None,
        **options: Any,
    ) -> None:
        self.planner = Planner(tasks=tasks, rounds=rounds)
        self.verifier = Verifier(verdict=verdict)
        self.explorer = explorer or Explorer(**options)

    def reply(self, call: Call) -> Reply:
        if call.output_schema is not None or call.forced_tool is not None:
            return self.planner.reply(call)
        if toolview.toolset(call.tools).by_job:
            return (self.verifier if "UPHELD" in call.system else self.explorer).reply(call)
        if len(call.tools) == 1:
            return self.planner.reply(call)
        return reply.say("There is nothing to do without tools.")
