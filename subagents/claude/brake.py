"""One brake for all subagents of a process: when one is told to wait, all slow down.

Open: requests pass, at most `limit` at a time. A refusal closes the brake until the server's wait (or a growing pause
with jitter) is over; then one request probes, alone; if it gets through, the brake opens again with half the limit,
which grows back by one for each success. Rate-limit headers of good replies close it before the refusal comes. An
outage longer than `outage_limit_s` ends the session, resumable, for every request that waits.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime

from manifests.errors import EngineError
from subagents.claude.stops import Trouble


@dataclass(frozen=True, slots=True, kw_only=True)
class BrakePolicy:
    parallel: int = 16
    base_s: float = 1.0
    longest_s: float = 60.0
    jitter: float = 0.25
    """A pause is longer by up to this share, so that processes do not wake together."""
    outage_limit_s: float = 900.0
    first_contact_s: float = 30.0
    """The same, as long as no request of this process got through and none even left: more likely a wrong address."""


class Outage(EngineError):
    """Nothing got through for longer than the limit."""


@dataclass(slots=True)
class Brake:
    """Shared by all requests of one event loop."""

    policy: BrakePolicy = field(default_factory=BrakePolicy)
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    dice: random.Random = field(default_factory=random.Random)
    refusals: int = 0
    """All refusals so far; for reports."""
    _limit: float = 0.0
    _running: int = 0
    _closed_until: float = 0.0
    _in_row: int = 0
    _bad_since: float | None = None
    _probing: bool = False
    _last: str = ""
    _reached: bool = False
    """Whether any request left, be it for a refusal."""
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self._limit = float(self.policy.parallel)

    @property
    def is_open(self) -> bool:
        return self._in_row == 0 and self.clock() >= self._closed_until

    @asynccontextmanager
    async def passing(self, alive: Callable[[], None] = lambda: None) -> AsyncIterator[None]:
        """Hold a place among the running requests. Waits as long as it must; raises Outage past the limit.

        `alive` is called while waiting: waiting for everybody's sake is no silence.
        """
        probe = await self._enter(alive)
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1
            if probe:
                self._probing = False
            self._wake()

    async def _enter(self, alive: Callable[[], None]) -> bool:
        while True:
            self._check_outage()
            wait = self._closed_until - self.clock()
            if wait > 0:
                alive()
                await self.sleep(min(wait, 5.0))
            elif self._in_row and not self._probing:
                self._probing = True
                return True
            elif not self._in_row and self._running < max(1, int(self._limit)):
                return False
            else:
                alive()
                await self._until_changed(5.0)

    async def _until_changed(self, longest_s: float) -> None:
        self._changed.clear()
        try:
            await asyncio.wait_for(self._changed.wait(), longest_s)
        except TimeoutError:
            return

    def _wake(self) -> None:
        self._changed.set()

    def succeeded(self, headers: Mapping[str, str] | None = None) -> None:
        """A request got through. `headers` of its response may say that nothing is left until some time."""
        self._in_row = 0
        self._bad_since = None
        self._reached = True
        self._limit = min(float(self.policy.parallel), self._limit + 1.0 / max(1.0, self._limit))
        if headers:
            pause = exhausted_for_s(headers)
            if pause > 0:
                self._closed_until = max(self._closed_until, self.clock() + min(pause, self.policy.longest_s))
        self._wake()

    def refused(self, trouble: Trouble) -> None:
        """A request was refused or lost. Requests that were already out when the brake closed count once."""
        now = self.clock()
        self.refusals += 1
        self._last = str(trouble)
        self._reached = self._reached or not trouble.never_sent
        self._bad_since = now if self._bad_since is None else self._bad_since
        if trouble.retry_after_s is not None and trouble.retry_after_s > self.policy.outage_limit_s:
            raise self._outage(f"the endpoint asks to wait {trouble.retry_after_s:,.0f} s")
        if now >= self._closed_until:
            self._in_row += 1
            self._limit = max(1.0, self._limit / 2)
        pause = min(self.policy.longest_s, self.policy.base_s * 2 ** (self._in_row - 1))
        pause = max(pause, trouble.retry_after_s or 0.0)
        pause *= 1 + self.policy.jitter * self.dice.random()
        self._closed_until = max(self._closed_until, now + pause)
        self._check_outage()
        self._wake()

    def _check_outage(self) -> None:
        limit = self.policy.outage_limit_s
        if not self._reached:
            limit = min(limit, self.policy.first_contact_s)
        if self._bad_since is not None and self.clock() - self._bad_since > limit:
            raise self._outage(f"nothing got through for {self.clock() - self._bad_since:,.0f} s")

    def _outage(self, what: str) -> Outage:
        return Outage(
            f"the model endpoint is not available: {what} (last: {self._last})",
            hint="all work is saved; try `leadline resume` when the endpoint is back",
        )


def exhausted_for_s(headers: Mapping[str, str], now: datetime | None = None) -> float:
    """Seconds until the first exhausted limit is reset, by the API's `anthropic-ratelimit-*` headers; 0 if none is."""
    longest = 0.0
    for name, value in headers.items():
        lowered = name.lower()
        if not (lowered.startswith("anthropic-ratelimit-") and lowered.endswith("-remaining")) or value.strip() != "0":
            continue
        reset = headers.get(f"{name[: -len('remaining')]}reset")
        if reset is None:
            continue
        try:
            at = datetime.fromisoformat(reset)
        except ValueError:
            continue
        if at.tzinfo is not None:
            longest = max(longest, (at - (now or datetime.now(at.tzinfo))).total_seconds())
    return longest
