"""The main job through the real command line on a real repository."""

import hashlib
import json
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.repositories import git, write
from tests.running import ROOT, Leadline

QUESTION = "How does checkout charge the card and ship the parcel?"


def valid(document: Any, schema: str) -> Any:
    Draft202012Validator(json.loads((ROOT / "docs" / "schemas" / f"{schema}.schema.json").read_text())).validate(
        document
    )
    return document


def assert_every_citation_holds(document: Any, repo: Path) -> None:
    """Checked here with git alone: the blob has these lines."""
    assert document["findings"]
    for finding in document["findings"]:
        for c in finding["citations"]:
            assert git(repo, "rev-parse", f"{document['snapshot']['tree']}:{c['path']}") == c["blob"]
            lines = subprocess.run(
                ["git", "-C", str(repo), "cat-file", "blob", c["blob"]], capture_output=True, check=True
            ).stdout.decode()
            assert "\n".join(lines.split("\n")[c["start"] - 1 : c["end"]]) == c["quote"]


def test_an_answer_names_the_chain_and_every_citation_holds(leadline: Leadline, shop: Path) -> None:
    got = valid(leadline.json("explore", str(shop), QUESTION, "--engine", "static"), "explore")
    assert got["status"] == "answered"
    assert got["snapshot"] == {
        "kind": "git",
        "commit": git(shop, "rev-parse", "HEAD"),
        "tree": git(shop, "rev-parse", "HEAD^{tree}"),
        "dirty": False,
    }
    assert_every_citation_holds(got, shop)
    known = {f["id"] for f in got["findings"]}
    assert got["answer"]["statements"]
    for statement in got["answer"]["statements"]:
        assert set(statement["findings"]) <= known
    text = got["answer"]["markdown"]
    for name in ("checkout", "charge", "ship"):
        assert name in text
    assert re.search(r"shop/orders\.py:\d+", text)
    assert got["coverage"]["files_total"] == 8
    assert {t["status"] for t in got["tasks"]} == {"finished"}


def test_the_printed_answer_is_markdown_with_coverage_snapshot_and_session(leadline: Leadline, shop: Path) -> None:
    done = leadline.run("explore", str(shop), QUESTION)
    assert done.returncode == 0, done.stderr
    assert "engine static: no credentials are configured" in done.stderr
    assert "**Coverage.**" in done.stdout
    assert git(shop, "rev-parse", "HEAD")[:12] in done.stdout
    assert "no model took part" in done.stdout.lower()
    assert "Traceback" not in done.stderr


def test_the_same_question_twice_gives_the_same_findings(leadline: Leadline, shop: Path) -> None:
    one = leadline.json("explore", str(shop), QUESTION)
    two = leadline.json("explore", str(shop), QUESTION)
    assert [f["id"] for f in one["findings"]] == [f["id"] for f in two["findings"]]
    assert one["answer"] == two["answer"]
    assert one["session"] != two["session"]


def test_a_dirty_tree_is_frozen_without_touching_the_repository(leadline: Leadline, shop: Path) -> None:
    write(shop, {"shop/refunds.py": "def refund_parcel(order):\n    '''Give the money back.'''\n    return order\n"})
    before = _fingerprint(shop)
    got = valid(leadline.json("explore", str(shop), "Where is refund_parcel defined?"), "explore")
    assert got["snapshot"]["dirty"] is True
    assert any(c["path"] == "shop/refunds.py" for f in got["findings"] for c in f["citations"])
    assert _fingerprint(shop) == before


def _fingerprint(folder: Path) -> dict[str, str]:
    return {
        str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest()
        for p in sorted(folder.rglob("*"))
        if p.is_file()
    }


def test_an_unanswerable_question_is_said_to_be_such(leadline: Leadline, shop: Path) -> None:
    got = valid(leadline.json("explore", str(shop), "Where is the zygomorphic quuxifier?"), "explore")
    assert got["status"] == "not_found"
    assert got["answer"]["found"] is False


def test_a_plain_folder_works_and_a_scope_restricts(leadline: Leadline, tmp_path: Path) -> None:
    folder = tmp_path / "plain"
    write(
        folder, {"a/one.py": "def alpha():\n    return beta()\n\n\ndef beta():\n    return 1\n", "b/two.py": "x = 1\n"}
    )
    got = valid(leadline.json("explore", str(folder), "How does alpha work?", "--scope", "a"), "explore")
    assert got["snapshot"]["kind"] == "folder"
    assert got["coverage"]["files_total"] == 1
    assert {c["path"] for f in got["findings"] for c in f["citations"]} == {"a/one.py"}


