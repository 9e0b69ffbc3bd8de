"""One task carried out in a process of its own, for tests that kill it: reads JSON from its argument."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from manifests.jsonl import AppendLog
from tests.subagents.claude.world import newest, settings_for, world


def die_at(count: int) -> None:
    """Kill this process, as the power would, right after (or, for odd counts, right before) the count-th append."""
    append = AppendLog.append
    seen = 0

    def counted(self: AppendLog, body: object, *, sync: bool = True, redact: Any = None) -> int:
        nonlocal seen
        seen += 1
        if seen == count and count % 2:
            os.kill(os.getpid(), signal.SIGKILL)
        number = append(self, body, sync=sync, redact=redact)  # type: ignore[arg-type]
        if seen == count:
            os.kill(os.getpid(), signal.SIGKILL)
        return number

    AppendLog.append = counted  # type: ignore[method-assign]


def main() -> None:
    given = json.loads(sys.argv[1])
    folder = Path(given["folder"])
    again = (folder / "state").exists()
    with world(folder, Path(given["repository"]), session=newest if again else None) as here:
        if given["die_at"]:
            die_at(given["die_at"])
        api = SimpleNamespace(base_url=given["base_url"], api_key=given["api_key"])
        outcome = asyncio.run(here.run(settings_for(api, model=given["model"])))
        found = sorted(f.id for f in here.recorder(here.task()).findings())
        print(json.dumps({"status": outcome.status, "usage": dict(outcome.usage), "findings": found}))


if __name__ == "__main__":
    main()
