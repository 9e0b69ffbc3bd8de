# ruff: noqa: SIM905 - tables of words read better as words
"""Which fields the API knows, copied from the SDK's parameter types; a test compares them with the installed SDK."""

from __future__ import annotations

from collections.abc import Mapping

CREATE = frozenset(
    "max_tokens messages model cache_control container diagnostics inference_geo metadata output_config service_tier "
    "speed stop_sequences system thinking tool_choice tools stream".split()
)
BETA_CREATE = CREATE | frozenset(
    "billing_policy compaction context_management fallback_credit_token fallbacks mcp_servers thread".split()
)
COUNT = frozenset("messages model cache_control output_config speed system thinking tool_choice tools".split())
BETA_COUNT = COUNT | frozenset("billing_policy compaction context_management mcp_servers".split())
SAMPLING = frozenset({"temperature", "top_p", "top_k"})
"""Accepted on API version 2023-06-01 by older models; unknown on 2026-10-21, and to the SDK's types."""

OPTIONAL_BETAS: Mapping[str, tuple[str, ...]] = {
    "context_management": ("context-management-2025-06-27", "compact-2026-01-12"),
    "compaction": ("compact-2026-09-04",),
    "thread": ("message-threads-2026-08-12",),
    "billing_policy": ("user-profiles-billing-2026-10-01",),
    "fallback_credit_token": ("fallback-credit-2026-06-01", "fallback-credit-2026-07-01"),
    "mcp_servers": ("mcp-client-2025-04-04", "mcp-client-2025-11-20", "mcp-client-2026-09-15"),
    "fallbacks": ("server-side-fallback-2026-06-01", "server-side-fallback-2026-07-01"),
}
"""Top-level fields that need one of these in `anthropic-beta`."""
EDIT_BETAS: Mapping[str, str] = {
    "clear_tool_uses_20250919": "context-management-2025-06-27",
    "clear_thinking_20251015": "context-management-2025-06-27",
    "compact_20260112": "compact-2026-01-12",
}
EDIT_FIELDS: Mapping[str, frozenset[str]] = {
    "clear_tool_uses_20250919": frozenset("type clear_at_least clear_tool_inputs exclude_tools keep trigger".split()),
    "clear_thinking_20251015": frozenset({"type", "keep"}),
    "compact_20260112": frozenset({"type", "instructions", "pause_after_compaction", "trigger"}),
}

BLOCKS: Mapping[str, tuple[frozenset[str], frozenset[str]]] = {
    "text": (frozenset({"type", "text"}), frozenset({"cache_control", "citations"})),
    "image": (frozenset({"type", "source"}), frozenset({"cache_control", "transformations"})),
    "document": (frozenset({"type", "source"}), frozenset({"cache_control", "citations", "context", "title"})),
    "search_result": (frozenset({"type", "content", "source", "title"}), frozenset({"cache_control", "citations"})),
    "thinking": (frozenset({"type", "thinking", "signature"}), frozenset()),
    "redacted_thinking": (frozenset({"type", "data"}), frozenset()),
    "tool_use": (frozenset({"type", "id", "name", "input"}), frozenset({"cache_control", "caller", "toolset_name"})),
    "tool_result": (
        frozenset({"type", "tool_use_id"}),
        frozenset({"cache_control", "content", "is_error", "toolset_name"}),
    ),
    "compaction": (
        frozenset({"type"}),
        frozenset({"cache_control", "content", "encrypted_content", "signature", "tool_changes"}),
    ),
}
"""Per content block: required and optional fields. Blocks of server tools are not modelled."""

USER_BLOCKS = frozenset({"text", "image", "document", "search_result", "tool_result", "compaction"})
ASSISTANT_BLOCKS = frozenset({"text", "thinking", "redacted_thinking", "tool_use", "compaction"})
RESULT_BLOCKS = frozenset({"text", "image", "document", "search_result", "tool_reference"})

TOOL = (
    frozenset({"name", "input_schema"}),
    frozenset(
        "type description cache_control strict allowed_callers defer_loading eager_input_streaming "
        "input_examples".split()
    ),
)
THINKING: Mapping[str, frozenset[str]] = {
    "enabled": frozenset({"type", "budget_tokens", "display"}),
    "disabled": frozenset({"type"}),
    "between_tools": frozenset({"type"}),
    "adaptive": frozenset({"type", "display"}),
}
BINDING_BETA = "thinking-binding-controls-2026-08-01"
CLEAR_AT_BETA = "mid-conversation-system-clear-at-2026-08-21"
TOOL_CHOICE: Mapping[str, frozenset[str]] = {
    "auto": frozenset({"type", "disable_parallel_tool_use"}),
    "any": frozenset({"type", "disable_parallel_tool_use"}),
    "tool": frozenset({"type", "name", "disable_parallel_tool_use"}),
    "none": frozenset({"type"}),
}

KNOWN_BETAS = frozenset(
    (
        "computer-use-2024-10-22 computer-use-2025-01-24 output-128k-2025-02-19 mcp-client-2025-04-04 "
        "mcp-client-2025-11-20 dev-full-thinking-2025-05-14 interleaved-thinking-2025-05-14 code-execution-2025-05-22 "
        "context-1m-2025-08-07 context-management-2025-06-27 model-context-window-exceeded-2025-08-26 "
        "fast-mode-2026-02-01 output-300k-2026-03-24 user-profiles-2026-03-24 user-profiles-2026-08-18 "
        "user-profiles-2026-09-04 advisor-tool-2026-03-01 managed-agents-2026-04-01 dreaming-2026-04-21 "
        "thinking-token-count-2026-05-13 server-side-fallback-2026-06-01 server-side-fallback-2026-07-01 "
        "fallback-credit-2026-06-01 fallback-credit-2026-07-01 agent-memory-2026-07-22 "
        "mid-conversation-tool-changes-2026-07-01 compact-2026-01-12 computer-use-2025-11-24 mcp-tunnels-2026-06-22 "
        "structured-outputs-2025-11-13 task-budgets-2026-03-13 thinking-display-updates-2026-08-18 "
        "mid-conversation-output-config-2026-07-01 thinking-binding-controls-2026-08-01 "
        "mid-conversation-system-clear-at-2026-08-21 compact-2026-09-04 inline-tools-2026-09-15 mcp-client-2026-09-15 "
        "ce-plugins-2026-09-01 spend-limit-reads-2026-09-26 telemetry-destinations-2026-08-11 webhooks-2026-10-07 "
        "admin-user-sign-out-2026-10-08 message-threads-2026-08-12 analytics-usage-cost-2026-08-24 "
        "experimental-claude-tag-2026-10-21 message-batches-2024-09-24 prompt-caching-2024-07-31 pdfs-2024-09-25 "
        "token-counting-2024-11-01 token-efficient-tools-2025-02-19 files-api-2025-04-14 "
        "extended-cache-ttl-2025-04-11 skills-2025-10-02 cache-diagnosis-2026-04-07 ce-user-management-2026-07-13 "
        "ce-claude-code-managed-settings-2026-10-06 efs-2026-10-01 google-managed-data-controls-2026-09-01 "
        "user-profiles-billing-2026-10-01 "
    ).split()
)
"""Values that `anthropic-beta` may have."""