def test_find_and_map_print_valid_documents(leadline: Leadline, shop: Path) -> None:
    found = valid(leadline.json("find", str(shop), "charge the card"), "find")
    assert found["results"][0]["path"] in ("shop/orders.py", "shop/payment.py")
    brief = valid(leadline.json("map", str(shop)), "map")
    assert any(e["target"] == "shop.cli:main" for e in brief["entry_points"])


# --- interrupting and resuming -----------------------------------------------------------------------------------


def test_killed_while_it_runs_it_resumes_to_the_same_findings(leadline: Leadline, shop: Path) -> None:
    whole = leadline.json("explore", str(shop), QUESTION)
    process = leadline.start("explore", str(shop), QUESTION, "--engine", "static", "--quiet")
    _wait_for_manifest(leadline, whole["session"])
    process.kill()
    assert process.wait() == -signal.SIGKILL
    process.communicate()
    listed = valid(leadline.json("sessions"), "sessions")["sessions"]
    assert sorted(s["status"] for s in listed) == ["finished", "interrupted"]
    got = valid(leadline.json("resume", cwd=shop), "explore")
    assert got["session"] != whole["session"]
    assert [f["id"] for f in got["findings"]] == [f["id"] for f in whole["findings"]]
    assert got["answer"] == whole["answer"]


