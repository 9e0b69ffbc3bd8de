"""Results go to stdout, and nothing of a repository reaches a terminal unescaped."""

from __future__ import annotations

import sys

import orjson

from orchestrator.terminal import printable


def print_json(document: object) -> None:
    """One JSON document, indented, UTF-8, a newline at its end."""
    sys.stdout.flush()
    sys.stdout.buffer.write(orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    sys.stdout.buffer.flush()


def print_text(text: str) -> None:
    """Text with every control character shown as an escape."""
    sys.stdout.write(printable(text if text.endswith("\n") else text + "\n"))
    sys.stdout.flush()


def say(text: str) -> None:
    """One line on stderr."""
    print(printable(text), file=sys.stderr, flush=True)
