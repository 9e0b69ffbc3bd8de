"""Warming the shared prefix: of many first requests with one prefix, one goes ahead until its reply has begun.

The prompt cache can be read as soon as the reply that wrote it has begun; requests that start before that each pay for
the same write. So the first goes alone, and the others wait for it, not for each other.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass(slots=True)
class _Prefix:
    leading: bool = False
    warm_until: float = 0.0
    changed: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(slots=True)
class Warmth:
    """Which prefixes are in the cache, as far as we know. One for a session."""

    lifetime_s: float = 270.0
    clock: Callable[[], float] = time.monotonic
    _prefixes: dict[str, _Prefix] = field(default_factory=dict)

    @asynccontextmanager
    async def entering(self, prefix: str, alive: Callable[[], None]) -> AsyncIterator[Callable[[], None]]:
        """Wait until the prefix is warm, or lead. Yields what to call when the reply has begun.

        A leader that fails hands the lead to the next one.
        """
        state = self._prefixes.setdefault(prefix, _Prefix())
        while self.clock() >= state.warm_until and state.leading:
            state.changed.clear()
            alive()
            try:
                await asyncio.wait_for(state.changed.wait(), 5.0)
            except TimeoutError:
                continue
        leads = self.clock() >= state.warm_until
        if leads:
            state.leading = True

        def begun() -> None:
            state.warm_until = self.clock() + self.lifetime_s
            state.leading = False
            state.changed.set()

        try:
            yield begun
        finally:
            if leads and state.leading:
                state.leading = False
            state.changed.set()
