"""Rate limits on the fake's clock: requests and input tokens a minute, and requests at once."""

from __future__ import annotations

from dataclasses import dataclass

from tests.fake_api.clock import Clock
from tests.fake_api.errors import Refused

WINDOW_S = 60.0


@dataclass(slots=True)
class RateLimit:
    """None means no limit. The windows follow each other without overlap."""

    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    at_once: int | None = None
    _window: int = -1
    _requests: int = 0
    _tokens: int = 0

    def check(self, clock: Clock, in_flight: int, tokens: int) -> None:
        """Count the request in, or refuse it with the wait that the server asks for."""
        if self.at_once is not None and in_flight > self.at_once:
            raise Refused(
                429, "Number of concurrent connections has exceeded your rate limit.", headers={"retry-after": "0"}
            )
        window = int(clock.now_s() // WINDOW_S)
        if window != self._window:
            self._window, self._requests, self._tokens = window, 0, 0
        over_requests = self.requests_per_minute is not None and self._requests + 1 > self.requests_per_minute
        over_tokens = self.tokens_per_minute is not None and self._tokens + tokens > self.tokens_per_minute
        if over_requests or over_tokens:
            wait = WINDOW_S - clock.now_s() % WINDOW_S
            raise Refused(
                429,
                "This request would exceed your organization's rate limit. Please reduce the prompt length or wait.",
                headers={"retry-after": f"{wait:g}", **self.headers()},
            )
        self._requests += 1
        self._tokens += tokens

    def headers(self) -> dict[str, str]:
        """`anthropic-ratelimit-*` of each answer."""
        shown: dict[str, str] = {}
        for name, limit, used in (
            ("requests", self.requests_per_minute, self._requests),
            ("input-tokens", self.tokens_per_minute, self._tokens),
        ):
            if limit is not None:
                shown[f"anthropic-ratelimit-{name}-limit"] = str(limit)
                shown[f"anthropic-ratelimit-{name}-remaining"] = str(max(0, limit - used))
                shown[f"anthropic-ratelimit-{name}-reset"] = "2030-01-01T00:00:00Z"
        return shown
