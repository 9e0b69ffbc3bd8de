"""Extras that misbehave on request, to stand in for a grammar that crashes, hangs or eats memory."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from subagents.index.extras import BlobExtra, FileFacts, Published

HOSTILE = BlobExtra(name="hostile", version=1, extract="tests.subagents.index.hostile:extract")
COUNTED = BlobExtra(
    name="counted",
    version=1,
    extract="tests.subagents.index.hostile:count",
    finish="tests.subagents.index.hostile:finish",
)


def extract(files: Sequence[FileFacts]) -> list[bytes]:
    return [_extract(facts) for facts in files]


def _extract(facts: FileFacts) -> bytes:
    if "please crash" in facts.text:
        os.abort()
    if "please hang" in facts.text:
        time.sleep(3600)
    if "please eat" in facts.text:
        bytearray(1 << 40)
    if "please raise" in facts.text:
        raise RuntimeError("as asked")
    return b"fine"


def count(files: Sequence[FileFacts]) -> list[bytes]:
    return [f"{f.language} {len(f.symbols)} {','.join(sorted(f.names))}".encode() for f in files]


def finish(published: Published) -> None:
    connection = published.connection
    connection.execute("CREATE TABLE IF NOT EXISTS counted_log (added INTEGER, dropped INTEGER, first INTEGER)")
    connection.execute(
        "INSERT INTO counted_log VALUES (?, ?, ?)", (len(published.added), len(published.dropped), published.first)
    )
    rows = connection.execute("SELECT count(*) FROM extra_counted").fetchone()[0]
    assert rows >= len(published.added)
