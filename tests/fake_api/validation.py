"""What the API refuses about the shape of a request, before it looks at the conversation."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tests.fake_api import fields, schema_rules
from tests.fake_api.catalog import ModelSpec
from tests.fake_api.errors import Refused, invalid

TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}\Z")
TOOL_ID = re.compile(r"[a-zA-Z0-9_-]+\Z")
MAX_BREAKPOINTS = 4
MAX_MESSAGES = 100_000


def check_fields(body: Any, *, counting: bool, version: str) -> None:
    """Top level: an object, required fields present, no unknown one."""
    if not isinstance(body, dict):
        raise invalid("Input should be a valid dictionary")
    required = ("model", "messages") if counting else ("model", "max_tokens", "messages")
    for name in required:
        if name not in body:
            raise invalid(f"{name}: Field required")
    known = fields.BETA_COUNT if counting else fields.BETA_CREATE
    for name in body:
        if name in fields.SAMPLING and version == "2023-06-01" and not counting:
            continue
        if name not in known:
            raise invalid(f"{name}: Extra inputs are not permitted")
    if not isinstance(body["model"], str):
        raise invalid("model: Input should be a valid string")


def check_betas(body: Mapping[str, Any], betas: frozenset[str]) -> None:
    """Beta features need their header; the SDK's beta methods send none by themselves."""
    for name, needed in fields.OPTIONAL_BETAS.items():
        if body.get(name) is not None and not betas.intersection(needed):
            raise invalid(f"{name}: Extra inputs are not permitted")
    for n, edit in enumerate((body.get("context_management") or {}).get("edits") or ()):
        _check_edit(f"context_management.edits.{n}", edit, betas)


def _check_edit(at: str, edit: Any, betas: frozenset[str]) -> None:
    kind = edit.get("type") if isinstance(edit, Mapping) else None
    if kind not in fields.EDIT_FIELDS or fields.EDIT_BETAS[kind] not in betas:
        known = ", ".join(f"'{name}'" for name in fields.EDIT_FIELDS)
        raise invalid(f"{at}: Input tag '{kind}' found using 'type' does not match any of the expected tags: {known}")
    for name in edit:
        if name not in fields.EDIT_FIELDS[kind]:
            raise invalid(f"{at}.{kind}.{name}: Extra inputs are not permitted")
    trigger = edit.get("trigger")
    if kind == "compact_20260112" and trigger is not None and trigger.get("value", 0) < 50_000:
        raise invalid(f"{at}.{kind}.trigger.value: Input should be greater than or equal to 50000")


def check_settings(body: Mapping[str, Any], spec: ModelSpec, betas: frozenset[str]) -> None:
    """max_tokens, thinking, tool choice, effort, output format, sampling: what this model accepts."""
    maximum = body.get("max_tokens", 1)
    if not isinstance(maximum, int) or isinstance(maximum, bool):
        raise invalid("max_tokens: Input should be a valid integer")
    if maximum < 0:
        raise invalid("max_tokens: Input should be greater than or equal to 0")
    if maximum > spec.max_output_tokens:
        raise invalid(
            f"max_tokens: {maximum} > {spec.max_output_tokens}, which is the maximum allowed number of output tokens "
            f"for {spec.id}"
        )
    for name in fields.SAMPLING & body.keys():
        if not spec.accepts_sampling:
            raise invalid(f"`{name}` is not supported for this model.")
    _check_thinking(body, spec, betas)
    _check_tool_choice(body, spec)
    output = body.get("output_config") or {}
    effort = output.get("effort")
    if effort is not None and effort not in spec.effort_levels:
        raise invalid(f"output_config.effort: this model does not support the effort level '{effort}'")
    _only(output, {"effort", "format", "task_budget"}, "output_config")
    if output.get("format") is not None:
        if not spec.structured_outputs:
            raise invalid("output_config.format: structured outputs are not supported for this model")
        schema_rules.check_format(output["format"])
    for n, sequence in enumerate(body.get("stop_sequences") or ()):
        if not isinstance(sequence, str) or not sequence.strip():
            raise invalid(f"stop_sequences.{n}: each stop sequence must contain non-whitespace")


