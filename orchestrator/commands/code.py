"""`leadline find` and `leadline map`: ranked search and the repository brief, without a session."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from manifests.errors import UsageError
from orchestrator.opening import indexed
from orchestrator.output import print_json, print_text, snapshot_document
from orchestrator.settings import load_settings
from orchestrator.streams import readable
from orchestrator.terminal import inert, printable_line
from orchestrator.view import make_view

if TYPE_CHECKING:
    from subagents.codebase.types import FileHit

_LONGEST_QUERY = 1_000_000
"""Bytes. Whole issue reports with logs fit; a file given by mistake does not."""


def find(
    *,
    repo: str,
    query: str | None,
    query_file: str | None,
    limit: int,
    scope: Sequence[str],
    as_json: bool,
    quiet: bool,
) -> int:
    """Print ranked files with reasons and symbols. An empty result is exit code 0 and says so."""
    from subagents.codebase.snapshot import open_snapshot
    from subagents.ranking import open_finder
    from subagents.ranking.remarks import remarks

    text = _query(repo, query, query_file)
    settings = load_settings(os.environ)
    view = make_view(quiet=quiet or as_json, stream=sys.stderr)
    try:
        with (
            open_snapshot(Path(repo), scope=tuple(scope), cache=settings.cache_dir) as snapshot,
            indexed(snapshot, cache_dir=settings.cache_dir, view=view) as index,
        ):
            finder = open_finder(snapshot, index, settings.cache_dir)
            hits = finder.find(text, limit=limit)
            notes = remarks(finder, index, text, hits)
            identity = snapshot_document(snapshot.id)
    finally:
        view.close()
    if as_json:
        results = [_hit_document(h) for h in hits]
        print_json({"query": text, "snapshot": identity, "notes": list(notes), "results": results}, raw=True)
    else:
        for note in notes:
            print_text(note if hits else f"nothing found: {note}", raw=True)
        if hits:
            print_text("\n".join(_hit_text(n, h) for n, h in enumerate(hits, 1)), raw=True)
    return 0


def map_(*, repo: str, scope: Sequence[str], as_json: bool, quiet: bool) -> int:
    """Print the repository brief."""
    from subagents.codebase.snapshot import open_snapshot
    from subagents.index.kept_brief import repository_brief

    settings = load_settings(os.environ)
    view = make_view(quiet=quiet or as_json, stream=sys.stderr)
    try:
        with (
            open_snapshot(Path(repo), scope=tuple(scope), cache=settings.cache_dir) as snapshot,
            indexed(snapshot, cache_dir=settings.cache_dir, view=view) as index,
        ):
            brief = repository_brief(snapshot, index)
            identity = snapshot_document(snapshot.id)
    finally:
        view.close()
    if as_json:
        print_json({"snapshot": identity, **brief.to_dict()}, raw=True)
    else:
        print_text(inert(brief.to_markdown()), raw=True)
    return 0


def _query(repo: str, query: str | None, query_file: str | None) -> str:
    if query is None and query_file is None and not Path(repo).exists():
        raise UsageError(
            f"no repository is given, or no query: there is no {repo!r}", hint=f'for example: leadline find . "{repo}"'
        )
    if (query is None) == (query_file is None):
        raise UsageError("give a query, or --query-file FILE", hint='for example: leadline find . "where is retry set"')
    if query_file is None:
        text = readable(query or "")
    else:
        try:
            data = sys.stdin.buffer.read(_LONGEST_QUERY + 1) if query_file == "-" else _head(Path(query_file))
        except OSError as error:
            raise UsageError(
                f"cannot read {query_file!r}: {os.strerror(error.errno or 0)}", hint="name a readable text file"
            ) from error
        if len(data) > _LONGEST_QUERY:
            raise UsageError(f"the query has more than {_LONGEST_QUERY:,} bytes", hint="cut it to what is asked")
        text = data.decode("utf-8", "replace")
    if not text.strip():
        raise UsageError("the query is empty", hint="say in words or names what to look for")
    return text


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_LONGEST_QUERY + 1)


def _hit_document(hit: FileHit) -> dict[str, object]:
    return {
        "path": hit.path,
        "score": round(hit.score, 4),
        "reasons": list(hit.reasons),
        "symbols": [
            {
                "name": s.symbol.qualified,
                "kind": s.symbol.kind,
                "start": s.symbol.start,
                "end": s.symbol.end,
                "score": round(s.score, 4),
                "signature": s.symbol.signature,
            }
            for s in hit.symbols
        ],
    }


def _hit_text(number: int, hit: FileHit) -> str:
    path = printable_line(hit.path)
    lines = [f"{number:3}. {path}  {hit.score:.2f}"]
    if hit.reasons:
        lines.append(f"       {'; '.join(hit.reasons)}")
    lines += [f"       {path}:{s.symbol.start}  {s.symbol.kind} {s.symbol.qualified}" for s in hit.symbols[:5]]
    return "\n".join(lines)
