"""A model that answers by structured output: it reads the schema and the request, and fills the one from the other."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from tests.fake_api import reply
from tests.fake_api.models.base import Call
from tests.fake_api.models.explorer import question
from tests.fake_api.models.schemas import default, kind_of, resolve
from tests.fake_api.reply import Reply

FINDING_ID = re.compile(r"\bf[0-9a-f]{8,16}\b")
_FOLDER_LINE = re.compile(r"^\s*[-*]?\s*`?((?:[\w@+.-]+/)+)`?:?\s+\(?\d", re.MULTILINE)


class Planner:
    """Answers any schema. Lists of tasks get one task for each of `tasks` scopes; statements one per finding id.

    `rounds`: how many times it plans more work before it says that enough is known (an empty list of tasks).
    """

    def __init__(self, *, tasks: int = 3, rounds: int = 1) -> None:
        self.tasks = tasks
        self.rounds = rounds
        self._planned: dict[str, dict[str, int]] = {}

    def reply(self, call: Call) -> Reply:
        schema = call.output_schema
        if schema is not None:
            return reply.say(orjson.dumps(self.value(schema, call)).decode())
        tool = _only_tool(call)
        if tool is not None:
            return reply.call(reply.tool(tool["name"], self.value(tool["input_schema"], call)))
        return reply.say(orjson.dumps({"answer": "no schema was given"}).decode())

    def value(self, schema: Mapping[str, Any], call: Call) -> Any:
        """An instance of the schema, made from what the request shows."""
        text = call.text()
        filler = _Filler(
            root=schema,
            asked=question(call),
            scopes=scopes_in(text, self.tasks),
            ids=list(dict.fromkeys(FINDING_ID.findall(text))),
            most=self.tasks if self._may_plan(call, text) else 0,
        )
        return filler.make(schema, "", 0)

    def _may_plan(self, call: Call, text: str) -> bool:
        """One round: as long as there are no findings. More: so many different requests about one question."""
        if self.rounds <= 1:
            return self.rounds == 1 and not FINDING_ID.search(text)
        planned = self._planned.setdefault(question(call), {})
        return planned.setdefault(text, len(planned)) < self.rounds


class _Filler:
    """Fills one schema. `most`: how many tasks may be planned."""

    def __init__(
        self, *, root: Mapping[str, Any], asked: str, scopes: Sequence[str], ids: Sequence[str], most: int
    ) -> None:
        self.root = root
        self.asked = asked
        self.scopes = list(scopes)
        self.ids = list(ids)
        self.most = most

    def make(self, schema: Mapping[str, Any], name: str, n: int) -> Any:
        schema = resolve(schema, self.root)
        if "enum" in schema:
            return self._choice(schema["enum"])
        if "const" in schema:
            return schema["const"]
        match kind_of(schema):
            case "object":
                return {key: self.make(sub, key, n) for key, sub in (schema.get("properties") or {}).items()}
            case "array":
                return self._list(resolve(schema.get("items") or {}, self.root), name, n)
            case "string":
                return self._string(name, n)
            case "number":
                return round(1.0 / max(1, self._count("tasks")), 3) if "share" in name or "budget" in name else 0.8
            case "integer":
                return n + 1 if name in {"id", "number", "index"} else 1
            case "boolean":
                return self._bool(name)
            case _:
                return default(schema, self.root, name)

    def _choice(self, options: Sequence[Any]) -> Any:
        """When nothing more is to be planned, the option that says so; else the first."""
        if not self.most:
            for option in options:
                if any(word in str(option) for word in ("stop", "done", "enough", "answer", "finish")):
                    return option
        return options[0]

    def _count(self, name: str) -> int:
        if "task" in name:
            return min(self.most, max(1, len(self.scopes))) if self.most else 0
        if any(word in name for word in ("statement", "claim", "verdict", "sentence")):
            return max(1, len(self.ids)) if self.ids else 0
        return 1

    def _list(self, items: Mapping[str, Any], name: str, n: int) -> list[Any]:
        lower = name.lower()
        if "depend" in lower or "contradict" in lower or "open" in lower:
            return []
        if kind_of(items) == "string":
            if "scope" in lower or "path" in lower:
                return self.scopes[n : n + 1]
            if "finding" in lower or "id" in lower or "cit" in lower or "source" in lower:
                return self.ids[n : n + 1]
        return [self.make(items, name.rstrip("s"), k) for k in range(self._count(lower))]

    def _string(self, name: str, n: int) -> str:
        lower = name.lower()
        scope = self.scopes[n] if n < len(self.scopes) else ""
        if lower in {"id", "task_id"}:
            return f"t{n + 1}"
        if "finding" in lower and self.ids:
            return self.ids[min(n, len(self.ids) - 1)]
        if "scope" in lower or lower == "path":
            return scope
        if "question" in lower or "title" in lower or "goal" in lower:
            return f"{self.asked} (in {scope})" if scope else self.asked
        if any(word in lower for word in ("text", "statement", "answer", "sentence", "claim")):
            return f"Statement {n + 1} on: {self.asked}"
        if "deliver" in lower:
            return "Findings with citations."
        return f"{name or 'text'} {n + 1}"

    def _bool(self, name: str) -> bool:
        if any(word in name.lower() for word in ("enough", "done", "stop", "complete")):
            return not self.most
        return not any(word in name.lower() for word in ("more", "refut", "stale", "missing"))


def scopes_in(text: str, wanted: int) -> list[str]:
    """Folders that a text lists with their sizes, none inside another: top-level ones, or if they are too few the
    deepest ones."""
    folders = [folder.rstrip("/") for folder in dict.fromkeys(_FOLDER_LINE.findall(text))]
    tops = list(dict.fromkeys(folder.split("/")[0] for folder in folders))
    if len(tops) >= wanted:
        return tops
    return [f for f in folders if not any(other.startswith(f"{f}/") for other in folders)]


def _only_tool(call: Call) -> Mapping[str, Any] | None:
    if call.forced_tool:
        return next(tool for tool in call.tools if tool["name"] == call.forced_tool)
    return call.tools[0] if len(call.tools) == 1 else None
