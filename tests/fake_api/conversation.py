"""Which conversation a request belongs to, and at which turn it stands, told from the request alone."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Any

import orjson

from tests.fake_api.prompt import Message

TASK_ID = re.compile(r"\bt[0-9a-f]{16}\b")


def conversation_key(messages: Sequence[Message]) -> str:
    """The task id in the first user message if it names one, else a hash of that message's first text."""
    for message in messages:
        if message["role"] != "user":
            continue
        texts = [block["text"] for block in message["content"] if block["type"] == "text"]
        found = TASK_ID.search("\n".join(texts))
        if found:
            return found.group()
        if texts:
            return "c" + hashlib.sha256(texts[0].encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return "c0"


class Turns:
    """Counts the different requests of each conversation and keeps the models' memory."""

    def __init__(self) -> None:
        self._seen: dict[str, dict[bytes, int]] = {}
        self.memory: dict[tuple[str, str], dict[str, Any]] = {}

    def turn(self, conversation: str, messages: Sequence[Message]) -> int:
        """Requests that stand after the same last reply are the same turn: retries and resumes do not advance it."""
        seen = self._seen.setdefault(conversation, {})
        replies = [m["content"] for m in messages if m["role"] == "assistant"]
        mark = hashlib.sha256(orjson.dumps([len(replies), replies[-1] if replies else None])).digest()
        return seen.setdefault(mark, len(seen))
