"""A tool is a typed function: its schema and description come from signature and docstring, and its arguments are
checked against the same signature, so that what the model is told and what is accepted cannot drift apart.

The first parameter is the `Desk` and is not part of the schema. Parameters may be `str`, `int`, `bool`, `Literal`,
`list[str]`, or one of these or None; each is described in the docstring's `Args:` section.
"""

from __future__ import annotations

import inspect
import re
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin

from subagents.tools.output import ToolError

MAX_TEXT = 4_000
"""Characters of one text argument; more is garbage, or not an argument."""
MAX_ITEMS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    name: str
    kind: Any
    """`str`, `int`, `bool`, `list`, or a tuple of allowed texts."""
    optional: bool
    default: Any
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool of a role."""

    name: str
    description: str
    parameters: tuple[Parameter, ...]
    function: Callable[..., Any]
    inline: bool
    """Runs on the event loop; others run in a thread."""
    remember: bool
    """Reads only, so an identical call gives the same answer."""

    def schema(self) -> dict[str, Any]:
        """JSON schema of the arguments: closed, without limits that strict schemas do not know."""
        return {
            "type": "object",
            "properties": {p.name: _schema_of(p) for p in self.parameters},
            "required": [p.name for p in self.parameters if not p.optional],
            "additionalProperties": False,
        }

    def param(self, *, strict: bool) -> dict[str, Any]:
        """The tool as the API takes it."""
        body: dict[str, Any] = {"name": self.name, "description": self.description, "input_schema": self.schema()}
        return {**body, "strict": True} if strict else body

    def arguments(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Checked arguments. Raises ToolError naming the argument and what it should be."""
        known = {p.name: p for p in self.parameters}
        if unknown := sorted(set(given) - set(known)):
            raise self._invalid(f"unknown argument {unknown[0]!r}")
        checked: dict[str, Any] = {}
        for name, parameter in known.items():
            value = given.get(name)
            if value is None:
                if not parameter.optional:
                    raise self._invalid(f"argument {name!r} is missing")
                continue
            checked[name] = self._checked(parameter, value)
        return checked

    def _checked(self, parameter: Parameter, value: Any) -> Any:
        kind, name = parameter.kind, parameter.name
        if kind is int and isinstance(value, str) and re.fullmatch(r"-?\d{1,9}", value.strip()):
            return int(value)  # small models quote numbers
        if kind is int and isinstance(value, float) and value.is_integer():
            return int(value)
        if kind is bool and value in ("true", "false"):
            return value == "true"
        if kind is list and isinstance(value, str):
            value = [value]
        if not _fits(kind, value):
            raise self._invalid(f"argument {name!r} is {str(value)[:80]!r}; it should be {_spelled(kind)}")
        texts = value if isinstance(value, list) else [value]
        if len(texts) > MAX_ITEMS:
            raise self._invalid(f"argument {name!r} has {len(texts)} items; at most {MAX_ITEMS}")
        if any(isinstance(text, str) and len(text) > MAX_TEXT for text in texts):
            raise self._invalid(f"argument {name!r} is longer than {MAX_TEXT:,} characters")
        return value

    def _invalid(self, message: str) -> ToolError:
        shape = ", ".join(f"{p.name}{'?' if p.optional else ''}: {_spelled(p.kind)}" for p in self.parameters)
        return ToolError("invalid_argument", message, f"Call {self.name} with {{{shape}}}.")


@typing.overload
def tool(function: Callable[..., Any]) -> Tool: ...
@typing.overload
def tool(*, inline: bool = False, remember: bool = True) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(
    function: Callable[..., Any] | None = None, *, inline: bool = False, remember: bool = True
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Decorator: make a Tool of a typed function. Raises TypeError for one that cannot be described."""

    def make(function: Callable[..., Any]) -> Tool:
        text, arguments = _docstring(function)
        hints = typing.get_type_hints(function)
        parameters = list(inspect.signature(function).parameters.values())[1:]
        described = []
        for parameter in parameters:
            if parameter.name not in arguments:
                raise TypeError(f"{function.__name__}: argument {parameter.name!r} is not described")
            kind, optional = _kind(hints[parameter.name])
            has_default = parameter.default is not inspect.Parameter.empty
            described.append(
                Parameter(
                    name=parameter.name,
                    kind=kind,
                    optional=optional or has_default,
                    default=parameter.default if has_default else None,
                    description=arguments[parameter.name],
                )
            )
        return Tool(
            name=function.__name__,
            description=text,
            parameters=tuple(described),
            function=function,
            inline=inline,
            remember=remember,
        )

    return make if function is None else make(function)


def _docstring(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    doc = inspect.getdoc(function)
    if not doc:
        raise TypeError(f"{function.__name__} has no docstring")
    text, _, rest = doc.partition("\nArgs:\n")
    arguments: dict[str, str] = {}
    name = ""
    for line in rest.splitlines():
        if match := re.match(r" {4}(\w+): (.+)", line):
            name = match[1]
            arguments[name] = match[2].strip()
        elif name and line.strip():
            arguments[name] += f" {line.strip()}"
    return " ".join(text.split()), arguments


def _kind(hint: Any) -> tuple[Any, bool]:
    optional = False
    if get_origin(hint) in (types.UnionType, typing.Union):
        parts = [part for part in get_args(hint) if part is not type(None)]
        optional = len(parts) < len(get_args(hint))
        if len(parts) != 1:
            raise TypeError(f"no schema for {hint!r}")
        hint = parts[0]
    if hint in (str, int, bool):
        return hint, optional
    if get_origin(hint) is Literal:
        return tuple(get_args(hint)), optional
    if get_origin(hint) is list and get_args(hint) == (str,):
        return list, optional
    raise TypeError(f"no schema for {hint!r}")


def _schema_of(parameter: Parameter) -> dict[str, Any]:
    kind = parameter.kind
    names = {str: "string", int: "integer", bool: "boolean"}
    if isinstance(kind, tuple):
        body: dict[str, Any] = {"type": "string", "enum": list(kind)}
    elif kind is list:
        body = {"type": "array", "items": {"type": "string"}}
    else:
        body = {"type": names[kind]}
    return {**body, "description": parameter.description}


def _fits(kind: Any, value: Any) -> bool:
    if isinstance(kind, tuple):
        return value in kind
    if kind is list:
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, kind)


def _spelled(kind: Any) -> str:
    if isinstance(kind, tuple):
        return "one of " + ", ".join(repr(item) for item in kind)
    return {str: "a text", int: "a whole number", bool: "true or false", list: "a list of texts"}[kind]
