"""What was tried against Leadline and what came of it: python -m tests.fault_report [--quick] [--every N] [--out FILE]

Enumerates the durable operations of a run and makes each die, fail or do a part; damages every state file; opens every
hostile repository; plants every kind of secret. Prints counts, and what was lost, run, read or leaked. Exit code 1 if
anything was. docs/reliability.md keeps the output.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from manifests.fileops import install
from tests.faults.calls import Called, call
from tests.faults.damage import damages, make_subject, tried
from tests.faults.faulty import ERRORS, FaultyFileOps, Plan
from tests.faults.places import quick_folder
from tests.faults.secrets import SECRETS, leaks, make_leaky
from tests.hostile import SECRET, TRAPS, Canary, links, odd_names
from tests.orchestrator.claude.lab import QUESTION as LAB_QUESTION
from tests.orchestrator.claude.lab import Lab, assert_ledger_equals_charges, lab, make_works
from tests.repositories import make_shop
from tests.running import ROOT

QUESTION = "How does checkout charge the card?"
FAULTS = ("die_before", "die_after", "die_partial", "partial", *ERRORS)


@dataclass(slots=True)
class Tally:
    """Counts in the order they were made, and everything that should not have happened."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def crashes(tally: Tally, folder: Path, *, step: int) -> None:
    """Each fault at each `step`-th durable operation of a run; afterwards it resumes to the same findings."""
    home, repository = folder / "home", make_shop(folder / "shop")
    home.mkdir()
    arguments = ("explore", str(repository), QUESTION, "--engine", "static", "-q", "--json")
    call("map", str(repository), home=home)
    log = folder / "operations"
    whole = call(*arguments, home=home, before=lambda: install(FaultyFileOps(Plan(fault="none", at=0), log=log)))
    expected = [f["id"] for f in json.loads(whole.out)["findings"]]
    operations = len(log.read_text().splitlines())
    tally.counts["durable operations enumerated"] = operations
    for at in range(1, operations + 1, step):
        for fault in FAULTS:
            shutil.rmtree(home / "state", ignore_errors=True)
            plan = Plan(fault=fault, at=at)  # type: ignore[arg-type]
            done = call(*arguments, home=home, before=lambda plan=plan: install(FaultyFileOps(plan)))  # type: ignore[misc]
            tally.counts["faults injected"] += 1
            tally.wrong += [f"{fault} at {at}: {what}" for what in _after(home, done, expected, tally.counts)]


def _after(home: Path, done: Called, expected: list[str], counts: Counter[str]) -> Iterator[str]:
    if "Traceback" in done.said or done.code not in (0, 1, 2, 3, 4, 5, -9):
        yield f"exit {done.code}: {done.err[-300:]}"
    listed = json.loads(call("sessions", "--json", home=home).out)["sessions"]
    for one in listed:
        if one["status"] not in ("interrupted", "finished", "failed", "stopped"):
            yield f"listed as {one['status']}: {one['detail']}"
        before = call("show", one["session"], "--json", home=home)
        acknowledged = {f["id"] for f in json.loads(before.out)["findings"]} if before.code == 0 else set()
        resumed = call("resume", one["session"], "--json", "-q", home=home)
        found = [f["id"] for f in json.loads(resumed.out)["findings"]] if resumed.code == 0 else []
        counts["sessions resumed"] += 1
        if found != expected or not acknowledged <= set(found):
            yield f"resumed to exit {resumed.code}, {len(found)} of {len(expected)} findings: {resumed.err[-200:]}"
        doctor = call("doctor", one["session"], home=home)
        if doctor.code != 0:
            yield f"doctor afterwards: {doctor.out[:300]}"


def crashes_with_model(tally: Tally, folder: Path, *, step: int) -> None:
    """The same of a run with a model, which a fresh fake plays each time: what is paid for is entered, too."""
    import anthropic  # noqa: F401 - once here, not in each child

    works, home, log = make_works(folder / "works"), folder / "home", folder / "operations"
    home.mkdir()
    call("map", str(works), home=home)
    whole = _with_model(home, works, FaultyFileOps(Plan(fault="none", at=0), log=log), lambda one, extra, done: [])
    tally.wrong += [f"undisturbed, with a model: {what}" for what in whole]
    operations = len(log.read_text().splitlines())
    tally.counts["the same, with a model"] = operations
    for number, at in enumerate(range(1, operations + 1, step)):
        fault = FAULTS[number % len(FAULTS)]
        plan = Plan(fault=fault, at=at)  # type: ignore[arg-type]
        tally.counts["faults injected, with a model"] += 1
        wrong = _with_model(
            home, works, FaultyFileOps(plan), lambda one, extra, done: _after_with_model(one, extra, done, tally.counts)
        )
        tally.wrong += [f"with a model, {fault} at {at}: {what}" for what in wrong]


