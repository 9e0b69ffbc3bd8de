"""Rows for tests.bench.localization from the history of repositories: what a commit says, and the files it changed.

    python -m tests.bench.commit_rows OWNER/NAME ... --mirrors FOLDER --each 5 --without TUNING.jsonl ... > ROWS.jsonl

For rows that nobody tuned on. The commits are drawn by a seed and taken if they are no merges, say at least thirty
words once cleaned, and change one to three existing source files that are no tests, by no more than 143 lines. Cleaned
of: the subject's prefix, names of files, links, numbers of issues, hashes and trailers, since these name the answer or
nothing. Commits of the files of `--without` are left out.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.bench.localization import SOURCE, mirror_of

SINCE = "2020-01-01"
LEAST_WORDS, MOST_FILES, MOST_LINES = 30, 3, 143
"""As in the rows that the weights were fitted on."""
_TRAILER = re.compile(
    r"(?m)^\s*[A-Z][\w-]+: .*$(?!\n\s+\S)|^\s*(?:fix(?:es|ed)?|closes?|see|refs?|resolves?):? .*\d+\.?$"
)
"""Trailers; such a line stays where an indented text, or a paragraph, follows: then it may begin a list."""
_NOISE = re.compile(
    r"(?:https?|ftp)://\S+|\(?(?:\b(?:gh|GH)-|[\w./-]*#)\d+\)?|\b[0-9a-f]{7,40}\b|^\(cherry picked .*$", re.MULTILINE
)
_FILE = re.compile(rf"[\w./@\\-]*\w(?:{'|'.join(sorted(map(re.escape, SOURCE), key=len, reverse=True))})\b")
_PREFIX = re.compile(r"^(?:\[[^]\n]+\]\s*)?(?:[\w@/.*, {}-]+(?:\([^)\n]*\))?!?:\s+)?")
_ASIDE = re.compile(r"(?i)(?:^|/)(?:tests?|testing|testdata|specs?|docs?|examples?|vendor|deps|third_party|t)/|test")


def git(mirror: Path, *arguments: str) -> str:
    command = ["git", "--git-dir", str(mirror), *arguments]
    return subprocess.run(command, capture_output=True, text=True, errors="replace", check=True).stdout


def cleaned(message: str) -> str:
    subject, _, body = message.strip().partition("\n")
    text = f"{_PREFIX.sub('', subject)}\n{re.sub(_TRAILER, '', body)}"
    text = _FILE.sub(" ", _NOISE.sub(" ", text))
    lines = [re.sub(r"(?<=\S)[ \t]+", " ", line).rstrip() for line in text.split("\n")]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def row(mirror: Path, repo: str, commit: str) -> dict[str, Any] | None:
    """The row of one commit, or None if it makes none."""
    query = cleaned(git(mirror, "show", "-s", "--format=%B", commit))
    if len(query.split()) < LEAST_WORDS:
        return None
    base, date = git(mirror, "show", "-s", "--format=%P %cs", commit).split()
    raw = git(mirror, "diff", "--no-renames", "--numstat", "--diff-filter=M", base, commit)
    changed = [line.split("\t") for line in raw.splitlines()]
    source = [one for one in changed if Path(one[2]).suffix in SOURCE and not _ASIDE.search(one[2])]
    lines = sum(int(added) + int(removed) for added, removed, _ in source if added != "-")
    if not 1 <= len(source) <= MOST_FILES or not 2 <= lines <= MOST_LINES:
        return None
    return {
        "id": f"{repo.partition('/')[2]}-{commit[:10]}", "repo": repo, "base_commit": base, "date": date,
        "query": query, "gold_files": sorted(path for _, _, path in source), "gold_functions": [],
        "changed_lines": lines,
    }  # fmt: skip


def rows(mirror: Path, repo: str, each: int, without: set[str], seed: int) -> Iterator[dict[str, Any]]:
    commits = git(mirror, "log", "--no-merges", f"--since={SINCE}", "--format=%H", "HEAD").split()
    random.Random(f"{seed} {repo}").shuffle(commits)
    for commit in commits:
        made = row(mirror, repo, commit) if commit not in without else None
        if made is not None:
            yield made
            each -= 1
        if not each:
            return


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("repositories", nargs="+")
    parser.add_argument("--mirrors", type=Path, required=True)
    parser.add_argument("--each", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--without", type=Path, nargs="*", default=[])
    arguments = parser.parse_args()
    tuned = [json.loads(line) for file in arguments.without for line in file.read_text().splitlines() if line.strip()]
    without = {one["query_from"]["commit"] for one in tuned if "commit" in one.get("query_from", {})}
    for repo in arguments.repositories:
        mirror = mirror_of(arguments.mirrors, repo)
        assert mirror is not None, repo
        for made in rows(mirror, repo, arguments.each, without, arguments.seed):
            print(json.dumps(made), flush=True)


if __name__ == "__main__":
    main()
