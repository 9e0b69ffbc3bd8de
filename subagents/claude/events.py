"""Server-sent events out of the bytes of a response, as plain JSON objects.

The SDK builds a typed object for each event and each of its parts, which takes longer than everything else we do
with a reply; what is read here is checked by `replies.StreamReader`, which trusts no event anyway.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterator
from typing import Any

import orjson

from subagents.claude.stops import Trouble, trouble_in_stream


class EventDecoder:
    """Fed with chunks cut anywhere. An event that its blank line does not end is never given out."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> Iterator[dict[str, Any]]:
        """The events that this chunk completes. Raises Trouble for an error event, ValueError for what is no JSON."""
        data = self._rest + chunk
        held = b""
        if b"\r" in data:
            if data.endswith(b"\r"):  # half of a line's end, perhaps
                data, held = data[:-1], b"\r"
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *whole, rest = data.split(b"\n\n")
        self._rest = rest + held
        for block in whole:
            if (event := _event(block)) is not None:
                yield event


def _event(block: bytes) -> dict[str, Any] | None:
    name = b""
    data: list[bytes] = []
    for line in block.split(b"\n"):
        field, _, value = line.partition(b":")
        if field == b"data":
            data.append(value.removeprefix(b" "))
        elif field == b"event":
            name = value.removeprefix(b" ")
    text = b"\n".join(data)
    if name == b"error":
        raise trouble_in_stream(text)
    if name == b"ping" or not text:
        return None
    event = orjson.loads(text)
    if not isinstance(event, dict):
        raise Trouble("broken", f"an event of the stream is no object: {text[:80]!r}")
    return event


async def events_of(chunks: AsyncIterable[bytes]) -> AsyncIterator[dict[str, Any]]:
    """All events of one response. Raises what `EventDecoder.feed` raises, and what reading raises."""
    decoder = EventDecoder()
    async for chunk in chunks:
        for event in decoder.feed(chunk):
            yield event
