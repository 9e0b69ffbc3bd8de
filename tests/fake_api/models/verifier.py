"""A model that checks claims: it reads the cited lines and records a verdict on each, citing what it read."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tests.fake_api import reply
from tests.fake_api.models import toolview
from tests.fake_api.models.base import Call
from tests.fake_api.models.schemas import fill
from tests.fake_api.reply import Reply

FINDING_ID = re.compile(r"\bf[0-9a-f]{8,16}\b")
_CITED = re.compile(r"([\w@+.-]+(?:/[\w@+.-]+)*):L?(\d+)(?:-L?(\d+))?")


class Verifier:
    """`verdict` holds for all claims (`UPHELD`, `REFUTED`, or empty: it cannot decide); `verdicts` for single ids."""

    def __init__(self, *, verdict: str = "UPHELD", verdicts: Mapping[str, str] | None = None) -> None:
        self.verdict = verdict
        self.verdicts = dict(verdicts or {})

    def reply(self, call: Call) -> Reply:
        tools = toolview.toolset(call.tools)
        claims = claims_in(call.user_text())
        uses = toolview.uses(call.messages)
        if not uses:
            reads = [
                reply.tool(tools.name("read"), fill(tools.schema("read"), {"path": path, "start": first, "end": last}))
                for path, first, last in dict.fromkeys(claims.values())
            ]
            return Reply(reads) if reads else reply.say("There is nothing to check.")
        if any(use.name == tools.name("record") for use in uses):
            return reply.say("All claims are decided.")
        records = []
        for finding, (path, first, last) in claims.items():
            verdict = self.verdicts.get(finding, self.verdict)
            if verdict:
                cited = {"path": path, "start": first, "end": last}
                known = {"claim": f"{verdict} {finding}: the cited lines decide it", "citations": [cited], **cited}
                records.append(reply.tool(tools.name("record"), fill(tools.schema("record"), known)))
        return Reply(records) if records else reply.say("I cannot decide.")


def claims_in(text: str) -> dict[str, tuple[str, int, int]]:
    """Finding id -> the first lines cited after it."""
    found: dict[str, tuple[str, int, int]] = {}
    for match in FINDING_ID.finditer(text):
        cited = _CITED.search(text, match.end())
        if cited and match.group() not in found:
            first = int(cited.group(2))
            found[match.group()] = (cited.group(1), first, int(cited.group(3) or first))
    return found