def _with_model(
    home: Path,
    works: Path,
    operations: FaultyFileOps,
    after: Callable[[Lab, Mapping[str, str], Called], Iterable[str]],
) -> list[str]:
    shutil.rmtree(home / "state", ignore_errors=True)
    with lab(home) as one:
        assert one.api is not None
        extra = {**one.api.env, "LEADLINE_CONFIG": str(home / "config.toml")}
        arguments = ("explore", str(works), LAB_QUESTION, "--engine", "claude", "-q", "--json")
        done = call(*arguments, home=home, extra=extra, before=lambda: install(operations))
        return [*after(one, extra, done), *(f"refused by the API: {problem}" for problem in one.api.problems)]


def _after_with_model(one: Lab, extra: Mapping[str, str], done: Called, counts: Counter[str]) -> Iterator[str]:
    if "Traceback" in done.said or done.code not in (0, 1, 2, 3, 4, 5, -9):
        yield f"exit {done.code}: {done.err[-300:]}"
    for listed in json.loads(call("sessions", "--json", home=one.home).out)["sessions"]:
        name = listed["session"]
        if listed["status"] not in ("interrupted", "finished", "failed", "stopped"):
            yield f"listed as {listed['status']}: {listed['detail']}"
        before = call("show", name, "--json", home=one.home)
        acknowledged = {f["id"] for f in json.loads(before.out)["findings"]} if before.code == 0 else set()
        resumed = call("resume", name, "--json", "-q", home=one.home, extra=extra)
        counts["sessions resumed, with a model"] += 1
        if resumed.code != 0:
            yield f"resumed to exit {resumed.code}: {resumed.err[-200:]}"
            continue
        found = [f["id"] for f in json.loads(resumed.out)["findings"]]
        if len(found) != len(set(found)) or not acknowledged <= set(found):
            yield f"{len(acknowledged - set(found))} findings were lost"
        try:
            assert one.api is not None
            assert_ledger_equals_charges(one.entries(name), one.api.ledger)
        except AssertionError as error:
            yield f"charges: {str(error)[:300]}"
        doctor = call("doctor", name, home=one.home)
        if doctor.code != 0:
            yield f"doctor afterwards: {doctor.out[:300]}"


def damaged(tally: Tally, folder: Path, *, flips: int, cuts: int, step: int) -> None:
    """Every kind of damage to every state file of a finished session."""
    subject = make_subject(folder / "home", make_shop(folder / "shop"))
    for damage in list(damages(subject.folder, flips=flips, cuts=cuts))[::step]:
        tally.counts["damaged files tried"] += 1
        tally.wrong += tried(subject, damage, folder / "work")


def hostile(tally: Tally, folder: Path) -> None:
    """Explore, map and search every hostile repository; no canary dies, nothing from outside is seen."""
    builders: dict[str, Callable[[Path, Canary], Path]] = {name: trap.build for name, trap in TRAPS.items()}
    builders["odd names"] = lambda at, _: odd_names(at)
    builders["links"] = lambda at, _: links(at)
    for number, (name, build) in enumerate(builders.items()):
        place = folder / str(number)
        home = place / "home"
        home.mkdir(parents=True)
        canary = Canary(place / "canary")
        repository = build(place / "repository", canary)
        canary.revive()
        tally.counts["hostile repositories tried"] += 1
        said = ""
        for arguments in (
            ("explore", str(repository), "What does main call, and where is LIMIT?", "-q"),
            ("map", str(repository)),
            ("find", str(repository), "LIMIT helper secret"),
        ):
            done = call(*arguments, home=home, extra={"PATH": f".:{os.environ['PATH']}"})
            said += done.said
            if "Traceback" in done.said or done.code not in (0, 2, 3, 4):
                tally.wrong.append(f"{name}, {arguments[0]}: exit {done.code}: {done.err[-300:]}")
        if canary.runs():
            tally.wrong.append(f"{name}: RAN {canary.runs()[:200]}")
        kept = b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file() and not path.is_symlink())
        if SECRET in said or SECRET.encode() in kept:
            tally.wrong.append(f"{name}: READ what is outside of the repository")
        if any(ord(c) < 32 and c not in "\n\t" for c in said):
            tally.wrong.append(f"{name}: a control character reached the terminal")


