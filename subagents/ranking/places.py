"""Files that a question names outright: by path, in a traceback, or by dotted module name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from subagents.ranking.corpus import Corpus
from subagents.ranking.query import Query

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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
    inside: list[Sequence[int]] = []
    for frame in query.frames:
        files, shared = best_matches(corpus, frame.path)
        if 0 < len(files) <= 3 and (shared >= 2 or len(files) == 1):
            inside.append(files)
    for back, files in enumerate(reversed(inside)):
        for file in files:
            made[file] = max(made[file], FRAME_DECAY**back / len(files))
    return made


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
