"""Which server is being played: Anthropic's own API, or one that merely speaks the Messages protocol."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

UsageStyle = Literal["full", "null_cache", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Persona:
    """How far the server goes beyond the bare protocol."""

    strict: bool = True
    """Refuses what the real API refuses; a lenient server ignores unknown fields, headers and signatures."""
    needs_key: bool = True
    usage: UsageStyle = "full"
    known_models_only: bool = True
    model_details: bool = True
    """False: the model list leaves nearly everything null."""
    n_ctx: int | None = None
    """The window of a lenient server, shown in the extra field `meta` if `shows_n_ctx`."""
    shows_n_ctx: bool = False
    has_models: bool = True
    has_count_tokens: bool = True
    structured_outputs: Literal["yes", "refused", "ignored"] = "yes"
    thinking: bool = True


ANTHROPIC = Persona()
COMPATIBLE = Persona(
    strict=False,
    needs_key=False,
    usage="null_cache",
    known_models_only=False,
    model_details=False,
    n_ctx=32_768,
    structured_outputs="ignored",
    thinking=False,
)
"""A server such as llama.cpp's or Ollama's: no capabilities, no window, null cache fields, no betas."""
