"""Aider's repository map as a ranking of files; run by tests.bench.localization with a Python that has aider-chat.

    PYTHON aider_map.py REPOSITORY CACHE_FOLDER < QUESTION

Asks aider's own RepoMap (tags, PageRank over definitions and references) with the identifiers and file names that the
question holds, as aider does for a message, and prints files in the order of their best tag.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from aider.repomap import RepoMap  # type: ignore[import-not-found]

_SUFFIX = re.compile(r"\.(pyi?|go|rs|tsx?|jsx?|mjs|cjs|c|h|cc|cpp|hpp|java|kt|rb|php|cs)$")
_BYTES = 1_000_000
_STEM_CHARS = 5
"""Aider takes shorter file names for ordinary words."""


class Quiet:
    """What RepoMap wants of aider's terminal."""

    def read_text(self, name: str, silent: bool = False) -> str | None:
        try:
            return Path(name).read_text("utf-8", "replace")
        except OSError:
            return None

    def __getattr__(self, _: str) -> object:
        return lambda *_, **__: None


def main() -> None:
    repository, cache = sys.argv[1:]
    question = sys.stdin.read()
    RepoMap.TAGS_CACHE_DIR = cache
    listed = subprocess.run(["git", "-C", repository, "ls-files", "-z"], capture_output=True, check=True).stdout
    root = Path(repository)
    files = [name for name in listed.decode("utf-8", "replace").split("\0") if _SUFFIX.search(name)]
    files = [name for name in files if (root / name).is_file() and (root / name).stat().st_size < _BYTES]
    identifiers = set(re.split(r"\W+", question))
    lowered = {word.lower() for word in identifiers}
    named = {name for name in files if len(Path(name).stem) >= _STEM_CHARS and Path(name).stem.lower() in lowered}
    named |= {name for name in files if name in question}
    tags = RepoMap(root=repository, io=Quiet(), main_model=None, verbose=False).get_ranked_tags(
        [], [str(root / name) for name in files], named, identifiers
    )
    print(*dict.fromkeys(tag[0] for tag in tags), sep="\n")


if __name__ == "__main__":
    main()