def _check_thinking(body: Mapping[str, Any], spec: ModelSpec, betas: frozenset[str]) -> None:
    config = body.get("thinking")
    if config is None:
        return
    kind = config.get("type") if isinstance(config, Mapping) else None
    if kind not in fields.THINKING:
        raise invalid(f"thinking: Input tag '{kind}' found using 'type' does not match any of the expected tags")
    allowed = set(fields.THINKING[kind])
    if fields.BINDING_BETA in betas and kind in {"enabled", "adaptive"}:
        allowed.add("block_binding")
    _only(config, allowed, f"thinking.{kind}")
    if kind not in spec.thinking_types:
        raise invalid(f"thinking.type: '{kind}' is not supported for this model")
    if kind == "enabled":
        budget = config.get("budget_tokens")
        if not isinstance(budget, int):
            raise invalid("thinking.enabled.budget_tokens: Field required")
        if budget < 1024:
            raise invalid("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
        if "max_tokens" in body and budget >= body["max_tokens"]:
            raise invalid("`max_tokens` must be greater than `thinking.budget_tokens`")


def _check_tool_choice(body: Mapping[str, Any], spec: ModelSpec) -> None:
    choice = body.get("tool_choice")
    if choice is None:
        return
    kind = choice.get("type")
    if kind not in fields.TOOL_CHOICE:
        raise invalid(f"tool_choice: Input tag '{kind}' found using 'type' does not match any of the expected tags")
    _only(choice, fields.TOOL_CHOICE[kind], f"tool_choice.{kind}")
    tools = body.get("tools") or ()
    if kind != "none" and not tools:
        raise invalid("tool_choice: tool_choice may only be specified while providing `tools`")
    if kind not in {"any", "tool"}:
        return
    if spec.refuses_forced_tools:
        raise invalid(f"tool_choice: type '{kind}' is not supported for this model; use 'auto'")
    thinking = (body.get("thinking") or {}).get("type")
    if thinking == "enabled":
        raise invalid("Thinking may not be enabled when tool_choice forces tool use.")
    if kind == "tool" and choice.get("name") not in {tool.get("name") for tool in tools}:
        raise invalid(f"tool_choice: tool '{choice.get('name')}' not found in provided tools")


def check_tools(body: Mapping[str, Any]) -> None:
    """Names, schemas, duplicates."""
    seen: set[str] = set()
    for n, tool in enumerate(body.get("tools") or ()):
        at = f"tools.{n}.custom"
        if not isinstance(tool, Mapping):
            raise invalid(f"tools.{n}: Input should be a valid dictionary")
        if tool.get("type") not in {None, "custom"}:
            raise invalid(f"tools.{n}: the fake serves no server tool: '{tool.get('type')}'")
        required, optional = fields.TOOL
        for name in required - tool.keys():
            raise invalid(f"{at}.{name}: Field required")
        _only(tool, required | optional, at)
        if not isinstance(tool["name"], str) or not TOOL_NAME.match(tool["name"]):
            raise invalid(f"{at}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,64}}$'")
        if tool["name"] in seen:
            raise invalid("tools: Tool names must be unique.")
        seen.add(tool["name"])
        schema = tool["input_schema"]
        if not isinstance(schema, Mapping) or schema.get("type") != "object":
            raise invalid(f"{at}.input_schema.type: Field required")
        if tool.get("strict"):
            schema_rules.check_schema(schema, f"tools.{n}.custom.input_schema")


def check_system(body: Mapping[str, Any]) -> None:
    """System is a string or text blocks, none of them empty."""
    system = body.get("system")
    if system is None or isinstance(system, str):
        return
    if not isinstance(system, list):
        raise invalid("system: Input should be a valid list")
    for n, block in enumerate(system):
        if not isinstance(block, Mapping) or block.get("type") != "text":
            raise invalid(f"system.{n}.type: Input should be 'text'")
        check_block(block, f"system.{n}")


def check_breakpoints(body: Mapping[str, Any]) -> None:
    """At most four cache marks; longer lifetimes come first."""
    found: list[str] = []
    system = body.get("system")
    parts: list[Any] = [*(body.get("tools") or ()), *(system if isinstance(system, list) else ())]
    for message in body["messages"]:
        if isinstance(message.get("content"), list):
            parts += message["content"]
    parts.append({"cache_control": body.get("cache_control")})
    for part in parts:
        mark = part.get("cache_control")
        if mark is None:
            continue
        if (
            mark.get("type") != "ephemeral"
            or mark.get("ttl", "5m") not in {"5m", "1h"}
            or mark.keys() - {"type", "ttl"}
        ):
            raise invalid("cache_control: only {'type': 'ephemeral', 'ttl': '5m' | '1h'} is permitted")
        found.append(mark.get("ttl", "5m"))
    if len(found) > MAX_BREAKPOINTS:
        raise invalid(f"A maximum of 4 blocks with cache_control may be provided. Found {len(found)}.")
    if "5m" in found and "1h" in found[found.index("5m") :]:
        raise invalid("a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block")


def check_block(block: Any, at: str) -> None:
    """One content block: known type, required fields, nothing else, no empty text."""
    if not isinstance(block, Mapping):
        raise invalid(f"{at}: Input should be a valid dictionary")
    kind = block.get("type")
    if kind not in fields.BLOCKS:
        raise invalid(f"{at}: Input tag '{kind}' found using 'type' does not match any of the expected tags")
    required, optional = fields.BLOCKS[kind]
    for name in sorted(required - block.keys()):
        raise invalid(f"{at}.{kind}.{name}: Field required")
    _only(block, required | optional, f"{at}.{kind}")
    if kind == "text":
        _check_text(block["text"], at)
    elif kind == "tool_use":
        _check_tool_use(block, at)
    elif kind == "tool_result":
        _check_result(block, at)
    elif kind == "compaction" and block.get("content") == "":
        raise invalid(f"{at}.compaction.content: String should have at least 1 character")


def _check_text(text: Any, at: str) -> None:
    if not isinstance(text, str):
        raise invalid(f"{at}.text.text: Input should be a valid string")
    if not text:
        raise invalid(f"{at.split('.')[0]}: text content blocks must be non-empty")
    if not text.strip():
        raise invalid(f"{at.split('.')[0]}: text content blocks must contain non-whitespace text")


def _check_tool_use(block: Mapping[str, Any], at: str) -> None:
    if not isinstance(block["id"], str) or not TOOL_ID.match(block["id"]):
        raise invalid(f"{at}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")
    if not isinstance(block["name"], str) or not TOOL_NAME.match(block["name"]):
        raise invalid(f"{at}.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{{1,64}}$'")
    if not isinstance(block["input"], Mapping):
        raise invalid(f"{at}.tool_use.input: Input should be a valid dictionary")


def _check_result(block: Mapping[str, Any], at: str) -> None:
    content = block.get("content")
    if content is None or isinstance(content, str):
        return
    if not isinstance(content, Sequence):
        raise invalid(f"{at}.tool_result.content: Input should be a valid list")
    for n, part in enumerate(content):
        if not isinstance(part, Mapping) or part.get("type") not in fields.RESULT_BLOCKS:
            raise invalid(f"{at}.tool_result.content.{n}: Input tag does not match any of the expected tags")
        if part.get("cache_control") is not None:
            raise invalid(f"{at}.tool_result.content.{n}.cache_control: Extra inputs are not permitted")
        if part["type"] == "text":
            _check_text(part.get("text"), at)


def _only(value: Mapping[str, Any], allowed: set[str] | frozenset[str], at: str) -> None:
    for name in value:
        if name not in allowed:
            raise invalid(f"{at}.{name}: Extra inputs are not permitted")


def unknown_model(model: str) -> Refused:
    return Refused(404, f"model: {model}")
