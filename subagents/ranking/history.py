"""What past commits said about the files they changed: their messages as a text of each file, and who changed lately.

A commit message tells in a person's words what a file is for, which the file itself often does not. Bounded: the last
COMMITS_LIMIT commits without merges, TIME_LIMIT_S to read them. What was read is kept in the cache folder as plain
arrays and extended when HEAD moves; without git, without commits or without a usable cache, ranking does without.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from subagents.ranking.words import all_keys, words_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from subagents.codebase.types import Snapshot

COMMITS_LIMIT = 2_000
PATHS_LIMIT = 40
"""A commit of more paths says little about each of them."""
MESSAGE_CHARS = 2_000
TIME_LIMIT_S = 15.0
_OUTPUT_BYTES = 128 * 1024 * 1024
_FORMAT = 1
_NOISE = re.compile(
    r"^\s*[\w-]+-by:.*$|^\s*(?:Change-Id|Message-Id|Cc|Link):.*$|https?://\S+", re.MULTILINE | re.IGNORECASE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Commits:
    """Commits, newest first, as arrays. `*_ends[i]` is where commit i's stretch of the array before it ends."""

    ids: tuple[str, ...]
    keys: NDArray[np.uint32]
    counts: NDArray[np.uint8]
    key_ends: NDArray[np.int64]
    paths: tuple[str, ...]
    changed: NDArray[np.uint32]
    """Places in `paths`."""
    changed_ends: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Commit:
    id: str
    terms: Counter[int]
    paths: tuple[str, ...]


def read_commits(snapshot: Snapshot, folder: Path) -> Commits | None:
    """Commits that lead to the snapshot; None when there are none to be had."""
    from subagents.codebase.gitrun import GitFailed

    git, commit = getattr(snapshot, "git", None), snapshot.id.commit
    if git is None or commit is None:
        return None
    file = folder / f"commits-{_FORMAT}.npz"
    known = _load(file)
    if known is not None and known.ids and known.ids[0] == commit:
        return known
    try:
        listed = git.run(
            ["rev-list", "--no-merges", f"--max-count={COMMITS_LIMIT}", "--end-of-options", commit],
            timeout_s=TIME_LIMIT_S,
        )
        wanted = listed.decode("ascii").split()
        have = {one.id: one for one in _unpack(known)} if known is not None else {}
        missing = [one for one in wanted if one not in have]
        if missing:
            have.update((one.id, one) for one in _log(git, missing))
    except GitFailed:
        return known
    ordered = [have[one] for one in wanted if one in have]
    if not ordered:
        return None
    if ordered[0].id != commit:  # a merge at the tip: remembered under its own name, so that it is found again
        ordered.insert(0, _Commit(commit, Counter(), ()))
    made = pack(ordered)
    if len(ordered) >= len(wanted):
        _store(file, made)
    return made


def _log(git: Any, wanted: Sequence[str]) -> list[_Commit]:
    import secrets

    from subagents.codebase.gitrun import GitTimeout, OutputTooLarge
    from subagents.codebase.paths import to_key

    mark = secrets.token_hex(12)  # so that no path and no message can pass for the beginning of a commit
    command = [
        "-c", "log.showRoot=false", "log", "-z", "--no-walk=unsorted", "--stdin",
        f"--format=tformat:{mark}%H%n%B{mark}",
        "--name-only", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-show-signature", "--no-notes",
        "--no-color",
    ]  # fmt: skip
    read = bytearray()
    with contextlib.suppress(GitTimeout, OutputTooLarge):  # what came until then is worth having
        for piece in git.stream(
            command,
            stdin="".join(one + "\n" for one in wanted).encode(),
            timeout_s=TIME_LIMIT_S,
            max_bytes=_OUTPUT_BYTES,
        ):
            read += piece
    pieces = bytes(read).split(mark.encode())[1:]
    commits: list[_Commit] = []
    for head, tail in zip(pieces[0::2], pieces[1::2], strict=False):
        identity, _, message = head.partition(b"\n")
        listed = [path.lstrip(b"\n") for path in tail.split(b"\0") if path.strip(b"\n")]
        paths = tuple(to_key(path) for path in listed) if len(listed) <= PATHS_LIMIT else ()
        commits.append(
            _Commit(identity.decode("ascii", "replace"), message_terms(message.decode(errors="replace")), paths)
        )
    return commits


