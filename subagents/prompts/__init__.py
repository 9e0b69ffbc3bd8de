"""Prompts: Markdown files with named holes `{{name}}`. A value that is missing is an error, and so is one unused.

What comes from the repository goes in through `as_data`, which frames it and cannot be closed from inside.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

_HOLE = re.compile(r"\{\{([a-z_]+)\}\}")


class PromptError(ValueError):
    """A prompt and its values do not fit: a defect, found by the tests of the prompts."""


@cache
def template(name: str) -> str:
    """Text of `<name>.md`, without the trailing newline."""
    return files(__name__).joinpath(f"{name}.md").read_text("utf-8").rstrip("\n")


def holes(name: str) -> frozenset[str]:
    """Names of the holes of a prompt."""
    return frozenset(_HOLE.findall(template(name)))


def render(name: str, **values: str) -> str:
    """The prompt with all holes filled. A line that consists of one hole with an empty value is dropped.

    Values are put in as they are: a hole in a value stays text. Raises PromptError for missing and unused values.
    """
    wanted = holes(name)
    if missing := sorted(wanted - values.keys()):
        raise PromptError(f"prompt {name!r}: no value for {missing}")
    if unused := sorted(values.keys() - wanted):
        raise PromptError(f"prompt {name!r}: unused values {unused}")
    lines = []
    for line in template(name).split("\n"):
        alone = _HOLE.fullmatch(line.strip())
        if alone and not values[alone[1]].strip():
            continue
        lines.append(_HOLE.sub(lambda match: values[match[1]], line))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)) if lines else ""


FRAMES = (
    "state",
    "earlier_steps",
    "ranked_hits",
    "phase_summary",
    "recovered_findings",
    "repository_brief",
)
"""Tags that the program alone may write: what they hold is taken for the program's word or for framed data."""
_FRAME = re.compile(rf"<\s*(/?)\s*({'|'.join(FRAMES)})", re.IGNORECASE)


def defused(text: str) -> str:
    """Text from outside, in which none of the program's own frames can be opened or closed."""
    return _FRAME.sub(r"<\1_\2", text) if "<" in text else text


def as_data(kind: str, text: str) -> str:
    """Text from outside, framed as data under a tag of this kind; a closing tag inside it is defused."""
    if not text.strip():
        return ""
    own = re.compile(rf"<\s*(/?)\s*({re.escape(kind)})", re.IGNORECASE)
    inside = own.sub(r"<\1_\2", defused(text))
    return f"<{kind}>\n{inside}\n</{kind}>"
