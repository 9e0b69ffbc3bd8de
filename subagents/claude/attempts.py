"""Sending until there is a complete reply: the one retry loop of every request that leaves here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from subagents.claude.brake import Brake
from subagents.claude.replies import StreamReader
from subagents.claude.stops import Trouble

MOST_BROKEN = 4
"""Malformed or cut replies in a row before giving up; each is paid for."""

R = TypeVar("R")


async def until_answered(
    attempt: Callable[[StreamReader], Awaitable[R]], *, brake: Brake, failed: Callable[[Trouble, StreamReader], None]
) -> R:
    """The first attempt that gives a reply. `attempt` reads its stream with the reader it is given.

    `failed` accounts for each attempt that did not, by what its reader had seen. A refusal for everybody closes the
    brake, and the next attempt waits there. Raises Trouble for what trying again cannot cure, Outage from the brake.
    """
    broken = 0
    while True:
        reader = StreamReader()
        try:
            return await attempt(reader)
        except Trouble as trouble:
            failed(trouble, reader)
            if trouble.kind == "throttled":
                brake.refused(trouble)
                continue
            broken += trouble.kind == "broken"
            if trouble.kind != "broken" or broken >= MOST_BROKEN:
                raise
