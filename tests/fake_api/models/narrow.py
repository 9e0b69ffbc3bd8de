"""A model that reads only the first and the last tokens of its input, and one that recalls what it reads.

Together they show what a context layout is worth: a fact in the middle is lost, one restated at the end is not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tests.fake_api import reply
from tests.fake_api.models.base import Call, Model, block_text
from tests.fake_api.reply import Reply
from tests.fake_api.tokens import count_text

_KEY = re.compile(r"`([^`]+)`|\"([^\"]+)\"|\b([A-Za-z]+[-_][A-Za-z0-9_-]*[A-Za-z0-9])\b|\b([A-Z]+\d+)\b")
_SENTENCE = re.compile(r"[^\n.!?]*(?:[.!?](?!\s|$)[^\n.!?]*)*[.!?]?")


class Recall:
    """Answers the last user text: for each name it asks for, the sentences read elsewhere that hold the name."""

    def reply(self, call: Call) -> Reply:
        texts = [block_text(block) for message in call.messages for block in message["content"]]
        texts = [text for text in texts if text]
        if not texts:
            return reply.say("I do not know.")
        asked = texts.pop()
        names = [next(filter(None, groups)) for groups in _KEY.findall(asked)]
        lines = [line for text in [call.system, *texts] for line in sentences(text)]
        found = list(dict.fromkeys(line for name in names for line in lines if name in line))
        return reply.say("\n".join(found) if found else "I do not know.")


class Narrow:
    """Lets another model see no more than the first and last tokens of the messages."""

    def __init__(self, inner: Model | None = None, *, first_tokens: int = 2000, last_tokens: int = 2000) -> None:
        self._inner = inner or Recall()
        self._first = first_tokens
        self._last = last_tokens

    def reply(self, call: Call) -> Reply:
        return self._inner.reply(replace(call, messages=self.seen(call.messages)))

    def seen(self, messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """The messages with the middle left out; blocks are cut at the edge."""
        sizes = [[count_text(block_text(b)) for b in m["content"]] for m in messages]
        total = sum(map(sum, sizes))
        kept: list[dict[str, Any]] = []
        at = 0
        for message, counts in zip(messages, sizes, strict=True):
            content = []
            for block, size in zip(message["content"], counts, strict=True):
                shown = self._cut(block, size, at, total)
                if shown is not None:
                    content.append(shown)
                at += size
            kept.append({**message, "content": content})
        return kept

    def _cut(self, block: Mapping[str, Any], size: int, at: int, total: int) -> dict[str, Any] | None:
        from_start = max(0, self._first - at)
        from_end = max(0, self._last - (total - at - size))
        if size <= from_start or size <= from_end or size == 0:
            return dict(block)
        if not from_start and not from_end:
            return None
        text = block_text(block)
        head = text[: len(text) * from_start // size]
        tail = text[len(text) - len(text) * from_end // size :] if from_end else ""
        shown = f"{head}\n{tail}"
        return {**block, "content": shown} if block["type"] == "tool_result" else {"type": "text", "text": shown}


def sentences(text: str) -> list[str]:
    """Lines, and long lines by sentence."""
    return [part.strip() for part in _SENTENCE.findall(text) if part.strip()]
