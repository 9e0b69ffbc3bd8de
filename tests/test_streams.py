"""Closed, full and narrow standard streams: one line and an exit code, and the answer is not lost."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.running import ROOT, Leadline

QUESTION = "How does checkout charge the card?"


def shell(leadline: Leadline, command: str, **extra: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["/bin/sh", "-c", f"'{sys.executable}' -m orchestrator {command}"],
        env={**leadline.environment, **extra},
        cwd=ROOT,
        capture_output=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("closed", ["<&-", "2>&-", "<&- 2>&-"])
def test_a_closed_stream_that_is_not_needed_changes_nothing(leadline: Leadline, shop: Path, closed: str) -> None:
    done = shell(leadline, f"explore '{shop}' '{QUESTION}' --quiet {closed}")
    assert done.returncode == 0, done.stderr
    assert b"Short answer" in done.stdout


def test_without_standard_output_nothing_is_begun(leadline: Leadline, shop: Path) -> None:
    done = shell(leadline, f"explore '{shop}' '{QUESTION}' >&-")
    assert done.returncode == 2
    assert b"standard output is closed" in done.stderr
    assert not (leadline.home / "state").exists()


@pytest.mark.parametrize("command", ["--help", "sessions --json", "explore '{shop}' '{question}' -q"])
def test_a_full_output_is_one_line_and_keeps_the_answer(leadline: Leadline, shop: Path, command: str) -> None:
    done = shell(leadline, command.format(shop=shop, question=QUESTION) + " > /dev/full")
    assert done.returncode == 3, done.stderr
    assert b"No space left" in done.stderr
    assert b"bug" not in done.stderr
    if command.startswith("explore"):
        assert [s["status"] for s in leadline.json("sessions")["sessions"]] == ["finished"]


def test_what_an_encoding_lacks_is_escaped(leadline: Leadline, shop: Path) -> None:
    done = shell(leadline, f"explore '{shop}' '{QUESTION}' -q", PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert b"Short answer" in done.stdout
    assert b"\\u" in done.stdout


def test_an_argument_that_is_no_utf_8_is_read_as_far_as_it_is(leadline: Leadline, shop: Path) -> None:
    for command in ("find", "explore"):
        done = subprocess.run(
            [sys.executable, "-m", "orchestrator", command, str(shop), b"caf\xe9 checkout"],
            env=leadline.environment,
            cwd=ROOT,
            capture_output=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert b"checkout" in done.stdout


def test_a_name_with_a_line_break_stays_on_its_line(leadline: Leadline, shop: Path) -> None:
    (shop / "new\nline.py").write_text("def sell_ticket():\n    return 1\n")
    done = leadline.run("find", str(shop), "sell_ticket")
    assert "new\\nline.py" in done.stdout
    assert "\nline.py" not in done.stdout
