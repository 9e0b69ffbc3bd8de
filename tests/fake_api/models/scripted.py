"""Models that say what the test wrote down."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tests.fake_api.models.base import Call, Model
from tests.fake_api.reply import Reply


class ScriptExhausted(AssertionError):
    """The client asked for more turns than the script has."""


class Scripted:
    """A list of replies per conversation: turn n gets reply n, and the same request again gets the same reply.

    A list is used for every conversation; a mapping gives each conversation the list whose key occurs in its first
    user message (or equals its conversation key); `""` matches all.
    """

    def __init__(self, replies: Sequence[Reply] | Mapping[str, Sequence[Reply]], *, repeat_last: bool = False) -> None:
        self._scripts = replies if isinstance(replies, Mapping) else {"": replies}
        self._repeat_last = repeat_last

    def reply(self, call: Call) -> Reply:
        script = self._script(call)
        if call.turn < len(script):
            return script[call.turn]
        if self._repeat_last and script:
            return script[-1]
        raise ScriptExhausted(f"conversation {call.conversation} is at turn {call.turn}, its script has {len(script)}")

    def _script(self, call: Call) -> Sequence[Reply]:
        text = call.user_text()
        for key, script in self._scripts.items():
            if key == call.conversation or key in text:
                return script
        raise ScriptExhausted(f"no script for conversation {call.conversation}")


class Sequential:
    """Replies in the order in which requests reach the model, whoever asks."""

    def __init__(self, replies: Sequence[Reply], then: Model | None = None) -> None:
        self._replies = list(replies)
        self._then = then

    def reply(self, call: Call) -> Reply:
        if self._replies:
            return self._replies.pop(0)
        if self._then is not None:
            return self._then.reply(call)
        raise ScriptExhausted("all replies are used up")


class Ruled:
    """A function as a model."""

    def __init__(self, rule: Callable[[Call], Reply]) -> None:
        self._rule = rule

    def reply(self, call: Call) -> Reply:
        return self._rule(call)
