"""Behaviours by name, for configuration as plain JSON: `"explorer"` or `{"name": "explorer", "steps": 20}`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.fake_api import reply
from tests.fake_api.models.base import Model
from tests.fake_api.models.explorer import Explorer
from tests.fake_api.models.narrow import Narrow, Recall
from tests.fake_api.models.planner import Planner
from tests.fake_api.models.scripted import Ruled, Scripted
from tests.fake_api.models.standard import Standard
from tests.fake_api.models.unruly import (
    Chatty,
    Disagreeing,
    Empty,
    Garbler,
    Liar,
    Obedient,
    Odd,
    Pauser,
    Refuser,
    Stuck,
)
from tests.fake_api.models.verifier import Verifier
from tests.fake_api.reply import Reply


def make_model(given: Model | str | Mapping[str, Any]) -> Model:
    """An object as it is; a name, or a mapping with `name` and the behaviour's own options, as a new object.

    Options `then`, `inner` and `explorer` name another behaviour in the same way.
    """
    if isinstance(given, str):
        return BEHAVIOURS[given]()
    if isinstance(given, Mapping):
        options = dict(given)
        name = options.pop("name")
        for nested in ("then", "inner", "explorer"):
            if nested in options:
                options[nested] = make_model(options[nested])
        return BEHAVIOURS[name](**options)
    return given


def _scripted(replies: Any, *, repeat_last: bool = False) -> Model:
    """Replies as JSON: a string is a final text, a list is content, an object has the fields of `Reply`."""
    if isinstance(replies, Mapping):
        return Scripted({k: [_reply(r) for r in v] for k, v in replies.items()}, repeat_last=repeat_last)
    return Scripted([_reply(r) for r in replies], repeat_last=repeat_last)


def _reply(given: Any) -> Reply:
    if isinstance(given, str):
        return reply.say(given)
    return Reply(given) if isinstance(given, list) else Reply(**given)


def _echo() -> Model:
    return Ruled(lambda call: reply.say(f"You said: {call.user_text()[-200:]}"))


BEHAVIOURS: Mapping[str, Callable[..., Model]] = {
    "chatty": Chatty,
    "disagreeing": Disagreeing,
    "echo": _echo,
    "empty": Empty,
    "explorer": Explorer,
    "garbler": Garbler,
    "liar": Liar,
    "narrow": Narrow,
    "obedient": Obedient,
    "odd": Odd,
    "pauser": Pauser,
    "planner": Planner,
    "recall": Recall,
    "refuser": Refuser,
    "scripted": _scripted,
    "standard": Standard,
    "stuck": Stuck,
    "verifier": Verifier,
}
