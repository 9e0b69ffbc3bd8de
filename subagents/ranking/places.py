"""Files that a question names outright: by path, in a traceback, or by dotted module name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from subagents.ranking.corpus import Corpus
from subagents.ranking.query import Frame, Query

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from subagents.codebase.types import Symbol

FRAME_DECAY = 0.8
"""Each earlier entry of a traceback counts this much of the next."""


def best_matches(corpus: Corpus, written: str) -> tuple[Sequence[int], int]:
    """(files, parts): the files whose path shares most trailing parts with a path as somebody wrote it."""
    parts = [part for part in written.replace("\\", "/").split("/") if part not in ("", ".", "..")][::-1]
    best: list[int] = []
    most = 0
    for file in corpus.by_name.get(parts[0], ()) if parts else ():
        shared = 0
        for ours, theirs in zip(corpus.paths[file].split("/")[::-1], parts, strict=False):
            if ours != theirs:
                break
            shared += 1
        if shared > most:
            best, most = [file], shared
        elif shared == most:
            best.append(file)
    return best, most


def named_places(corpus: Corpus, query: Query) -> NDArray[np.float64]:
    import numpy as np

    made = np.zeros(len(corpus))
    for written in query.files:
        files, _ = best_matches(corpus, written)
        if 0 < len(files) <= 5:
            made[list(files)] += 1 / len(files)
    return made


def traced_places(corpus: Corpus, query: Query) -> NDArray[np.float64]:
    """The last entry that lies in this repository counts most: it is nearest to what went wrong."""
    import numpy as np

    made = np.zeros(len(corpus))
    for back, (_, files) in enumerate(reversed(entries_inside(corpus, query))):
        for file in files:
            made[file] = max(made[file], FRAME_DECAY**back / len(files))
    return made


def entries_inside(corpus: Corpus, query: Query) -> list[tuple[Frame, Sequence[int]]]:
    """Entries that lie in this repository, and the files that each may mean."""
    matched = [(frame, *best_matches(corpus, frame.path)) for frame in query.frames]
    return [
        (frame, files) for frame, files, shared in matched if 0 < len(files) <= 3 and (shared >= 2 or len(files) == 1)
    ]


def pointed_at(entries: Sequence[tuple[Frame, Sequence[int]]], file: int, symbols: Sequence[Symbol]) -> list[int]:
    """Places of the definitions that entries of a traceback or `path:line` point at, the last entry's first. An entry's
    name tells better than its line, which may be that of another version; several of one name are told by the line."""
    places: list[int] = []
    for frame in reversed([frame for frame, files in entries if file in files]):
        chosen = [at for at, one in enumerate(symbols) if frame.name and one.name == frame.name]
        if not chosen:
            chosen = [at for at, one in enumerate(symbols) if one.start <= frame.line <= one.end]
        # the innermost begins last; of others with the name, the one nearest to the line
        chosen.sort(key=lambda at: (abs(symbols[at].start - frame.line), at))
        places += chosen[:1]
    return list(dict.fromkeys(places))


def dotted_places(corpus: Corpus, query: Query) -> NDArray[np.float64]:
    """Modules written with dots: the longest beginning that is a file's module name, or its end."""
    import numpy as np

    made = np.zeros(len(corpus))
    for dotted in query.dotted:
        parts = dotted.split(".")
        for size in range(len(parts), 1, -1):
            files = corpus.by_module.get(".".join(parts[:size]), ())
            if 0 < len(files) <= 3:
                made[list(files)] += 1 / len(files)
                break
    return made
