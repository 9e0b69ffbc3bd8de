"""Which JSON schemas structured outputs and strict tools accept: closed objects, no numeric, length or size limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.fake_api.errors import invalid

_UNSUPPORTED: Mapping[str, tuple[str, ...]] = {
    "integer": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "string": ("minLength", "maxLength"),
    "array": ("maxItems", "uniqueItems"),
    "object": ("minProperties", "maxProperties", "patternProperties"),
}
_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"})


def check_format(value: Any) -> None:
    """`output_config.format`."""
    at = "output_config.format"
    if not isinstance(value, Mapping) or value.get("type") != "json_schema":
        raise invalid(f"{at}.type: Input should be 'json_schema'")
    for name in value.keys() - {"type", "schema"}:
        raise invalid(f"{at}.{name}: Extra inputs are not permitted")
    if not isinstance(value.get("schema"), Mapping):
        raise invalid(f"{at}.schema: Field required")
    check_schema(value["schema"], f"{at}.schema")


def check_schema(schema: Mapping[str, Any], at: str) -> None:
    """Walk a schema and refuse what constrained decoding does not support."""
    _check(schema, at, schema, ())


def _check(schema: Any, at: str, root: Mapping[str, Any], refs: tuple[str, ...]) -> None:
    if not isinstance(schema, Mapping):
        raise invalid(f"{at}: Input should be a valid dictionary")
    if "$ref" in schema:
        _check_ref(str(schema["$ref"]), at, root, refs)
        return
    kinds = schema.get("type")
    for kind in kinds if isinstance(kinds, list) else [kinds]:
        for word in _UNSUPPORTED.get(kind, ()):
            if word in schema:
                raise invalid(f"{at}: For '{kind}' type, property '{word}' is not supported")
        if kind == "object" and schema.get("additionalProperties") is not False:
            raise invalid(f"{at}: For 'object' type, 'additionalProperties' must be explicitly set to false")
        if kind == "array" and schema.get("minItems", 0) not in {0, 1}:
            raise invalid(f"{at}: For 'array' type, 'minItems' values other than 0 or 1 are not supported")
    if "format" in schema and schema["format"] not in _FORMATS:
        raise invalid(f"{at}: String format '{schema['format']}' is not supported")
    for name, sub in (schema.get("properties") or {}).items():
        _check(sub, f"{at}.properties.{name}", root, refs)
    if "items" in schema:
        _check(schema["items"], f"{at}.items", root, refs)
    for word in ("anyOf", "allOf"):
        for n, sub in enumerate(schema.get(word) or ()):
            _check(sub, f"{at}.{word}.{n}", root, refs)
    if "oneOf" in schema or "not" in schema:
        raise invalid(f"{at}: 'oneOf' and 'not' are not supported")


def _check_ref(ref: str, at: str, root: Mapping[str, Any], refs: tuple[str, ...]) -> None:
    if not ref.startswith("#/"):
        raise invalid(f"{at}: External schema references are not supported")
    if ref in refs:
        raise invalid(f"{at}: Recursive schemas are not supported")
    target: Any = root
    for part in ref[2:].split("/"):
        target = target.get(part) if isinstance(target, Mapping) else None
    _check(target, at, root, (*refs, ref))
