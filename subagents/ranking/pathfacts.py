"""What paths alone say of their files: the part each plays, and its terms.

Telling it takes a dozen regular expressions and some stemming a path, for thousands of paths half the time of a first
question. So it is told once for each path, when the path enters the index; see `listing`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from subagents.ranking.roles import Role

ROLES: tuple[Role, ...] = ("code", "test", "document", "configuration", "side")
FACE = 8
"""Added to the place of a role for a file that mostly passes on what others define."""


@dataclass(frozen=True, slots=True)
class PathFacts:
    """By file: `part` (place in ROLES, and FACE) and `size`, the number of its path's terms. `keys` and `file` by term
    in a path; the keys of one path are sorted."""

    part: NDArray[np.uint8]
    size: NDArray[np.int64]
    keys: NDArray[np.uint32]
    file: NDArray[np.int64]


def tell(path: str) -> tuple[int, list[int]]:
    """`part` and terms of one path."""
    from subagents.ranking.roles import is_face, role_of
    from subagents.ranking.words import all_keys, words_of

    stem, dot, suffix = path.rpartition(".")
    own = sorted(set(all_keys(words_of(stem if dot else suffix))))
    return ROLES.index(role_of(path)) | (FACE if is_face(path) else 0), own


def path_facts(told: Sequence[tuple[int, list[int]]]) -> PathFacts:
    import numpy as np

    size = np.fromiter((len(keys) for _, keys in told), np.int64, len(told))
    return PathFacts(
        part=np.fromiter((part for part, _ in told), np.uint8, len(told)),
        size=size,
        keys=np.array([key for _, keys in told for key in keys], np.uint32),
        file=np.repeat(np.arange(len(told)), size),
    )