def _wait_for_manifest(leadline: Leadline, *known: str, seconds: float = 60) -> str:
    """Id of a session that is none of the known ones, as soon as it can be resumed."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for path in (leadline.home / "state").glob("*/*/manifest.json"):
            if path.parent.name not in known:
                return path.parent.name
        time.sleep(0.005)
    raise AssertionError("no session appeared")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_saves_state_prints_the_resume_command_and_exits_130(
    leadline: Leadline, shop: Path, number: signal.Signals
) -> None:
    process = leadline.start("explore", str(shop), QUESTION, "--engine", "static", "--quiet")
    _wait_for_manifest(leadline)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "leadline resume " in err
    assert "Traceback" not in err
    session = err.rpartition("leadline resume ")[2].strip()
    assert valid(leadline.json("resume", session), "explore")["status"] == "answered"


def test_a_finished_session_is_shown_again_without_running(leadline: Leadline, shop: Path) -> None:
    got = leadline.json("explore", str(shop), QUESTION)
    assert valid(leadline.json("show", got["session"]), "explore") == got
    assert leadline.json("resume", got["session"]) == got


def test_head_may_move_and_resume_says_so_and_stays(leadline: Leadline, shop: Path) -> None:
    first = leadline.json("explore", str(shop), QUESTION, "--max-agents", "1", code=5)
    assert first["status"] == "partial"
    pinned = first["snapshot"]["commit"]
    write(shop, {"shop/orders.py": "x = 1\n"})
    git(shop, "commit", "-qam", "Break it")
    done = leadline.run("resume", "--json", "--max-agents", "40", cwd=shop)
    assert done.returncode == 0, done.stderr
    assert "HEAD has moved" in done.stderr
    got = valid(json.loads(done.stdout), "explore")
    assert got["snapshot"]["commit"] == pinned
    assert got["status"] == "answered"
    assert_every_citation_holds(got, shop)


def test_a_limit_gives_a_partial_answer_that_resumes(leadline: Leadline, shop: Path) -> None:
    got = valid(leadline.json("explore", str(shop), QUESTION, "--max-agents", "2", code=5), "explore")
    assert got["status"] == "partial"
    assert "Not answered yet: the limit on subagents was reached" in got["answer"]["markdown"]
    assert "Not found" not in got["answer"]["markdown"]
    again = leadline.run("resume", got["session"])
    assert again.returncode == 5, "a limit holds until another is given"
    assert f"`leadline resume {got['session']} --max-agents N` with a higher limit goes on" in again.stdout
    assert [t["id"] for t in leadline.json("show", got["session"], "--tasks")["tasks"]] == [
        t["id"] for t in got["tasks"]
    ]
    done = leadline.json("resume", got["session"], "--max-agents", "60")
    assert done["status"] == "answered"
    finished = {t["id"]: t["attempts"] for t in got["tasks"] if t["status"] == "finished"}
    assert finished
    assert all(t["attempts"] == finished[t["id"]] for t in done["tasks"] if t["id"] in finished)


def test_sessions_tells_live_interrupted_finished_and_damaged_apart(leadline: Leadline, shop: Path) -> None:
    finished = leadline.json("explore", str(shop), QUESTION)["session"]
    damaged = leadline.json("explore", str(shop), QUESTION)["session"]
    (manifest,) = (leadline.home / "state").glob(f"*/{damaged}/manifest.json")
    data = bytearray(manifest.read_bytes())
    data[len(data) // 2] ^= 1
    manifest.write_bytes(data)
    partial = leadline.json("explore", str(shop), QUESTION, "--max-agents", "1", code=5)["session"]
    process = leadline.start("explore", str(shop), QUESTION, "--quiet")
    live = _wait_for_manifest(leadline, finished, damaged, partial)
    process.send_signal(signal.SIGSTOP)
    try:
        listed = {s["session"]: s["status"] for s in leadline.json("sessions")["sessions"]}
    finally:
        process.kill()
        process.communicate()
    assert listed == {finished: "finished", damaged: "damaged", partial: "stopped", live: "live"}
    assert {s["session"]: s["status"] for s in leadline.json("sessions")["sessions"]}[live] == "interrupted"
    refused = leadline.run("show", damaged)
    assert (refused.returncode, "damaged" in refused.stderr) == (3, True)


# --- bad input ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["explore", "/nonexistent", "q"], 2, "there is no"),
        (["explore", "{shop}", "  "], 2, "question is empty"),
        (["explore", "", "q"], 2, "empty"),
        (["explore", "{shop}", "what is it?"], 2, "names nothing"),
        (["explore", "{shop}", "q", "--scope", "../.."], 2, "scope"),
        (["explore", "{shop}", "q", "--scope", "nowhere"], 2, "nowhere"),
        (["resume", "20200101-000000-00000000"], 2, "20200101"),
        (["explore", "{shop}", "q", "--max-minutes", "nan"], 2, "no amount"),
        (["explore", "{shop}", "checkout", "--engine", "claude"], 2, "no credentials"),
        (["show", "nosuch"], 2, "nosuch"),
        (["show", "nosuch", "--turn", "1"], 2, "--context"),
        (["show", "nosuch", "--cost", "--context", "t"], 2, "one of them"),
        (["evidence", "sha256:00"], 2, "no evidence"),
        (["find", "{shop}"], 2, "query"),
        (["find", "{shop}", ""], 2, "empty"),
        (["clean"], 2, "nothing named"),
        (["frobnicate"], 2, "frobnicate"),
    ],
)
def test_bad_input_is_one_line_with_what_to_do(
    leadline: Leadline, shop: Path, arguments: list[str], code: int, says: str
) -> None:
    done = leadline.run(*(a.format(shop=shop) for a in arguments))
    assert done.returncode == code, done.stderr
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert "index" not in done.stderr, "refused before any work"
    assert done.stdout == ""
    assert not list((leadline.home / "state").glob("*/*/manifest.json"))


def test_a_state_folder_that_cannot_be_written_is_named(leadline: Leadline, shop: Path) -> None:
    blocked = leadline.home / "file"
    blocked.write_text("")
    done = leadline.run("explore", str(shop), "q", extra={"LEADLINE_STATE_DIR": str(blocked / "state")})
    assert done.returncode == 3, done.stderr
    assert str(blocked) in done.stderr
    assert "Traceback" not in done.stderr


def test_a_state_folder_that_is_a_file_or_cannot_be_made_is_said_to_be_so(leadline: Leadline, shop: Path) -> None:
    (leadline.home / "file").write_text("")
    done = leadline.run("sessions", extra={"LEADLINE_STATE_DIR": str(leadline.home / "file")})
    assert (done.returncode, done.stdout) == (3, "")
    assert "is no folder" in done.stderr
    done = leadline.run("explore", str(shop), "checkout", extra={"LEADLINE_STATE_DIR": "/proc/nowhere"})
    assert done.returncode == 3
    assert "point LEADLINE_STATE_DIR at a folder" in done.stderr


def test_a_git_that_does_not_work_is_named_rather_than_the_repository(leadline: Leadline, shop: Path) -> None:
    folder = leadline.home / "bin"
    folder.mkdir()
    (folder / "git").write_text("#!/bin/sh\nexit 1\n")
    (folder / "git").chmod(0o755)
    done = leadline.run("find", str(shop), "checkout", extra={"PATH": f"{folder}:/usr/bin:/bin"})
    assert done.returncode == 2
    assert "install git" in done.stderr


def test_no_git_is_one_line(leadline: Leadline, shop: Path) -> None:
    done = leadline.run("explore", str(shop), "q", extra={"PATH": str(leadline.home)})
    assert done.returncode in (2, 4), done.stderr
    assert "git" in done.stderr
    assert "Traceback" not in done.stderr
