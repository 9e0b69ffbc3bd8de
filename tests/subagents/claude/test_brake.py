"""One brake for all: on a clock the test holds, so that hours of outage take no time."""

from __future__ import annotations

import asyncio
import random

import pytest

from subagents.claude.brake import Brake, BrakePolicy, Outage, exhausted_for_s
from subagents.claude.stops import Trouble


class Time:
    """A clock that sleeping moves forward, for everybody who sleeps until then."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        until = self.now + seconds
        await asyncio.sleep(0)
        self.now = max(self.now, until)
        await asyncio.sleep(0)


def brake_on(time: Time, **policy: float) -> Brake:
    return Brake(BrakePolicy(**policy), clock=time, sleep=time.sleep, dice=random.Random(1))  # type: ignore[arg-type]


async def test_all_wait_as_long_as_the_server_says_and_one_probes_first() -> None:
    time = Time()
    brake = brake_on(time)
    running = most = 0
    calls: list[float] = []

    async def one() -> None:
        nonlocal running, most
        async with brake.passing():
            calls.append(time.now)
            running += 1
            most = max(most, running)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            running -= 1
            brake.succeeded()

    async with brake.passing():
        brake.refused(Trouble("throttled", "429", retry_after_s=30))
    await asyncio.gather(*(one() for _ in range(90)))
    assert min(calls) >= 30
    assert calls == sorted(calls)
    assert most <= brake.policy.parallel


async def test_a_storm_of_429_brings_the_calls_a_minute_down() -> None:
    """Ninety subagents, every call refused for five minutes: few probes, not thousands of retries."""
    time = Time()
    brake = brake_on(time, outage_limit_s=100_000)
    calls = 0

    async def one() -> None:
        nonlocal calls
        while True:
            async with brake.passing():
                calls += 1
                await asyncio.sleep(0)
                if time.now < 300:
                    brake.refused(Trouble("throttled", "429"))
                else:
                    brake.succeeded()
                    return

    await asyncio.gather(*(one() for _ in range(90)))
    assert calls < 90 + 16 + 30


async def test_an_outage_longer_than_the_limit_ends_every_waiting_request() -> None:
    time = Time()
    brake = brake_on(time, outage_limit_s=900)

    async def one() -> None:
        while True:
            async with brake.passing():
                brake.refused(Trouble("throttled", "overloaded"))

    results = await asyncio.gather(*(one() for _ in range(20)), return_exceptions=True)
    assert all(isinstance(result, Outage) for result in results)
    assert 900 <= time.now < 1_100
    error = next(r for r in results if isinstance(r, Outage))
    assert error.exit_code == 4
    assert "resume" in error.hint
    assert "overloaded" in str(error)


async def test_an_address_that_nothing_ever_answered_at_is_given_up_sooner() -> None:
    time = Time()
    brake = brake_on(time, outage_limit_s=900, first_contact_s=30)

    async def one(trouble: Trouble) -> None:
        while True:
            async with brake.passing():
                brake.refused(trouble)

    with pytest.raises(Outage):
        await one(Trouble("throttled", "no such host", never_sent=True))
    assert 30 <= time.now < 100
    time = Time()
    brake = brake_on(time, outage_limit_s=900, first_contact_s=30)
    async with brake.passing():
        brake.succeeded()
    with pytest.raises(Outage):
        await one(Trouble("throttled", "no such host", never_sent=True))
    assert time.now >= 900


async def test_a_wait_longer_than_the_outage_limit_is_not_slept_through() -> None:
    brake = brake_on(Time(), outage_limit_s=900)
    with pytest.raises(Outage, match="3,600 s"):
        brake.refused(Trouble("throttled", "429", retry_after_s=3_600))


async def test_a_probe_that_fails_closes_again_for_longer() -> None:
    time = Time()
    brake = brake_on(time, jitter=0.0, outage_limit_s=10_000)
    pauses = []
    for _ in range(8):
        before = time.now
        async with brake.passing():
            pauses.append(time.now - before)
            brake.refused(Trouble("throttled", "500"))
    assert pauses == sorted(pauses)
    assert pauses[-1] == brake.policy.longest_s
    async with brake.passing():
        brake.succeeded()
    assert brake.is_open


async def test_an_exhausted_limit_in_good_replies_closes_before_the_refusal() -> None:
    from datetime import UTC, datetime

    headers = {
        "anthropic-ratelimit-requests-remaining": "0",
        "anthropic-ratelimit-requests-reset": "2026-01-01T00:00:20Z",
        "anthropic-ratelimit-tokens-remaining": "100",
        "anthropic-ratelimit-tokens-reset": "2026-01-01T00:10:00Z",
    }
    assert exhausted_for_s(headers, datetime(2026, 1, 1, tzinfo=UTC)) == 20
    assert exhausted_for_s({"anthropic-ratelimit-requests-remaining": "0"}) == 0
    assert exhausted_for_s({**headers, "anthropic-ratelimit-requests-reset": "later"}) == 0


async def test_waiting_is_a_sign_of_life() -> None:
    time = Time()
    brake = brake_on(time)
    beats = []
    brake.refused(Trouble("throttled", "429", retry_after_s=60))
    async with brake.passing(lambda: beats.append(time.now)):
        brake.succeeded()
    assert len(beats) > 5


async def test_a_request_that_is_cancelled_gives_its_place_back() -> None:
    brake = brake_on(Time(), parallel=1)

    async def hang() -> None:
        async with brake.passing():
            await asyncio.Event().wait()

    task = asyncio.create_task(hang())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with brake.passing():
        brake.succeeded()
