"""`leadline eval recall`: what comes back of facts planted in long contexts, for the configured model."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, field

from manifests.errors import UsageError
from orchestrator import engines
from orchestrator.commands.explore import agreed_at_terminal
from orchestrator.output import print_json, print_text, say
from orchestrator.settings import load_settings
from orchestrator.spend import Estimate, Spend, SpendLimits, approve
from subagents.claude import recall as planted
from subagents.claude.brake import Brake, BrakePolicy
from subagents.claude.client import Endpoint, make_endpoint, model_of
from subagents.claude.config import ClaudeSettings, ModelFacts
from subagents.claude.prices import Prices
from subagents.claude.stops import Trouble, as_error

REPLY_TOKENS = 300
"""What an estimate counts for the reply: a line for each fact."""
MARGIN = 1.25
"""A request may be so much larger than counted here, and must still be inside the limit."""


def recall(
    *,
    lengths: str,
    facts: int,
    model: str | None,
    max_tokens: int | None,
    max_cost: float | None,
    yes: bool,
    as_json: bool,
    quiet: bool,
) -> int:
    """Evaluate and print the table. Exit code 5 when a limit ended it early."""
    wanted = _lengths(lengths)
    settings = load_settings(os.environ)
    configured = engines.configured(settings)
    limits = SpendLimits(
        max_cost=max_cost,
        max_tokens=max_tokens,
        ask_above_cost=settings.ask_above_cost,
        ask_above_tokens=settings.ask_above_tokens,
    )
    run = _Run(configured=configured, model=model or model_of(configured), each=facts, quiet=quiet, yes=yes)
    run.spend = Spend(limits, lambda _: run.prices, prefix_tokens=0)
    cells = asyncio.run(run.carried_out(wanted))
    if as_json:
        print_json(run.document(cells))
    else:
        print_text(planted.table(cells))
        for line in run.remarks():
            say(line)
    return 0 if not run.stopped else 5


def _lengths(text: str) -> list[int]:
    parts = [part.strip().replace("_", "") for part in text.split(",")]
    if not all(part.isdigit() and 1_000 <= int(part) <= 10_000_000 for part in parts):
        raise UsageError(f"--lengths is {text!r}", hint="give numbers of tokens from 1000 on: --lengths 8000,32000")
    return [int(part) for part in parts]


@dataclass(slots=True, kw_only=True)
class _Run:
    """One evaluation: gated before the first request, bounded before each further one."""

    configured: ClaudeSettings
    model: str
    each: int
    quiet: bool
    yes: bool
    spend: Spend = field(init=False)
    stopped: str = ""
    """The limit that ended it early."""
    left_out: tuple[int, ...] = ()
    window_tokens: int = 0

    @property
    def prices(self) -> Prices:
        return self.configured.prices_of(self.model)

    async def carried_out(self, lengths: list[int]) -> list[planted.RecallCell]:
        endpoint = make_endpoint(self.configured)
        try:
            facts = await self._facts(endpoint)
            probes = planted.probes_for(facts, lengths=lengths, each=self.each)
            self.window_tokens = facts.window_tokens
            self.left_out = tuple(sorted(set(lengths) - {probe.length_tokens for probe in probes}))
            if not probes:
                raise UsageError(
                    f"none of these lengths fits the window of {self.model!r}, {facts.window_tokens:,} tokens",
                    hint="give smaller ones: --lengths",
                )
            estimate = self._estimate(probes)
            if not self.quiet:
                say(estimate.line)
            if self.spend.must_ask(estimate):
                approve(estimate, yes=self.yes, agreed=agreed_at_terminal())
            brake = Brake(BrakePolicy(outage_limit_s=self.configured.outage_limit_s))
            return await planted.evaluate(
                endpoint, probes, brake=brake, on_entry=self.spend.add, may_send=self._may_send
            )
        finally:
            await endpoint.close()

    async def _facts(self, endpoint: Endpoint) -> ModelFacts:
        try:
            return await endpoint.facts(self.model)
        except Trouble as trouble:
            raise as_error(trouble) from trouble

    def _estimate(self, probes: list[planted.Probe]) -> Estimate:
        tokens = sum(probe.raw_input for probe in probes)
        said = REPLY_TOKENS * len(probes)
        equivalents = tokens + self.prices.output * said
        return Estimate(
            subagents=0,
            work=f"{len(probes)} requests",
            tokens=tokens + said,
            equivalents=equivalents,
            money=self.prices.money(equivalents),
            currency=self.prices.currency,
            basis=f"each context sent once, uncached, to {self.model}",
        )

    def _may_send(self, probe: planted.Probe) -> bool:
        room = self.spend.room()
        reply = int(probe.request.body["max_tokens"])
        most = MARGIN * probe.raw_input + (reply if self.prices.per_million is None else self.prices.output * reply)
        if room is None or room >= most:
            return True
        self.stopped = "cost" if self.spend.limits.max_tokens is None else "tokens"
        return False

    def remarks(self) -> list[str]:
        lines = []
        if self.left_out:
            longest = ", ".join(f"{n:,}" for n in self.left_out)
            lines.append(f"left out, as the window is {self.window_tokens:,} tokens: {longest}")
        if self.stopped:
            lines.append(f"stopped early: the limit in {self.stopped} would have been passed")
        return lines

    def document(self, cells: list[planted.RecallCell]) -> dict[str, object]:
        return {
            "model": self.model,
            "window_tokens": self.window_tokens,
            "complete": not self.stopped,
            "left_out_lengths": list(self.left_out),
            "cells": [
                {
                    "length_tokens": cell.length_tokens,
                    "context": cell.treatment,
                    "place": cell.place,
                    "planted": cell.planted,
                    "recovered": cell.recovered,
                }
                for cell in cells
            ],
            "usage": self.spend.total(),
        }
