"""The fake in a thread of the test's process: fast to start, and everything it knows is at hand."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any, Self

from tests.fake_api.clock import Clock
from tests.fake_api.config import settings
from tests.fake_api.ledger import Charge, Totals, total
from tests.fake_api.record import RecordedRequest
from tests.fake_api.server import Server
from tests.fake_api.service import Service


class FakeApi:
    """A context manager. Options are those of `config.settings` and of `Server`.

    with FakeApi(model=Scripted([...]), window_tokens=20_000) as api:
        client = api.client()
    """

    def __init__(
        self, *, latency_s: float = 0.0, event_delay_s: float = 0.0, odd_chunks: bool = False, **options: Any
    ) -> None:
        self.clock = Clock()
        self.service = Service(settings(**options), self.clock)
        self._serving = {"latency_s": latency_s, "event_delay_s": event_delay_s, "odd_chunks": odd_chunks}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self.server: Server | None = None

    def __enter__(self) -> Self:
        ready = threading.Event()
        failed: list[BaseException] = []
        self._thread = threading.Thread(target=self._run, args=(ready, failed), name="fake-api", daemon=True)
        self._thread.start()
        ready.wait()
        if failed:
            raise failed[0]
        return self

    def __exit__(self, *_: object) -> None:
        assert self._loop is not None and self._thread is not None and self.server is not None
        self._loop.call_soon_threadsafe(self.server.stopping.set)
        self._thread.join()

    def _run(self, ready: threading.Event, failed: list[BaseException]) -> None:
        async def serve() -> None:
            try:
                self.server = Server(self.service, **self._serving)
                await self.server.start()
                self._loop = asyncio.get_running_loop()
            except BaseException as error:
                failed.append(error)
                raise
            finally:
                ready.set()
            await self.server.stopping.wait()
            await self.server.stop()

        asyncio.run(serve())

    @property
    def base_url(self) -> str:
        assert self.server is not None
        return f"http://127.0.0.1:{self.server.port}"

    @property
    def api_key(self) -> str:
        return self.service.settings.api_key

    @property
    def env(self) -> dict[str, str]:
        """Environment for a program that is to talk to this fake."""
        return {"ANTHROPIC_BASE_URL": self.base_url, "ANTHROPIC_API_KEY": self.api_key}

    def client(self, **options: Any) -> Any:
        """A real `anthropic.Anthropic` pointed here, without retries unless asked."""
        import anthropic

        return anthropic.Anthropic(**{"base_url": self.base_url, "api_key": self.api_key, "max_retries": 0, **options})

    def async_client(self, **options: Any) -> Any:
        """A real `anthropic.AsyncAnthropic` pointed here, without retries unless asked."""
        import anthropic

        return anthropic.AsyncAnthropic(
            **{"base_url": self.base_url, "api_key": self.api_key, "max_retries": 0, **options}
        )

    @property
    def requests(self) -> list[RecordedRequest]:
        """All requests of all routes, in order of arrival."""
        return list(self.service.requests)

    @property
    def created(self) -> list[RecordedRequest]:
        """POST /v1/messages only."""
        return [r for r in self.service.requests if r.number >= 0]

    @property
    def ledger(self) -> list[Charge]:
        return list(self.service.charges)

    @property
    def totals(self) -> Totals:
        return total(self.service.charges)

    @property
    def problems(self) -> list[str]:
        """Failures of the fake or its script; a test ends with none."""
        return list(self.service.problems)

    def advance(self, seconds: float) -> None:
        """Move the clock that caches and rate limits live by."""
        self.clock.advance(seconds)

    def call(self, function: Callable[[], None]) -> None:
        """Run something on the server's loop, between two requests."""
        assert self._loop is not None
        done = threading.Event()

        def run() -> None:
            function()
            done.set()

        self._loop.call_soon_threadsafe(run)
        done.wait()
