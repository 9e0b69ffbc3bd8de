"""The prompt cache: entries for byte-identical prefixes, made only at breakpoints, read back within 20 blocks.

Source: public documentation on prompt caching. An entry is readable once the reply that wrote it has begun, so the
caller commits what a request writes when it starts to answer, not when the request arrives.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.fake_api.clock import Clock
from tests.fake_api.prompt import Prompt

LOOKBACK_BLOCKS = 20
"""Per breakpoint, itself included."""
LIFETIME_S = {"5m": 300.0, "1h": 3600.0}


@dataclass(slots=True)
class CacheUse:
    """What one request reads and writes, in tokens."""

    input_tokens: int
    read_tokens: int
    write_5m_tokens: int
    write_1h_tokens: int
    read_digests: tuple[bytes, ...]
    writes: tuple[tuple[bytes, str], ...]

    @property
    def write_tokens(self) -> int:
        return self.write_5m_tokens + self.write_1h_tokens


@dataclass(slots=True)
class _Entry:
    ttl: str
    expires_at_s: float


class PromptCache:
    """Prefix digest -> entry. Model and settings are part of the digest."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._entries: dict[bytes, _Entry] = {}

    def measure(self, prompt: Prompt, min_tokens: int) -> CacheUse:
        """What this request would be charged if it were answered now. Changes nothing."""
        marks = [n for n, block in enumerate(prompt.blocks) if block.ttl is not None]
        hit = max((self._hit(prompt, mark) for mark in marks), default=-1)
        read = prompt.cumulative[hit] if hit >= 0 else 0
        writes = [n for n in marks if n > hit and prompt.cumulative[n] >= min_tokens]
        last_1h = max((n for n in writes if prompt.blocks[n].ttl == "1h"), default=-1)
        last = max(writes, default=-1)
        end_1h = prompt.cumulative[last_1h] if last_1h >= 0 else read
        end = prompt.cumulative[last] if last >= 0 else read
        return CacheUse(
            input_tokens=prompt.tokens - end,
            read_tokens=read,
            write_5m_tokens=end - max(end_1h, read),
            write_1h_tokens=max(0, end_1h - read),
            read_digests=tuple(prompt.digests[n] for n in marks if n <= hit)
            + ((prompt.digests[hit],) if hit >= 0 else ()),
            writes=tuple((prompt.digests[n], prompt.blocks[n].ttl or "5m") for n in writes),
        )

    def commit(self, use: CacheUse) -> None:
        """The reply has begun: what it wrote is readable, what it read lives on."""
        now = self._clock.now_s()
        for digest in use.read_digests:
            entry = self._live(digest)
            if entry is not None:
                entry.expires_at_s = now + LIFETIME_S[entry.ttl]
        for digest, ttl in use.writes:
            self._entries[digest] = _Entry(ttl, now + LIFETIME_S[ttl])

    def holds(self, digest: bytes) -> bool:
        return self._live(digest) is not None

    def clear(self) -> None:
        self._entries.clear()

    def _hit(self, prompt: Prompt, mark: int) -> int:
        for n in range(mark, max(-1, mark - LOOKBACK_BLOCKS), -1):
            if self._live(prompt.digests[n]) is not None:
                return n
        return -1

    def _live(self, digest: bytes) -> _Entry | None:
        entry = self._entries.get(digest)
        if entry is not None and entry.expires_at_s <= self._clock.now_s():
            del self._entries[digest]
            return None
        return entry
