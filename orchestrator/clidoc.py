"""Writes docs/cli.md out of `--help`: `python -m orchestrator.clidoc`. A test says when the file is behind."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from orchestrator.cli import leadline

TARGET = Path(__file__).resolve().parent.parent / "docs" / "cli.md"


def render() -> str:
    """The whole reference as Markdown; the same bytes on every machine."""
    parts = ["# Command line", "", "Made from `--help` by `python -m orchestrator.clidoc`; do not edit.", ""]
    parts += _section(leadline, ["leadline"])
    return "\n".join(parts)


def _section(command: click.Command, path: list[str]) -> list[str]:
    context = click.Context(command, info_name=" ".join(path), max_content_width=100, terminal_width=100)
    out = [f"## `{' '.join(path)}`", "", "```", command.get_help(context).rstrip(), "```", ""]
    if isinstance(command, click.Group):
        for name in sorted(command.commands):
            out += _section(command.commands[name], [*path, name])
    return out


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        sys.exit(0 if TARGET.read_text() == render() else "docs/cli.md is behind: python -m orchestrator.clidoc")
    TARGET.write_text(render())
