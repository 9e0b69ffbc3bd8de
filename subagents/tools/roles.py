"""Which role has which tools: no tool that a role does not use, since each costs tokens in every request."""

from __future__ import annotations

from subagents.tools.histories import history
from subagents.tools.reading import list_files, read_file
from subagents.tools.recording import note, read_evidence, record_finding, update_open_questions
from subagents.tools.schema import Tool
from subagents.tools.searching import find, search_text
from subagents.tools.symbols import imports, symbol

EXPLORE: tuple[Tool, ...] = (
    find,
    history,
    imports,
    list_files,
    note,
    read_evidence,
    read_file,
    record_finding,
    search_text,
    symbol,
    update_open_questions,
)
VERIFY: tuple[Tool, ...] = (find, read_file, record_finding, search_text, symbol)


def tools_for(role: str, *, has_history: bool) -> tuple[Tool, ...]:
    """Tools of a role (`investigate`, `verify`); without a history there is no tool for it."""
    tools = VERIFY if role == "verify" else EXPLORE
    return tuple(tool for tool in tools if has_history or tool.name != "history")
