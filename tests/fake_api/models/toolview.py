"""What a model can tell about tools it has never seen: their job by name and schema, and what their results show."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.fake_api.models.base import block_text

PATH = re.compile(
    r"(?<![\w/.@-])((?:[\w@+-][\w.@+-]*/)*[\w@+-][\w.@+-]*\.[A-Za-z]\w{0,9})(?::(\d+)(?:-(\d+))?)?(?![\w/])"
)
NUMBERED = re.compile(r"^\s*(\d+)\s*(?:[|:│→]|\t|  )\s?(.*)$")
_ENTRY = re.compile(r"^\s*[-*]?\s*([\w@+.-]+)(/)?(?:\s+[\d,(].*)?$")
_WORDS = re.compile(r"[A-Za-z_][A-Za-z0-9_]{3,}")
_COMMON = frozenset(
    [
        "this",
        "that",
        "with",
        "from",
        "what",
        "where",
        "when",
        "which",
        "does",
        "have",
        "into",
        "your",
        "task",
        "question",
        "scope",
        "about",
        "their",
        "there",
        "they",
        "them",
        "then",
        "than",
        "will",
        "would",
        "should",
        "could",
        "must",
        "only",
        "each",
        "every",
        "such",
        "been",
        "being",
        "were",
        "code",
        "file",
        "files",
        "path",
        "paths",
    ]
)


@dataclass(frozen=True, slots=True)
class ToolSet:
    """The tools of a request by what they are for."""

    by_job: Mapping[str, Mapping[str, Any]]

    def has(self, job: str) -> bool:
        return job in self.by_job

    def name(self, job: str) -> str:
        return str(self.by_job[job]["name"])

    def schema(self, job: str) -> Mapping[str, Any]:
        return self.by_job[job]["input_schema"]  # type: ignore[no-any-return]


def toolset(tools: Sequence[Mapping[str, Any]]) -> ToolSet:
    """Sort tools by job; the first that fits a job gets it."""
    found: dict[str, Mapping[str, Any]] = {}
    for tool in tools:
        job = _job(tool)
        if job is not None:
            found.setdefault(job, tool)
    return ToolSet(found)


def _job(tool: Mapping[str, Any]) -> str | None:
    name = tool["name"].lower()
    properties = set((tool.get("input_schema") or {}).get("properties") or {})
    if "claim" in properties or ("finding" in name and "read" not in name and "list" not in name):
        return "record"
    if "question" in name:
        return "questions"
    if "evidence" in name:
        return "evidence"
    for word, job in (
        ("find", "find"),
        ("search", "search"),
        ("grep", "search"),
        ("read", "read"),
        ("symbol", "symbol"),
        ("import", "imports"),
        ("history", "history"),
        ("blame", "history"),
        ("list", "list"),
        ("note", "note"),
    ):
        if word in name:
            return job
    return None


@dataclass(slots=True)
class Use:
    """One finished call: what was asked, what came back."""

    name: str
    input: Mapping[str, Any]
    text: str
    is_error: bool


@dataclass(slots=True)
class Shown:
    """Lines of one file that a read really returned, by number."""

    path: str
    lines: dict[int, str] = field(default_factory=dict)


def uses(messages: Sequence[Mapping[str, Any]]) -> list[Use]:
    """All answered calls in the conversation, oldest first."""
    calls: dict[str, Mapping[str, Any]] = {}
    finished: list[Use] = []
    for message in messages:
        for block in message["content"]:
            if block["type"] == "tool_use":
                calls[block["id"]] = block
            elif block["type"] == "tool_result" and block["tool_use_id"] in calls:
                call = calls[block["tool_use_id"]]
                finished.append(Use(call["name"], call["input"], block_text(block), bool(block.get("is_error"))))
    return finished


def latest_uses(messages: Sequence[Mapping[str, Any]]) -> list[Use]:
    """The calls of the last reply and what came back for them."""
    last = max((i for i, m in enumerate(messages) if m["role"] == "assistant"), default=len(messages))
    return uses(messages[last:])


def paths_in(text: str) -> list[str]:
    """Paths of files that a text names, in order, once each."""
    found: dict[str, None] = {}
    for line in text.splitlines():
        start = len(line) - len(line.lstrip(" -*`"))
        for match in PATH.finditer(line):
            if "/" in match.group(1) or match.group(2) or match.start() == start:
                found[match.group(1)] = None
    return list(found)


def listing_in(text: str, folder: str) -> tuple[list[str], list[str]]:
    """Files and folders of a listing, as paths; entries are relative to the folder that was listed."""
    base = f"{folder.strip('./')}/" if folder.strip("./") else ""
    files: list[str] = []
    folders: list[str] = []
    for line in text.splitlines():
        match = _ENTRY.match(line)
        if match and match.group(2):
            folders.append(base + match.group(1))
        elif match and "." in match.group(1):
            files.append(base + match.group(1))
    return files, folders


def lines_in(text: str) -> dict[int, str]:
    """Numbered lines of a listing."""
    found: dict[int, str] = {}
    for line in text.splitlines():
        match = NUMBERED.match(line)
        if match:
            found[int(match.group(1))] = match.group(2)
    return found


def path_argument(arguments: Mapping[str, Any]) -> str | None:
    """The path that a call was about."""
    for name in ("path", "file", "file_path", "filename"):
        if isinstance(arguments.get(name), str):
            return str(arguments[name])
    return None


def terms(text: str) -> list[str]:
    """Words of a question worth searching for: identifiers first, then by order."""
    words = list(dict.fromkeys(w for w in _WORDS.findall(text) if w.lower() not in _COMMON))
    return sorted(words, key=lambda w: not ("_" in w or any(c.isupper() for c in w[1:])))
