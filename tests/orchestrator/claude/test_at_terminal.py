"""Where a person sits at a terminal: asked before money is spent, and a prompt with commands and history."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import subprocess
import termios
import time
from collections.abc import Sequence
from pathlib import Path

from tests.orchestrator.claude.lab import QUESTION, Lab, lab, make_works

PATIENCE_S = 60.0
ASKED = r"3 subagents: about [\d,]+ tokens, about [\d.]+ USD.*Go on\?.*: "


def at_terminal(one: Lab, *arguments: str, typed: Sequence[tuple[str, str]]) -> tuple[int, str]:
    """Exit code, and all that the terminal showed. `typed`: what to wait for, and what is typed then."""
    ours, theirs = pty.openpty()
    environment = {**one.environment, "TERM": "xterm"}
    process = subprocess.Popen(
        one.command(*arguments),
        env=environment,
        cwd=one.home,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # so that control characters are signals
    )
    os.close(theirs)
    said, waiting, seen = "", list(typed), 0
    deadline = time.monotonic() + PATIENCE_S
    try:
        while True:
            assert time.monotonic() < deadline, said
            if not select.select([ours], [], [], 0.2)[0]:
                continue
            try:
                more = os.read(ours, 65_536)
            except OSError:  # the other end is closed
                more = b""
            if not more:
                break
            said += more.decode("utf-8", "replace")
            while waiting and (found := re.compile(waiting[0][0], re.DOTALL).search(said, seen)):
                seen = found.end()
                os.write(ours, waiting.pop(0)[1].encode())
        assert not waiting, (waiting, said)
        return process.wait(timeout=PATIENCE_S), said
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        os.close(ours)


def test_control_c_and_the_end_of_input_at_the_question_are_answers(tmp_path: Path) -> None:
    works = make_works(tmp_path / "works")
    with lab(tmp_path / "home", rounds=1) as one:
        assert one.api is not None
        one.configure(limits="ask_above_cost = 0.01")
        code, said = at_terminal(one, "explore", str(works), QUESTION, "--engine", "claude", typed=[(ASKED, "\x03")])
        assert code == 130, said
        session = re.findall(r"leadline resume (\S+)", said)[-1]
        assert one.json("sessions")["sessions"][0]["status"] == "interrupted"
        code, said = at_terminal(one, "resume", session, typed=[(ASKED, "\x04")])
        assert code == 2, said
        assert "nothing more was spent" in said
        assert len(one.api.created) == 1, "only the plan was paid for"


def test_a_person_is_asked_above_the_amount_and_what_they_decline_resumes_when_they_agree(tmp_path: Path) -> None:
    works = make_works(tmp_path / "works")
    with lab(tmp_path / "home", rounds=1) as one:
        assert one.api is not None
        one.configure(limits="ask_above_cost = 0.01")
        code, said = at_terminal(one, "explore", str(works), QUESTION, "--engine", "claude", typed=[(ASKED, "n\n")])
        assert code == 2, said
        assert "nothing more was spent" in said
        assert len(one.api.created) == 1, "only the plan was paid for"
        session = re.findall(r"leadline resume (\S+)", said)[-1]
        code, said = at_terminal(one, "resume", session, typed=[(ASKED, "y\n")])
        assert code == 0, said
        assert "Statement 1" in said
        seen = len(one.api.created)
        code, said = at_terminal(
            one,
            "ask",
            session,
            typed=[
                (r"/quit; anything else is a question.*\n> ", "/cost\n"),
                (r"coordinator.*\n> ", "\x1b[A\n"),  # the line before, once more
                (r"coordinator.*\n> ", "/what\n"),
                (r"/findings {2}/cost.*\n> ", "/quit\n"),
            ],
        )
        assert code == 0, said
        assert len(one.api.created) == seen, "no command of the prompt asks a model"
