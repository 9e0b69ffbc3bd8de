"""From a checked request to a finished message: the model speaks, the API cuts, signs, numbers and bills."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.fake_api import canon, compaction, context_edits, prompt, reply, signing, streaming, thinking
from tests.fake_api.cache import CacheUse
from tests.fake_api.ledger import Charge
from tests.fake_api.models.base import Call, Model
from tests.fake_api.persona import Persona
from tests.fake_api.reply import Block, Finished

if TYPE_CHECKING:
    from tests.fake_api.service import Read, Service, Settings


@dataclass(slots=True)
class Answered:
    """`message` as plain JSON; `content` for the stream, where cut arguments stay visible."""

    message: dict[str, Any]
    content: list[Block]
    uses: list[CacheUse] = field(default_factory=list)
    charges: list[Charge] = field(default_factory=list)


def due_compaction(read: Read) -> Mapping[str, Any] | None:
    """The compaction that this request brings about: asked for, or by an edit whose trigger is met."""
    if read.body.get("compaction") is not None:
        return read.body["compaction"]  # type: ignore[no-any-return]
    edit = read.edited.compact
    if edit is None:
        return None
    trigger = (edit.get("trigger") or {}).get("value", context_edits.DEFAULT_COMPACT_TRIGGER)
    return edit if read.prompt.tokens > trigger else None


def answer(service: Service, read: Read, call: Call, model: Model, mark: str, betas: frozenset[str]) -> Answered:
    """`mark` makes the ids of this reply: the same for no two requests."""
    edit = due_compaction(read)
    answered = Answered({}, [])
    content: list[Block] = []
    iterations: list[dict[str, Any]] = []
    shown = read.prompt
    finished: Finished | None = None
    if edit is not None:
        content.append(_compact(service, read, call, model, edit, answered, iterations))
        only = edit["type"] == "summarize" or edit.get("pause_after_compaction")
        if only:
            finished = Finished([], "compaction", None, None, 0, 0)
        else:
            compacted = [{"role": "assistant", "content": content[:1]}, *_last_user_turn(call)]
            shown = prompt.build(read.body, compacted, read.spec, service.memo)
            call.messages = compacted
    if finished is None:
        finished = _sample(service, read, call, model, shown.tokens)
    _finish_blocks(read, finished.content, content, mark)
    only_compacted = finished.stop_reason == "compaction"
    use = CacheUse(0, 0, 0, 0, (), ()) if only_compacted else service.cache.measure(shown, read.spec.min_cache_tokens)
    usage = _usage(use, finished, iterations)
    answered.content = content
    answered.message = _message(service, read, finished, content, usage, mark, betas)
    if not only_compacted:
        answered.uses.append(use)
        answered.charges.append(_charge(read.spec.id, use, finished.output_tokens, finished.thinking_tokens))
    return answered


def _compact(
    service: Service,
    read: Read,
    call: Call,
    model: Model,
    edit: Mapping[str, Any],
    answered: Answered,
    iterations: list[dict[str, Any]],
) -> Block:
    summarise = getattr(model, "summarise", None)
    instructions = edit.get("instructions")
    summary = summarise(call, instructions) if summarise else compaction.plain_summary(call, instructions)
    written = reply.finish(
        reply.say(summary),
        limit_tokens=max(1, read.body["max_tokens"]),
        limit_reason="max_tokens",
        stop_sequences=(),
        scale=read.spec.token_scale,
    )
    text = written.content[0]["text"] or "(nothing)"
    use = service.cache.measure(read.prompt, read.spec.min_cache_tokens)
    answered.uses.append(use)
    charge = _charge(read.spec.id, use, written.output_tokens, 0)
    charge.kind = "compaction"
    answered.charges.append(charge)
    iterations.append({"type": "compaction", **_cache_fields(use), "output_tokens": written.output_tokens})
    return compaction.block(text, read.spec.id, read.prefix, on_demand=edit["type"] == "summarize")


def _last_user_turn(call: Call) -> list[dict[str, Any]]:
    """What remains to be answered after automatic compaction: the newest user turn, its results as plain text."""
    tail: list[dict[str, Any]] = []
    for message in reversed(call.messages):
        if message["role"] == "assistant":
            break
        kept = [
            {"type": "text", "text": block.get("content") or "(empty)"}
            if block["type"] == "tool_result" and isinstance(block.get("content"), str)
            else block
            for block in message["content"]
        ]
        tail.insert(0, {**message, "content": kept})
    return tail


def _sample(service: Service, read: Read, call: Call, model: Model, prompt_tokens: int) -> Finished:
    if read.body["max_tokens"] == 0:
        return Finished([], "max_tokens", None, None, 0, 0)
    said = model.reply(call)
    has_thinking = any(block["type"] in signing.THINKING for block in said.content)
    if service.settings.think and call.thinking_active and not has_thinking and said.stop_reason != "refusal":
        said.content = [reply.thinking(f"Turn {call.turn}: what do I know, and what is asked next?"), *said.content]
    room = read.spec.window_tokens - prompt_tokens
    limit = min(read.body["max_tokens"], max(1, room))
    return reply.finish(
        said,
        limit_tokens=limit,
        limit_reason="max_tokens" if read.body["max_tokens"] <= room else "model_context_window_exceeded",
        stop_sequences=list(read.body.get("stop_sequences") or ()),
        scale=read.spec.token_scale,
    )


def _finish_blocks(read: Read, said: list[Block], content: list[Block], mark: str) -> None:
    """Sign thinking over all that precedes it, number the calls."""
    prefix = read.prefix
    for block in content:
        prefix = signing.extend(prefix, "assistant", block, canon.essence(block))
    show = thinking.shown(read.body)
    for n, block in enumerate(said):
        made = dict(block)
        if made["type"] == "thinking":
            made["thinking"] = made["thinking"] if show else ""
            made["signature"] = signing.sign("thinking", made["thinking"], read.spec.id, prefix)
        elif made["type"] == "redacted_thinking":
            made["data"] = signing.sign("redacted_thinking", "", read.spec.id, prefix)
        elif made["type"] == "tool_use":
            made.setdefault("id", f"toolu_{mark[:20]}{n:02d}")
            made["input"] = _parsed(made)
        content.append(made)
        plain = {k: v for k, v in made.items() if k != "_json"}
        prefix = signing.extend(prefix, "assistant", plain, canon.essence(plain))


def _parsed(call: Block) -> Any:
    """Arguments of a call whose text was written by hand or cut: what of it is a whole object, else nothing."""
    if "_json" not in call:
        return call["input"]
    try:
        value = json.loads(call["_json"])
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _message(
    service: Service,
    read: Read,
    finished: Finished,
    content: list[Block],
    usage: dict[str, Any],
    mark: str,
    betas: frozenset[str],
) -> dict[str, Any]:
    message_id = f"msg_{mark[:24]}"
    message: dict[str, Any] = {
        "id": message_id,
        "type": "message",
        "role": "assistant",
        "model": read.spec.id,
        "content": [{k: v for k, v in block.items() if k != "_json"} for block in content],
        "stop_reason": finished.stop_reason,
        "stop_sequence": finished.stop_sequence,
        "stop_details": finished.stop_details,
        "usage": usage,
    }
    if read.body.get("diagnostics") is not None:
        message["diagnostics"] = service.diagnosis.explain(message_id, read.body, read.prompt)
    if read.body.get("context_management") is not None:
        message["context_management"] = {"applied_edits": read.edited.applied}
    if thinking.reports(betas, read.spec):
        message["input_transformations"] = read.transformations
    return message


def _usage(use: CacheUse, finished: Finished, iterations: list[dict[str, Any]]) -> dict[str, Any]:
    usage: dict[str, Any] = {
        **_cache_fields(use),
        "output_tokens": finished.output_tokens,
        "output_tokens_details": {"thinking_tokens": finished.thinking_tokens},
        "service_tier": "standard",
    }
    if iterations:
        rest = {"type": "message", **_cache_fields(use), "output_tokens": finished.output_tokens}
        usage["iterations"] = [*iterations, *([] if finished.stop_reason == "compaction" else [rest])]
    return usage


def _cache_fields(use: CacheUse) -> dict[str, Any]:
    return {
        "input_tokens": use.input_tokens,
        "cache_creation_input_tokens": use.write_tokens,
        "cache_read_input_tokens": use.read_tokens,
        "cache_creation": {
            "ephemeral_5m_input_tokens": use.write_5m_tokens,
            "ephemeral_1h_input_tokens": use.write_1h_tokens,
        },
    }


def _charge(model: str, use: CacheUse, output_tokens: int, thinking_tokens: int) -> Charge:
    return Charge(
        request=-1,
        model=model,
        conversation="",
        input_tokens=use.input_tokens,
        write_5m_tokens=use.write_5m_tokens,
        write_1h_tokens=use.write_1h_tokens,
        read_tokens=use.read_tokens,
        output_tokens=output_tokens,
        thinking_tokens=thinking_tokens,
    )


def shown(message: Mapping[str, Any], settings: Settings) -> dict[str, Any]:
    """The message as this kind of server tells it."""
    return _as_persona(message, settings.persona)


def _as_persona(message: Mapping[str, Any], persona: Persona) -> dict[str, Any]:
    told = dict(message)
    if persona.usage == "none":
        told.pop("usage", None)
    elif persona.usage == "null_cache":
        usage = message["usage"]
        total = usage["input_tokens"] + usage["cache_creation_input_tokens"] + usage["cache_read_input_tokens"]
        told["usage"] = {"input_tokens": total, "output_tokens": usage["output_tokens"]}
    return told


def stream(answered: Answered, settings: Settings) -> list[bytes]:
    """The events of the message, encoded one by one."""
    message = _as_persona(answered.message, settings.persona)
    return [streaming.encode(e) for e in streaming.events(message, answered.content, max_deltas=settings.max_deltas)]
