"""Looking for text and for places: exact search over the snapshot's bytes, ranked search over the index."""

from __future__ import annotations

from subagents.codebase.types import TextMatch
from subagents.tools.desk import Desk
from subagents.tools.output import ToolError, ToolOutput, cut_line, plural
from subagents.tools.schema import tool

SHOWN_MATCHES = 40
PER_FILE = 6
RAW_MATCHES = 200
WIDTH = 200
TIMEOUT_S = 20.0


@tool
def search_text(
    desk: Desk, pattern: str, path: str = "", fixed: bool = False, ignore_case: bool = False, whole_word: bool = False
) -> ToolOutput:
    """Search the text of all files, line by line. Matches come grouped by file, with line numbers. A search that was
    cut or timed out proves nothing about what is absent.

    Args:
        pattern: Regular expression (Rust syntax) that matches within one line.
        path: File or folder to search in; empty for all.
        fixed: Take the pattern as plain text.
        ignore_case: Ignore case.
        whole_word: Match whole words only.
    """
    if desk.search is None:
        raise ToolError("unavailable", "text search is not available here", "Use find and symbol.")
    where = desk.path(path)
    paths = [where] if where else (list(desk.scope) or None)
    result = desk.search(
        pattern,
        paths=paths,
        fixed=fixed,
        ignore_case=ignore_case,
        whole_word=whole_word,
        max_matches=RAW_MATCHES,
        max_width=WIDTH,
        timeout_s=TIMEOUT_S,
    )
    by_file: dict[str, list[TextMatch]] = {}
    for match in result.matches:
        by_file.setdefault(match.path, []).append(match)
    asked = f"search_text {pattern!r}" + (f" in {where}" if where else "")
    found = f"{plural(len(result.matches), 'match')} in {plural(len(by_file), 'file')}"
    if result.truncated:
        found = f"more than {found}"
    lines, shown = _grouped(by_file)
    notes = _notes(result.truncated, result.timed_out, result.errors, len(result.matches) - len(shown))
    searched = f" ({result.files_searched:,} files searched)"
    places = ", ".join(f"{p}:{','.join(str(m.line) for m in ms[:3])}" for p, ms in list(by_file.items())[:10])
    return ToolOutput(
        text="\n".join([f"{found}{searched}", *lines, *notes]),
        digest=f"{asked}: {found}{searched}{': ' if places else ''}{places}{' ...' if len(by_file) > 10 else ''}",
        log=f"{asked}: {found}",
        raw="\n".join(f"{m.path}:{m.line}: {m.text}" for m in result.matches)
        if len(shown) < len(result.matches)
        else "",
        shown=tuple((m.path, m.line, m.line) for m in shown),
        searched=f"{asked}: {found}",
        truncated=f"{asked}: {len(result.matches)} of more matches" if result.truncated else "",
        timed_out=asked if result.timed_out else "",
    )


def _grouped(by_file: dict[str, list[TextMatch]]) -> tuple[list[str], list[TextMatch]]:
    """Few of each file while there are many files: all files first, then lines."""
    room = SHOWN_MATCHES
    per_file = max(1, min(PER_FILE, room // max(1, len(by_file)))) if len(by_file) > 4 else room
    lines: list[str] = []
    shown: list[TextMatch] = []
    for path, matches in by_file.items():
        if room <= 0:
            lines.append(f"[{len(by_file) - len({m.path for m in shown})} more files]")
            break
        part = matches[: min(per_file, room)]
        room -= len(part)
        shown += part
        lines.append(path)
        lines += [f" {m.line}|{cut_line(m.text, WIDTH)}" for m in part]
        if len(part) < len(matches):
            lines.append(f" [{len(matches) - len(part)} more here]")
    return lines, shown


def _notes(truncated: bool, timed_out: bool, errors: tuple[str, ...], left_out: int) -> list[str]:
    notes = []
    if left_out:
        notes.append(f"[{left_out} matches left out: narrow by path, or read_evidence for all]")
    if truncated:
        notes.append("[stopped at the limit: there are more matches; nothing can be said to be absent]")
    if timed_out:
        notes.append("[timed out: not everything was searched; nothing can be said to be absent]")
    notes += [f"[{error}]" for error in errors[:3]]
    return notes


@tool
def find(desk: Desk, query: str) -> ToolOutput:
    """Ranked search: the files and definitions most likely to be about something. Start here when you do not know
    where to look. Says where, shows no code; read before you cite.

    Args:
        query: A few words or names, as they might stand in code, comments or file names.
    """
    inside = set(desk.paths()) if desk.scope else None
    hits = [h for h in desk.workspace.finder.find(query, limit=24) if inside is None or h.path in inside]
    lines = []
    for hit in hits[:12]:
        lines.append(f"{hit.path} ({', '.join(hit.reasons[:2])})" if hit.reasons else hit.path)
        for held in hit.symbols[:3]:
            symbol = held.symbol
            lines.append(f" {symbol.start}-{symbol.end} {cut_line(symbol.signature, 100)}")
    rest = f"[{len(hits) - 12} less likely files left out]" if len(hits) > 12 else ""
    best = ", ".join(
        f"{h.path}{f':{h.symbols[0].symbol.start} {h.symbols[0].symbol.qualified}' if h.symbols else ''}"
        for h in hits[:6]
    )
    found = plural(len(hits), "file") if hits else "nothing"
    return ToolOutput(
        text="\n".join([f"{found} for {query!r}, most likely first", *lines, *([rest] if rest else [])])
        if hits
        else f"nothing ranked for {query!r}: this proves no absence; try search_text with ignore_case",
        digest=f"find {query!r}: {found}{': ' if best else ''}{best}",
        log=f"find {query!r}: {found}",
        searched=f"find {query!r}: {found}",
        raw="\n".join(f"{h.path} {h.score:.3f}" for h in hits) if rest else "",
    )