def message_terms(message: str) -> Counter[int]:
    """Terms of a commit message without trailers and links."""
    return Counter(all_keys(words_of(_NOISE.sub(" ", message)[:MESSAGE_CHARS])))


def pack(commits: Iterable[_Commit]) -> Commits:
    import numpy as np

    several = list(commits)
    paths: dict[str, int] = {}
    keys: list[int] = []
    counts: list[int] = []
    changed: list[int] = []
    key_ends: list[int] = []
    changed_ends: list[int] = []
    for one in several:
        for key in sorted(one.terms):
            keys.append(key)
            counts.append(min(one.terms[key], 255))
        changed.extend(paths.setdefault(path, len(paths)) for path in one.paths)
        key_ends.append(len(keys))
        changed_ends.append(len(changed))
    return Commits(
        ids=tuple(one.id for one in several),
        keys=np.array(keys, np.uint32),
        counts=np.array(counts, np.uint8),
        key_ends=np.array(key_ends, np.int64),
        paths=tuple(paths),
        changed=np.array(changed, np.uint32),
        changed_ends=np.array(changed_ends, np.int64),
    )


def _unpack(commits: Commits) -> list[_Commit]:
    made: list[_Commit] = []
    key_at = changed_at = 0
    for place, identity in enumerate(commits.ids):
        key_end, changed_end = int(commits.key_ends[place]), int(commits.changed_ends[place])
        terms = Counter(
            dict(zip(commits.keys[key_at:key_end].tolist(), commits.counts[key_at:key_end].tolist(), strict=True))
        )
        paths = tuple(commits.paths[at] for at in commits.changed[changed_at:changed_end].tolist())
        made.append(_Commit(identity, terms, paths))
        key_at, changed_at = key_end, changed_end
    return made


def _load(file: Path) -> Commits | None:
    import zipfile

    import numpy as np

    try:
        with np.load(file, allow_pickle=False) as stored:
            made = Commits(
                ids=tuple(bytes(stored["ids"]).decode("ascii").split("\0")),
                keys=stored["keys"],
                counts=stored["counts"],
                key_ends=stored["key_ends"],
                paths=tuple(bytes(stored["paths"]).decode("utf-8").split("\0")),
                changed=stored["changed"],
                changed_ends=stored["changed_ends"],
            )
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, UnicodeDecodeError):
        return None  # none yet, or damaged: it is read again
    whole = (
        len(made.ids) == len(made.key_ends) == len(made.changed_ends) > 0
        and len(made.keys) == len(made.counts) == made.key_ends[-1]
        and len(made.changed) == made.changed_ends[-1]
        and (not len(made.changed) or int(made.changed.max()) < len(made.paths))
    )
    return made if whole else None


def _store(file: Path, commits: Commits) -> None:
    """Keep the commits for the next time. A cache that cannot be written costs time, nothing else."""
    import numpy as np

    with contextlib.suppress(OSError):
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd, name = tempfile.mkstemp(dir=file.parent, prefix=".commits-")
        try:
            with os.fdopen(fd, "wb") as out:
                np.savez(
                    out,
                    ids=np.frombuffer("\0".join(commits.ids).encode("ascii"), np.uint8),
                    paths=np.frombuffer("\0".join(commits.paths).encode("utf-8"), np.uint8),
                    keys=commits.keys,
                    counts=commits.counts,
                    key_ends=commits.key_ends,
                    changed=commits.changed,
                    changed_ends=commits.changed_ends,
                )
            Path(name).replace(file)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
