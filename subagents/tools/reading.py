"""Reading files and folders: ranges with line numbers, an outline of a large file first."""

from __future__ import annotations

from subagents.codebase.types import Symbol, TextFile
from subagents.tools.desk import Desk
from subagents.tools.output import ToolError, ToolOutput, cut_line, plural
from subagents.tools.schema import tool

WHOLE_LINES = 160
"""A file of up to so many lines is shown whole."""
RANGE_LINES = 240
"""Most lines of one range."""
DEFAULT_LINES = 120
HEAD_LINES = 20
OUTLINE_ENTRIES = 80
LIST_ENTRIES = 120
MAX_CHARS = 14_000


@tool
def read_file(desk: Desk, path: str, start: int | None = None, end: int | None = None) -> ToolOutput:
    """Read lines of a file, with line numbers. Without a range a short file comes whole; of a long one you get an
    outline of its definitions with their line numbers, and then ask for the range you need. Lines you were shown can
    be cited.

    Args:
        path: File, relative to the repository root.
        start: First line, from 1.
        end: Last line, included; at most 240 lines at a time.
    """
    text = desk.text(path)
    total = len(text.lines)
    if total == 0:
        return ToolOutput(
            text=f"{text.path} is empty", digest=f"read_file {text.path}: empty", log=f"read_file {text.path}"
        )
    if start is None and end is None:
        if total > WHOLE_LINES:
            return _outline(desk, text)
        start, end = 1, total
    first = 1 if start is None else start
    last = min(total, first + DEFAULT_LINES - 1) if end is None else end
    if not 1 <= first <= total or last < first:
        raise ToolError(
            "range_outside_file",
            f"lines {first}-{last} of {text.path}, which has {total:,}",
            f"Give 1 <= start <= end <= {total}.",
        )
    return _range(desk, text, first, min(last, total))


def _range(desk: Desk, text: TextFile, first: int, asked: int) -> ToolOutput:
    total = len(text.lines)
    lines: list[str] = []
    size = 0
    last = first - 1
    for number in range(first, min(asked, first + RANGE_LINES - 1) + 1):
        line = f"{number}|{cut_line(text.lines[number - 1])}"
        if size + len(line) > MAX_CHARS and lines:
            break
        lines.append(line)
        size += len(line) + 1
        last = number
    head = f"{text.path} {first}-{last} of {total:,}"
    if text.encoding != "utf-8":
        head += f" ({text.encoding})"
    rest = ""
    if last < asked:
        rest = f"\n[{asked - last} of the lines asked for are left out: read_file {text.path} from {last + 1}]"
    elif last < total:
        rest = f"\n[{total - last} more lines]"
    names = [s.qualified for s in desk.workspace.index.symbols(text.path) if first <= s.start <= last]
    held = f"; defines {', '.join(names[:5])}{' ...' if len(names) > 5 else ''}" if names else ""
    return ToolOutput(
        text="\n".join([head, *lines]) + rest,
        digest=f"{first}-{last} of {total:,}{held}",  # the call stands above it and names the file
        log=f"read_file {text.path} {first}-{last}",
        shown=((text.path, first, last),),
        read=text.path,
        truncated=f"read {text.path}: lines {first}-{last} of {asked} asked for" if last < asked else "",
    )


def _outline(desk: Desk, text: TextFile) -> ToolOutput:
    total = len(text.lines)
    symbols = list(desk.workspace.index.symbols(text.path))
    head = f"{text.path} has {total:,} lines; outline, then its first {HEAD_LINES} lines"
    lines = [_outline_line(symbol) for symbol in _most_telling(symbols)]
    if len(lines) < len(symbols):
        lines.append(f"[{len(symbols) - len(lines)} inner definitions left out]")
    if not symbols:
        lines.append("[no definitions known: ask for a range, or use search_text in this file]")
    body = [f"{n}|{cut_line(line)}" for n, line in enumerate(text.lines[:HEAD_LINES], 1)]
    return ToolOutput(
        text="\n".join([head, *lines, "", *body, f"[{total - HEAD_LINES} more lines: read_file with start and end]"]),
        digest=f"read_file {text.path}: outline of {total:,} lines, {plural(len(symbols), 'definition')}",
        log=f"read_file {text.path} outline",
        raw="\n".join(_outline_line(symbol) for symbol in symbols),
        shown=((text.path, 1, HEAD_LINES),),
        truncated=f"read {text.path}: outline only, {total:,} lines",
    )


def _most_telling(symbols: list[Symbol]) -> list[Symbol]:
    """Outer definitions before inner ones, as many as fit, back in line order."""
    ranked = sorted(symbols, key=lambda s: (s.qualified.count("."), s.start))[:OUTLINE_ENTRIES]
    return sorted(ranked, key=lambda s: (s.start, -s.end))


def _outline_line(symbol: Symbol) -> str:
    depth = symbol.qualified.count(".")
    return f"{'  ' * depth}{symbol.start}-{symbol.end} {cut_line(symbol.signature, 120)}"


@tool
def list_files(desk: Desk, path: str = "") -> ToolOutput:
    """List a folder: subfolders with their file counts, then files with their line counts.

    Args:
        path: Folder, relative to the repository root; empty for the root.
    """
    folder = desk.path(path)
    prefix = f"{folder}/" if folder else ""
    index = desk.workspace.index
    folders: dict[str, int] = {}
    files: list[str] = []
    for known in desk.paths():
        if known == folder:
            raise ToolError("not_a_file", f"{folder!r} is a file", f"Call read_file with path {folder!r}.")
        if not known.startswith(prefix):
            continue
        name, slash, _ = known[len(prefix) :].partition("/")
        if slash:
            folders[name] = folders.get(name, 0) + 1
        else:
            files.append(known)
    if not folders and not files:
        raise desk.no_such_path(folder)
    entries = [f"{name}/ {plural(count, 'file')}" for name, count in sorted(folders.items())]
    entries += [f"{file[len(prefix) :]} {_size(index.line_count(file))}" for file in files]
    shown = entries[:LIST_ENTRIES]
    rest = (
        f"\n[{len(entries) - len(shown)} more entries: list a subfolder, or use find]"
        if len(entries) > len(shown)
        else ""
    )
    where = folder or "the root"
    summary = f"{plural(len(folders), 'folder')}, {plural(len(files), 'file')}"
    return ToolOutput(
        text="\n".join([f"{where}: {summary}", *shown]) + rest,
        digest=f"list_files {where}: {summary}: {', '.join(sorted(folders))[:200]}",
        log=f"list_files {where}",
        raw="\n".join(entries) if rest else "",
        truncated=f"list {where}: {len(shown)} of {len(entries)} entries" if rest else "",
    )


def _size(lines: int) -> str:
    return f"{lines:,}" if lines else "(not text)"
