"""Results go to stdout; nothing of a repository reaches a terminal unescaped, and no secret of it unredacted.

What comes out of a session was redacted when it was written.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import orjson

from orchestrator.terminal import printable, printable_json

if TYPE_CHECKING:
    from subagents.codebase.types import SnapshotId


def print_json(document: object, *, raw: bool = False) -> None:
    """One JSON document, indented, UTF-8, a newline at its end; what a terminal acts on or hides is escaped.

    `raw`: of the repository, so secrets may be in it.
    """
    if raw:
        from scratch.redaction import Redactor

        document = Redactor().json(document)
    sys.stdout.flush()
    written = orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    sys.stdout.buffer.write(printable_json(written.decode()).encode())
    sys.stdout.buffer.flush()


def print_text(text: str, *, raw: bool = False) -> None:
    """Text with every control character shown as an escape. `raw`: of the repository, so secrets may be in it."""
    if raw:
        from scratch.redaction import redact_text

        text = redact_text(text)[0]
    sys.stdout.write(printable(text if text.endswith("\n") else text + "\n"))
    sys.stdout.flush()


def snapshot_document(snapshot: SnapshotId) -> dict[str, object]:
    """The snapshot as `--json` shows it."""
    return {"kind": snapshot.kind, "commit": snapshot.commit, "tree": snapshot.tree, "dirty": snapshot.dirty}


def say(text: str) -> None:
    """One line on stderr."""
    print(printable(text), file=sys.stderr, flush=True)
