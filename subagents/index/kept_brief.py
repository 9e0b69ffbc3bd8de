"""The last repository brief, kept beside the index: making it reads files and graphs, and mostly nothing has changed.

It belongs to one publication of the index (snapshot, scope, generation) and to the code that makes briefs, whose own
source is part of the key: a changed rule can never show an old page. It may be deleted at any time, and a page that
redaction would change is not kept at all.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from subagents.codebase import textfile
from subagents.codebase.types import Snapshot
from subagents.index import brief, briefing, entry_points, languages, purposes, sections
from subagents.index.brief import RepositoryBrief, from_dict
from subagents.index.briefing import make_brief
from subagents.index.code_index import StoredIndex

_NAME: Final = "brief.json"
_MAKERS: Final = (brief, briefing, entry_points, languages, purposes, sections, textfile)
_CHECKSUM_BYTES: Final = 32


def repository_brief(snapshot: Snapshot, index: StoredIndex) -> RepositoryBrief:
    """Same snapshot, same brief: it is kept beside the index, and made when there is none."""
    known = kept(index)
    if known is None:
        known = make_brief(snapshot, index)
        keep(index, known)
    return known


def kept(index: StoredIndex) -> RepositoryBrief | None:
    """The brief of what this index holds; None when there is none, or it is of another state, or damaged."""
    import orjson

    try:
        content = (index.file.parent / _NAME).read_bytes()
    except OSError:
        return None
    checksum, body = content[:_CHECKSUM_BYTES], content[_CHECKSUM_BYTES:]
    if checksum != _checksum(body):
        return None
    found = orjson.loads(body)
    return from_dict(found["brief"]) if found["key"] == _key(index) else None


def keep(index: StoredIndex, made: RepositoryBrief) -> None:
    """Keep a brief for the next time. A cache that cannot be written costs time, nothing else."""
    import orjson

    from scratch.redaction import Redactor

    redactor = Redactor()
    document = made.to_dict()
    redactor.json(document)
    if redactor.counts:
        return
    with suppress(OSError, TypeError):  # a folder that cannot be written, a text that is no UTF-8
        body = orjson.dumps({"key": _key(index), "brief": document})
        fd, temporary = tempfile.mkstemp(dir=index.file.parent, prefix=".brief-")
        try:
            with os.fdopen(fd, "wb") as target:
                target.write(_checksum(body) + body)
            Path(temporary).replace(index.file.parent / _NAME)
        except OSError:
            Path(temporary).unlink(missing_ok=True)
            raise


def _key(index: StoredIndex) -> list[Any]:
    makers = hashlib.blake2b(digest_size=16)
    for module in _MAKERS:
        makers.update(Path(str(module.__file__)).read_bytes())
    rows = index.rows("SELECT key, value FROM meta WHERE key IN ('snapshot', 'generation') ORDER BY key")
    return [index.file.name, makers.hexdigest(), *(list(row) for row in rows)]


def _checksum(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=_CHECKSUM_BYTES).digest()
