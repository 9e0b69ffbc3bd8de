"""The static engine: answers from symbols, calls, imports, prose, tests and history; no model."""

from subagents.static.engine import StaticEngine

__all__ = ["StaticEngine"]
