"""A static run killed at every durable step: it resumes to the same findings, and finished tasks do not run again."""

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.running import ROOT, Leadline

QUESTION = "How does checkout charge the card?"
SAMPLES = 12
"""Of all durable steps of a run, so many evenly spread ones in the ordinary suite; `--every-step` takes them all."""


def run(leadline: Leadline, *arguments: str, **fault: object) -> subprocess.CompletedProcess[str]:
    """The command line below the fault layer."""
    options = [part for name, value in fault.items() for part in (f"--{name}", str(value))]
    return subprocess.run(
        [sys.executable, "-m", "tests.faults.launcher", *options, "--", *arguments],
        env=leadline.environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture
def whole(leadline: Leadline, shop: Path, tmp_path: Path) -> tuple[Any, int]:
    """A run that nothing disturbs: its document, and how many durable operations it made."""
    run(leadline, "map", str(shop), "--json")  # the index is in the cache from here on
    log = tmp_path / "operations.log"
    done = run(leadline, "explore", str(shop), QUESTION, "--json", "--quiet", fault="none", log=log)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), len(log.read_text().splitlines())


def test_killed_at_any_durable_step_it_resumes_to_the_same_findings(
    leadline: Leadline, shop: Path, whole: tuple[Any, int], request: pytest.FixtureRequest
) -> None:
    expected, operations = whole
    every = request.config.getoption("--every-step")
    steps = range(1, operations + 1) if every else range(1, operations + 1, max(1, operations // SAMPLES))
    resumed = 0
    for step in steps:
        shutil.rmtree(leadline.home / "state", ignore_errors=True)
        for fault in ("die_before", "die_after") if every else ("die_before",):
            died = run(leadline, "explore", str(shop), QUESTION, "--quiet", fault=fault, at=step)
            assert died.returncode == -signal.SIGKILL, (step, died.returncode, died.stderr)
            listed = leadline.json("sessions")["sessions"]
            if not listed:
                continue  # before the first manifest there is nothing to go on with, and nothing was found
            assert [s["status"] for s in listed] in (["interrupted"], ["finished"]), (step, listed)
            before = leadline.json("show", listed[0]["session"])
            after = leadline.json("resume", listed[0]["session"])
            assert_same(expected, before, after, step)
            resumed += listed[0]["status"] == "interrupted"
            shutil.rmtree(leadline.home / "state", ignore_errors=True)
    assert resumed > len(list(steps)) // 2


def assert_same(expected: Any, before: Any, after: Any, step: int) -> None:
    ids = [f["id"] for f in after["findings"]]
    assert ids == [f["id"] for f in expected["findings"]], step
    assert len(set(ids)) == len(ids)
    assert {f["id"] for f in before["findings"]} <= set(ids)
    assert after["answer"] == expected["answer"]
    finished = {t["id"]: t["attempts"] for t in before["tasks"] if t["status"] == "finished"}
    assert {t["id"]: t["attempts"] for t in after["tasks"] if t["id"] in finished} == finished, step


@pytest.mark.parametrize("fault", ["ENOSPC", "EIO", "EACCES"])
def test_a_disk_that_fails_ends_in_one_line_and_nothing_is_lost(
    leadline: Leadline, shop: Path, whole: tuple[Any, int], fault: str
) -> None:
    expected, operations = whole
    for step in range(3, operations, max(1, operations // 3)):
        shutil.rmtree(leadline.home / "state", ignore_errors=True)
        done = run(leadline, "explore", str(shop), QUESTION, "--quiet", fault=fault, at=step)
        assert "Traceback" not in done.stderr, done.stderr
        if done.returncode != 0:
            assert done.returncode in (1, 3, 4), (step, done.returncode, done.stderr)
            assert done.stderr.strip(), step
        for session in leadline.json("sessions")["sessions"]:
            after = leadline.json("resume", session["session"])
            assert [f["id"] for f in after["findings"]] == [f["id"] for f in expected["findings"]]
