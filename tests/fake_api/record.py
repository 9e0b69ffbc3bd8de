"""Every request as it came in: bytes, headers, time, what became of it. Bodies share their common starts in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson


class StoredBody:
    """A body kept as what differs from the previous body of its conversation: 400 long turns stay small."""

    __slots__ = ("_base", "_head", "_tail")

    def __init__(self, data: bytes, base: StoredBody | None, base_data: bytes | None) -> None:
        head = common_start(data, base_data) if base is not None and base_data is not None else 0
        self._base = base if head else None
        self._head = head
        self._tail = data[head:]

    def data(self) -> bytes:
        parts: list[bytes] = []
        node: StoredBody | None = self
        upto: int | None = None
        while node is not None:
            end = None if upto is None else upto - node._head
            if end is None or end > 0:
                parts.append(node._tail[:end])
                upto = node._head
            node = node._base
        return b"".join(reversed(parts))


def common_start(a: bytes, b: bytes) -> int:
    """Length of the common start, by comparing halves."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


@dataclass(slots=True)
class RecordedRequest:
    """One request and its fate. `number` counts POST /v1/messages from 0 and is -1 for other routes."""

    index: int
    number: int
    at_s: float
    """Wall-clock time (`time.time()`)."""
    clock_s: float
    """The fake's own clock."""
    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    stored: StoredBody
    conversation: str = ""
    status: int = 0
    error: Mapping[str, Any] | None = None
    fault: str | None = None
    prompt_tokens: int = 0
    """Tokens of the prompt after context edits; 0 if refused before counting."""
    reply: Mapping[str, Any] | None = None
    """The message as answered."""
    visible: list[dict[str, Any]] | None = field(default=None, repr=False)
    """What the model saw, if context edits changed it."""
    handling_s: float = 0.0
    """Processor time that the fake itself spent."""

    @property
    def body(self) -> bytes:
        """The very bytes of the request."""
        return self.stored.data()

    @property
    def json(self) -> Any:
        """The body parsed, afresh at each call."""
        body = self.body
        return orjson.loads(body) if body else None

    @property
    def accepted(self) -> bool:
        return self.status == 200 and self.error is None

    def to_json(self, *, body: bool) -> dict[str, Any]:
        shown = {
            "index": self.index,
            "number": self.number,
            "at_s": self.at_s,
            "clock_s": self.clock_s,
            "method": self.method,
            "path": self.path,
            "query": self.query,
            "headers": dict(self.headers),
            "conversation": self.conversation,
            "status": self.status,
            "error": self.error,
            "fault": self.fault,
            "prompt_tokens": self.prompt_tokens,
            "reply": self.reply,
            "handling_s": self.handling_s,
        }
        if body:
            shown["body"] = self.body.decode("utf-8", "surrogateescape")
        return shown


def from_json(data: Mapping[str, Any]) -> RecordedRequest:
    """A record that another process kept."""
    rest = {k: v for k, v in data.items() if k != "body"}
    body = data.get("body", "").encode("utf-8", "surrogateescape")
    return RecordedRequest(stored=StoredBody(body, None, None), **rest)
