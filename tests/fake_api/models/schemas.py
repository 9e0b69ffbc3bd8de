"""Values for any JSON schema: what a plausible model would fill in, given what it knows by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

ALIASES: Mapping[str, tuple[str, ...]] = {
    "path": ("path", "file", "file_path", "filename", "paths", "files"),
    "start": ("start", "start_line", "first", "first_line", "line_start", "from_line", "line", "offset"),
    "end": ("end", "end_line", "last", "last_line", "line_end", "to_line"),
    "query": ("query", "text", "terms", "question", "q", "pattern", "regex", "expression", "needle"),
    "symbol": ("symbol", "name", "identifier"),
    "claim": ("claim", "statement", "sentence"),
    "quote": ("quote", "quoted", "excerpt"),
    "citations": ("citations", "citation", "sources", "evidence_lines"),
    "symbols": ("symbols",),
    "kind": ("kind",),
    "questions": ("questions", "open_questions", "add", "opened"),
    "source": ("source", "from_path", "importer", "a"),
    "target": ("target", "to_path", "imported", "b"),
    "ref": ("ref", "evidence", "reference", "sha256"),
}
"""What a value means -> names that a schema may give it."""
_BY_NAME = {name: meaning for meaning, names in ALIASES.items() for name in names}


def resolve(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Follow a local `$ref` and take the first of alternatives that is not null."""
    while "$ref" in schema:
        target: Any = root
        for part in schema["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        schema = target
    for word in ("anyOf", "oneOf", "allOf"):
        if word in schema:
            options = [o for o in schema[word] if o.get("type") != "null"]
            return resolve(options[0], root) if options else {}
    return schema


def nullable(schema: Mapping[str, Any]) -> bool:
    """Whether null will do."""
    options = [schema, *(schema.get("anyOf") or ()), *(schema.get("oneOf") or ())]
    return any(o.get("type") == "null" or (isinstance(o.get("type"), list) and "null" in o["type"]) for o in options)


def kind_of(schema: Mapping[str, Any]) -> str:
    """The JSON type that a schema wants; the first that is not null."""
    kind = schema.get("type", "object" if "properties" in schema else "string")
    if isinstance(kind, list):
        kind = next((k for k in kind if k != "null"), "null")
    return str(kind)


def fill(schema: Mapping[str, Any], known: Mapping[str, Any], *, optional: bool = True) -> dict[str, Any]:
    """Arguments for an object schema: each property of a known meaning, and every required one somehow."""
    required = set(schema.get("required") or ())
    filled: dict[str, Any] = {}
    for name, sub in (schema.get("properties") or {}).items():
        meaning = _BY_NAME.get(name)
        if meaning in known and (optional or name in required):
            filled[name] = shape(known[meaning], resolve(sub, schema), schema)
        elif name in known and (optional or name in required):
            filled[name] = shape(known[name], resolve(sub, schema), schema)
        elif name in required:
            filled[name] = None if nullable(sub) else default(resolve(sub, schema), schema, name)
    return filled


def shape(value: Any, schema: Mapping[str, Any], root: Mapping[str, Any]) -> Any:
    """Bend a known value into the type that the schema wants."""
    kind = kind_of(schema)
    if "enum" in schema and value not in schema["enum"]:
        return schema["enum"][-1 if isinstance(value, float) and value > 0.7 else 0]
    if kind == "array":
        values = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
        items = resolve(schema.get("items") or {}, root)
        return [shape(v, items, root) for v in values]
    if kind == "object" and isinstance(value, Mapping):
        return fill({**schema, "$defs": root.get("$defs", {})}, value)
    if kind == "string" and isinstance(value, Mapping) and "path" in value:
        return f"{value['path']}:{value['start']}-{value['end']}"
    if kind == "string" and isinstance(value, list):
        return " ".join(str(v) for v in value)
    if kind == "integer" and isinstance(value, float):
        return int(value)
    return value


def default(schema: Mapping[str, Any], root: Mapping[str, Any], name: str = "") -> Any:
    """Any value that the schema accepts."""
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    if "default" in schema:
        return schema["default"]
    match kind_of(schema):
        case "object":
            return {
                key: default(resolve(sub, root), root, key)
                for key, sub in (schema.get("properties") or {}).items()
                if key in (schema.get("required") or ())
            }
        case "array":
            items = resolve(schema.get("items") or {}, root)
            return [default(items, root, name)] if schema.get("minItems") else []
        case "integer":
            return int(max(schema.get("minimum", 1), 1))
        case "number":
            return float(min(schema.get("maximum", 0.5), 0.5))
        case "boolean":
            return False
        case "null":
            return None
        case _:
            return name or "text"