def secrets(tally: Tally, folder: Path) -> None:
    """Plant every kind of secret in code, comments, documentation, commit messages, question and environment."""
    home, repository = folder / "home", make_leaky(folder / "leaky")
    home.mkdir()
    tally.counts["kinds of secrets planted"] = len(SECRETS)
    questions = ("How does connect use the credentials?", f"Where is {SECRETS['github_token']} sent?")
    said = ""
    for question in questions:
        done = call("explore", str(repository), question, "--engine", "static", "--json", home=home, extra=_KEY)
        said += done.said
        tally.counts["citations that still verify"] += sum(
            len(f["citations"]) for f in json.loads(done.out)["findings"] if f["status"] == "verified"
        )
        if any(f["status"] == "stale" for f in json.loads(done.out)["findings"]):
            tally.wrong.append("redaction broke a citation")
    for session in (home / "state").glob("*/*"):
        said += "".join(call(*words, home=home, extra=_KEY).said for words in _looks(session.name))
    said += call("map", str(repository), home=home, extra=_KEY).said
    said += call("find", str(repository), SECRETS["slack_token"], home=home, extra=_KEY).said
    tally.wrong += [f"LEAKED to the terminal: {kind}" for kind in leaks(said.encode())]
    for path in sorted((home / "state").rglob("*")):
        if path.is_file() and "snapshot.git" not in path.parts:
            tally.counts["state files searched for secrets"] += 1
            tally.wrong += [f"LEAKED into {path.name}: {kind}" for kind in leaks(path.read_bytes())]


_KEY = {"ANTHROPIC_API_KEY": SECRETS["anthropic_key"]}


def _looks(session: str) -> tuple[tuple[str, ...], ...]:
    return (("show", session), ("show", session, "--findings", "--json"), ("resume", session), ("doctor", session))


@contextmanager
def _place() -> Iterator[Path]:
    with quick_folder() as folder:
        yield folder


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="tests.fault_report", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a sample: two minutes or so instead of an hour")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="each N-th operation and damage only")
    parser.add_argument("--out", type=Path, help="write the report there as well")
    options = parser.parse_args(arguments)
    tally, commit, started = Tally(), _commit(), time.monotonic()
    parts: tuple[Callable[[Path], None], ...] = (
        lambda folder: crashes(tally, folder, step=40 if options.quick else options.every),
        lambda folder: crashes_with_model(tally, folder, step=40 if options.quick else options.every),
        lambda folder: damaged(
            tally,
            folder,
            flips=1 if options.quick else 8,
            cuts=1 if options.quick else 3,
            step=8 if options.quick else options.every,
        ),
        lambda folder: hostile(tally, folder),
        lambda folder: secrets(tally, folder),
    )
    for part in parts:
        with _place() as folder:
            part(folder)
    text = _text(tally, commit, time.monotonic() - started, sample=options.quick or options.every > 1)
    print(text, end="")
    if options.out is not None:
        options.out.write_text(text)
    return 1 if tally.wrong else 0


def _commit() -> str:
    """What is checked out when the run begins; short, and marked if the working tree differs."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def _text(tally: Tally, commit: str, seconds: float, *, sample: bool) -> str:
    head = f"{time.strftime('%Y-%m-%d', time.gmtime())}, commit {commit}, Python {platform.python_version()}"
    lines = [f"{head}, {'a sample' if sample else 'all'}, {seconds:.0f} s", ""]
    lines += [f"{what:36} {n:>7,}" for what, n in tally.counts.items()]
    lines += ["", f"{'lost, run, read or leaked':36} {len(tally.wrong) or 'nothing':>7}"]
    return "\n".join([*lines, *(f"  {what}" for what in tally.wrong)]) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
