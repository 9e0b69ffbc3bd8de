"""The loop of one subagent: assemble, count, validate, send, record durably, act. This file is the whole of it."""

from __future__ import annotations

from manifests.errors import EngineError
from subagents.claude.agent import Agent, DoesNotFit, is_fatal
from subagents.claude.messages import AssistantTurn
from subagents.claude.stops import Trouble, stop_action
from subagents.engine import Outcome

DELIVER = (
    "Nothing has been recorded with record_finding yet, so nothing of this reaches anybody. Record your findings now, "
    "each with the lines you were shown; if the code does not answer the task, record what it does show."
)
CUT = "Your reply was cut at the output limit. Go on where it ended, in smaller pieces."
CUT_CALLS = "Your reply was cut at the output limit. Calls that were complete were run; repeat the others, shorter."
FULL = "The context was full and older steps were replaced by an account of them. Go on."
MOST_IN_A_ROW = 3
"""So many cut, paused or empty replies one after the other, and the task ends with what there is."""


async def run(agent: Agent) -> Outcome:
    """Carry out the task from wherever its transcript stands. Raises only what ends the whole session."""
    try:
        return await _run(agent)
    except DoesNotFit:
        return agent.outcome("failed", "the newest step alone does not fit the window: use a larger one")
    except Trouble as trouble:
        return agent.outcome("failed", f"the request does not fit even when shrunk: {trouble}")
    except EngineError as error:
        if is_fatal(error):
            raise
        return agent.outcome("failed", f"{error} ({error.hint})")


async def _run(agent: Agent) -> Outcome:
    asked_to_deliver = was_full = False
    without_result = 0
    turn = agent.unanswered()
    while True:
        if turn is None:
            if name := agent.limit():
                return agent.outcome("partial", f"the limit on {name} was reached", at_limit=True)
            turn = await _next_turn(agent)
        without_result = 0 if turn.calls or (turn.text and turn.stop_reason == "end_turn") else without_result + 1
        if without_result > MOST_IN_A_ROW:
            return agent.outcome("partial", f"{without_result} replies in a row brought nothing: {turn.stop_reason}")
        verdict = "on"
        match stop_action(turn.stop_reason):
            case "refused":
                return agent.outcome("failed", "the model refused to go on; its calls were not run")
            case "go_on":
                pass  # a paused turn goes back as it is, and is continued
            case "full" if was_full:
                return agent.outcome("partial", "the window is full even after compaction")
            case "full":
                agent.shrink_now = True
                verdict = await agent.finish_step(FULL)
            case "cut":
                verdict = await agent.finish_step(CUT_CALLS if turn.calls else CUT)
            case "act" | "finish" if turn.calls:
                verdict = await agent.finish_step()
            case "act" | "finish" if agent.delivered():
                return agent.outcome("finished")
            case "act" | "finish" if asked_to_deliver:
                return agent.outcome("incomplete", "ended without recording a finding, though asked to")
            case "act" | "finish":
                asked_to_deliver = True
                agent.close_step([], DELIVER)
        if verdict == "stop":
            return agent.outcome("partial", "no progress: nothing new for many steps")
        was_full = stop_action(turn.stop_reason) == "full"
        turn = None


async def _next_turn(agent: Agent) -> AssistantTurn:
    """One complete reply, on disk. A request that turns out too long or too large is shrunk and sent once more."""
    request = await agent.next_request()
    agent.check(request)
    try:
        reply = await agent.ask(request)
    except Trouble:
        request = await agent.shrunk_request("compact")
        agent.check(request)
        reply = await agent.ask(request)
    agent.diagnose(request, reply)
    return agent.record(reply)
