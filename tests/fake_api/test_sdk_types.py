"""The tables of the fake against the installed SDK: whoever moves the SDK learns here what moved with it."""

from __future__ import annotations

from typing import Any, get_args

import anthropic
import pytest
from anthropic.types import (
    MessageCountTokensParams,
    Model,
    ModelInfo,
    RedactedThinkingBlockParam,
    StopReason,
    TextBlockParam,
    ThinkingBlockParam,
    ToolParam,
    ToolResultBlockParam,
    ToolUseBlockParam,
    Usage,
    anthropic_beta_param,
    message_create_params,
)
from anthropic.types.beta import (
    BetaClearThinking20251015EditParam,
    BetaClearToolUses20250919EditParam,
    BetaCompact20260112EditParam,
    BetaCompactionBlockParam,
    BetaModelInfo,
    BetaStopReason,
    beta_model_capabilities,
)
from anthropic.types.beta import message_count_tokens_params as beta_count
from anthropic.types.beta import message_create_params as beta_create

from tests.fake_api import FakeApi, Scripted, catalog, fields, reply, samples

COMPARED_WITH = (2, 15)
"""The newest SDK these tables were compared with. A newer one adds fields whenever it likes, which says nothing about
this project: compare again and raise this."""

compared = pytest.mark.skipif(
    tuple(int(part) for part in anthropic.__version__.split(".")[:2]) > COMPARED_WITH,
    reason=f"the tables were compared with SDK {COMPARED_WITH[0]}.{COMPARED_WITH[1]}, this is {anthropic.__version__}",
)

NOT_IN_THE_BODY = {"betas", "user_profile_id", "workspace_id"}


def names(params: Any) -> set[str]:
    return set(params.__annotations__) - NOT_IN_THE_BODY


@compared
def test_top_level_fields() -> None:
    assert names(message_create_params.MessageCreateParamsBase) | {"stream"} == fields.CREATE
    assert names(beta_create.MessageCreateParamsBase) | {"stream"} == fields.BETA_CREATE
    assert names(MessageCountTokensParams) == fields.COUNT
    assert names(beta_count.MessageCountTokensParams) == fields.BETA_COUNT


@compared
def test_block_fields() -> None:
    for name, params in (
        ("text", TextBlockParam),
        ("thinking", ThinkingBlockParam),
        ("redacted_thinking", RedactedThinkingBlockParam),
        ("tool_use", ToolUseBlockParam),
        ("tool_result", ToolResultBlockParam),
        ("compaction", BetaCompactionBlockParam),
    ):
        required, optional = fields.BLOCKS[name]
        asked = {field for field, kind in params.__annotations__.items() if "Required[" in str(kind)}
        assert required == asked, name
        assert optional == set(params.__annotations__) - asked, name
    assert fields.TOOL[0] | fields.TOOL[1] == set(ToolParam.__annotations__)


@compared
def test_edits() -> None:
    table = {
        "clear_tool_uses_20250919": BetaClearToolUses20250919EditParam,
        "clear_thinking_20251015": BetaClearThinking20251015EditParam,
        "compact_20260112": BetaCompact20260112EditParam,
    }
    assert {name: set(params.__annotations__) for name, params in table.items()} == {
        name: set(known) for name, known in fields.EDIT_FIELDS.items()
    }


@compared
def test_models_and_betas() -> None:
    literal = next(part for part in get_args(Model) if part is not str)
    assert set(catalog.MODELS) >= set(get_args(literal)), (
        "the SDK drops a retired model from its list; the fake keeps it"
    )
    betas = next(part for part in get_args(anthropic_beta_param.AnthropicBetaParam) if part is not str)
    assert set(get_args(betas)) == fields.KNOWN_BETAS


@compared
def test_model_info_has_every_field_of_the_sdk() -> None:
    info = catalog.model_info(catalog.MODELS[samples.BOUND])
    assert set(info) == set(BetaModelInfo.model_fields) >= set(ModelInfo.model_fields)
    assert set(info["capabilities"]) == set(beta_model_capabilities.BetaModelCapabilities.model_fields)


def test_every_stop_reason_can_be_played() -> None:
    for reason in get_args(BetaStopReason):
        with FakeApi(model=Scripted([reply.Reply([reply.text("x")], reason)])) as api, api.client() as client:
            message = client.beta.messages.create(model=samples.PLAIN, max_tokens=50, messages=[samples.user("hi")])
            assert message.stop_reason == reason
    assert set(get_args(StopReason)) < set(get_args(BetaStopReason))


def test_usage_fields_are_those_of_the_sdk() -> None:
    with FakeApi(model=Scripted([reply.say("x")])) as api, api.client() as client:
        message = client.messages.create(model=samples.PLAIN, max_tokens=50, messages=[samples.user("hi")])
    assert set(message.usage.to_dict()) <= set(Usage.model_fields)
    assert message.usage.cache_creation.ephemeral_1h_input_tokens == 0
    assert message.usage.output_tokens_details.thinking_tokens == 0
