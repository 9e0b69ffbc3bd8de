"""The fake as a process: the same API, its records and clock through a door, and an end with its parent."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import anthropic
import pytest

from tests.fake_api import FakeApiProcess, loop, samples
from tests.fake_api.assertions import assert_all_valid
from tests.fake_api.process import ROOT

TASK = "Task t0123456789abcdef\nQuestion: how does retry_policy work?"


def test_records_ledger_clock_and_faults_through_the_door() -> None:
    with FakeApiProcess(model={"name": "explorer", "steps": 3}, window_tokens=50_000) as api, api.client() as client:
        system = [samples.marked({"type": "text", "text": samples.words(1500)})]
        loop.run(client, task=TASK, system=system)
        assert_all_valid(api.requests)
        assert api.created[0].json["messages"] == [samples.user(TASK)]
        assert api.created[1].body.startswith(b"{")
        assert len(api.ledger) == len(api.created) == api.state["created"]
        assert api.totals.read_tokens > 0
        api.advance(301)
        api.fail_next({"kind": "status", "status": 529}, {})
        with pytest.raises(anthropic.InternalServerError):
            client.messages.create(model=samples.PLAIN, max_tokens=50, messages=[samples.user("hi")], system=system)
        message = client.messages.create(
            model=samples.PLAIN, max_tokens=50, messages=[samples.user("hi")], system=system
        )
        assert message.usage.cache_read_input_tokens == 0
        assert client.models.retrieve(samples.PLAIN).max_input_tokens == 50_000
        api.fail_by_seed(1, 1.0)
        with pytest.raises(Exception, match=r"."):
            client.messages.create(model=samples.PLAIN, max_tokens=50, messages=[samples.user("hi")])
        api.no_more_faults()
        client.messages.create(model=samples.PLAIN, max_tokens=50, messages=[samples.user("hi")])
        assert api.problems == []


def test_dies_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    script = (
        "import sys, time\n"
        "from tests.fake_api import FakeApiProcess\n"
        "with FakeApiProcess() as api:\n"
        "    print(api.pid, flush=True)\n"
        "    time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        parent.kill()
        assert parent.wait() == -signal.SIGKILL
    give_up = time.monotonic() + 10
    while Path(f"/proc/{child}/cmdline").exists() and Path(f"/proc/{child}/cmdline").read_bytes():
        assert time.monotonic() < give_up, "the fake outlived its parent"
        time.sleep(0.02)
