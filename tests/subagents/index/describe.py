"""An index as text, so that what is expected of a language can be kept and reviewed as prose.

python -m tests.subagents.index.describe    writes expected/*.txt anew; read the difference before committing it
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from subagents.codebase.snapshot import open_snapshot
from subagents.index.code_index import StoredIndex
from subagents.index.opening import open_index

HERE = Path(__file__).parent
SOURCES = HERE / "sources"
EXPECTED = HERE / "expected"
"""One text a language, files after lines `=== path`, so that no tool takes them for files of this project."""
LANGUAGES = sorted(source.stem for source in SOURCES.iterdir())


@contextmanager
def open_sources(scratch: Path) -> Iterator[StoredIndex]:
    """The index of all sources, written out as a plain folder."""
    for source in SOURCES.iterdir():
        for file in source.read_text("utf-8").split("=== ")[1:]:
            path, _, text = file.partition("\n")
            target = scratch / "sources" / source.stem / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, "utf-8")
    with (
        open_snapshot(scratch / "sources") as snapshot,
        open_index(snapshot, scratch / "cache", extras=()) as index,
    ):
        yield index


def describe(index: StoredIndex, folder: str) -> str:
    return "\n".join(
        line for path in index.paths() if path.startswith(folder + "/") for line in describe_file(index, path)
    )


def describe_file(index: StoredIndex, path: str) -> Iterator[str]:
    yield f"== {path} ({index.language(path)}, {index.line_count(path)} lines)"
    for edge in index.imports(path):
        yield f"import {edge.line} {edge.module} [{', '.join(edge.names)}] -> {edge.target}"
    for symbol in index.symbols(path):
        yield f"{symbol.kind} {symbol.qualified} {symbol.start}-{symbol.end}: {symbol.signature}"
        if symbol.doc:
            yield f"    doc: {symbol.doc}"
        for mark in symbol.decorators:
            yield f"    @{mark}"
        for base in index.bases(symbol):
            yield f"    base {base.qualified} {base.path}:{base.start}"
        for derived in index.subclasses(symbol):
            yield f"    subclass {derived.qualified} {derived.path}:{derived.start}"
        if symbol.kind in ("function", "method", "constructor"):
            for call in index.callees(symbol):
                callee = call.callee
                yield f"    {call.line} calls {callee.qualified} {callee.path}:{callee.start} ({call.certainty})"
            for call in index.callers(symbol):
                yield f"    called by {call.caller.qualified or '(top)'} {call.path}:{call.line} ({call.certainty})"
    for reference in index.references_in(path, 1, index.line_count(path)):
        dotted = f"{reference.receiver}.{reference.name}" if reference.receiver else reference.name
        yield f"{reference.kind} {reference.line} {dotted} in {reference.inside or '(top)'}"


def main() -> None:
    EXPECTED.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, open_sources(Path(scratch)) as index:
        for language in LANGUAGES:
            (EXPECTED / f"{language}.txt").write_text(describe(index, language) + "\n", "utf-8")


if __name__ == "__main__":
    main()
