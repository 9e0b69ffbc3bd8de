"""The repository brief: one page about the snapshot, made by code, the same for all subagents of a session.

It stands in the cached prefix, so it must not depend on anything but the snapshot and the index.
"""

from __future__ import annotations

from collections import Counter

from subagents.codebase.types import CannotRead
from subagents.engine import Workspace

FOLDERS = 24
README_CHARS = 1_500
MAX_CHARS = 6_000


def repository_brief(workspace: Workspace) -> str:
    """Languages, folders, entry points, most used files, the head of the README; bounded."""
    parts = [_size(workspace), _folders(workspace), _central(workspace), _readme(workspace)]
    return "\n\n".join(part for part in parts if part)[:MAX_CHARS]


def _size(workspace: Workspace) -> str:
    files = workspace.snapshot.files()
    languages = Counter(workspace.index.language(path) or "" for path in workspace.index.paths())
    named = ", ".join(f"{name} {count}" for name, count in languages.most_common(8) if name)
    skipped = len(workspace.index.skipped())
    return f"{len(files):,} files; {named or 'no known language'}; {skipped:,} not read"


def _folders(workspace: Workspace) -> str:
    counts: Counter[str] = Counter()
    for path in workspace.snapshot.files():
        parts = path.split("/")
        counts["/".join(parts[: min(2, len(parts) - 1)]) or "."] += 1
    if not counts:
        return ""
    largest = sorted(sorted(counts), key=lambda name: -counts[name])[:FOLDERS]
    lines = [f"{name}/ {counts[name]}" if name != "." else f"(root) {counts[name]}" for name in sorted(largest)]
    rest = f"\n({len(counts) - len(largest)} more folders)" if len(counts) > len(largest) else ""
    return "Folders and their files:\n" + "\n".join(lines) + rest


def _central(workspace: Workspace) -> str:
    """Files that most others import: where things meet."""
    importers = Counter(target for _, target in workspace.index.import_edges())
    ranked = sorted(sorted(importers), key=lambda path: -importers[path])[:12]
    if not ranked:
        return ""
    return "Most imported files:\n" + "\n".join(f"{path} (by {importers[path]})" for path in ranked)


def _readme(workspace: Workspace) -> str:
    for path in workspace.snapshot.files():
        if "/" not in path and path.lower().startswith("readme"):
            try:
                text = workspace.snapshot.text(path)
            except CannotRead:
                continue
            head = "\n".join(line[:200] for line in text.lines[:40])[:README_CHARS]
            return f"{path} begins:\n{head}"
    return ""
