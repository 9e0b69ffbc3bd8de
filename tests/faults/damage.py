"""What can become of state files, and what the commands make of it.

Of each damage it is asked that no command ends in a traceback or hangs, that `doctor` names it, and that `show` and
`resume` either refuse or print exactly what they print of the sound session: damaged content never passes for content.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import orjson

from manifests.envelope import Owner, Schema, seal
from manifests.jsonl import AppendLog
from tests.faults.calls import Called, call

MEMORY = 700 << 20
"""Bytes that a command may take on top; a file of gigabytes must not be loaded."""
Change = Callable[[Path, Path], None]
"""Damages the file; the second path is the same file of another session."""


@dataclass(frozen=True, slots=True)
class Damage:
    """`harmless`: what a crash can leave, so that it need not be called damage."""

    name: str
    file: str
    change: Change
    harmless: bool = False


@dataclass(frozen=True, slots=True)
class Subject:
    """Two finished sessions about one repository, and what is printed of the first when it is sound."""

    home: Path
    folder: Path
    other: Path
    shown: str
    resumed: str

    @property
    def session(self) -> str:
        return self.folder.name


def make_subject(home: Path, repository: Path) -> Subject:
    """Explore twice."""
    home.mkdir(parents=True, exist_ok=True)
    for question in ("How does checkout charge the card?", "How does checkout ship the parcel?"):
        done = call("explore", str(repository), question, "--engine", "static", "-q", home=home)
        assert done.code == 0, done.said
    first, second = sorted((home / "state").glob("*/*"), key=lambda path: (path / "manifest.json").stat().st_mtime_ns)
    shown = call("show", first.name, "--json", home=home)
    resumed = call("resume", first.name, "--json", "-q", home=home)
    assert (shown.code, resumed.code) == (0, 0), resumed.said
    return Subject(home, first, second, shown.out, resumed.out)


def files_of(folder: Path) -> list[str]:
    """State files by their names inside the session, the lock and the frozen tree apart."""
    found = (path.relative_to(folder) for path in sorted(folder.rglob("*")) if path.is_file())
    return [path.as_posix() for path in found if path.parts[0] not in ("snapshot.git", "lock")]


# --- kinds of damage -----------------------------------------------------------------------------------------------


def _flipped(at: int, bit: int) -> Change:
    def change(path: Path, _: Path) -> None:
        data = bytearray(path.read_bytes())
        data[at] ^= 1 << bit
        path.write_bytes(data)

    return change


def _cut(at: int) -> Change:
    return lambda path, _: os.truncate(path, at)


def _copied(path: Path, other: Path) -> None:
    shutil.copyfile(other, path)


def _versioned(version: int) -> Change:
    """The same content, sealed by a program that writes another version of the format."""

    def change(path: Path, _: Path) -> None:
        if path.suffix == ".json":
            document = orjson.loads(path.read_bytes())
            owner = Owner(session=document["session"], repository=document["repository"])
            path.write_bytes(
                seal(document["body"], schema=Schema(name=document["schema"], version=version), owner=owner)
            )
            return
        lines = [orjson.loads(line) for line in path.read_bytes().splitlines()]
        head = lines[0]["body"]
        path.unlink()
        owner = Owner(session=head["session"], repository=head["repository"])
        log = AppendLog(
            path, schema=Schema(name=head["schema"], version=version), owner=owner, redact=lambda body: body
        )
        for line in lines[1:]:
            log.append(line["body"], sync=False)
        log.close()

    return change


def _gigabytes(path: Path, _: Path) -> None:
    os.truncate(path, 3 << 30)  # sparse: one line of zeros without end


def _deep(path: Path, _: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1] + b'{"a":' * 200_000 + b"\n")


def _doubled_lines(path: Path, _: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], *lines[1:]]))


def _line_missing(path: Path, _: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], *lines[2:]]))


def _last_line_missing(path: Path, _: Path) -> None:
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))


def _emptied(path: Path, _: Path) -> None:
    path.write_bytes(b"")


def _gone(path: Path, _: Path) -> None:
    path.unlink()


def _linked(path: Path, other: Path) -> None:
    path.unlink()
    path.symlink_to(other)


def _opened_to_all(path: Path, _: Path) -> None:
    path.chmod(0o666)


def _folder(path: Path, _: Path) -> None:
    path.unlink()
    path.mkdir(0o700)


def _pipe(path: Path, _: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o600)


WHOLE: dict[str, Change] = {
    "another session's": _copied,
    "older version": _versioned(0),
    "newer version": _versioned(9),
    "3 GB": _gigabytes,
    "deeply nested": _deep,
    "emptied": _emptied,
    "gone": _gone,
    "a link": _linked,
    "open to all": _opened_to_all,
    "a folder": _folder,
    "a pipe": _pipe,
}
LINES: dict[str, Change] = {
    "line doubled": _doubled_lines,
    "line missing": _line_missing,
    "last line missing": _last_line_missing,
}


def damages(folder: Path, *, flips: int, cuts: int, seed: int = 1) -> Iterator[Damage]:
    """`flips` and `cuts` are so many places in each file, spread at random."""
    chance = random.Random(seed)
    for name in files_of(folder):
        size = (folder / name).stat().st_size
        logs = name.endswith(".jsonl")
        for at in chance.sample(range(size), min(flips, size)):
            yield Damage(f"bit of byte {at} flipped", name, _flipped(at, chance.randrange(8)))
        newlines = {0} | {n + 1 for n, byte in enumerate((folder / name).read_bytes()) if byte == 10}
        for at in chance.sample(range(1, size), min(cuts, size - 1)):
            torn = name == "journal.jsonl" and at > max(newlines - {size})
            yield Damage(f"cut at {at}", name, _cut(at), harmless=torn)
        for what, change in WHOLE.items():
            if name == "answer.md" and "version" in what:
                continue
            yield Damage(what, name, change)
        if logs:
            for what, change in LINES.items():
                yield Damage(what, name, change, harmless=name == "journal.jsonl" and "last" in what)


# --- trying ----------------------------------------------------------------------------------------------------------


def tried(subject: Subject, damage: Damage, work: Path) -> list[str]:
    """Damage a copy, run the commands, and say what is wrong with what they did."""
    if work.exists():
        shutil.rmtree(work)
    shutil.copytree(subject.home / "state", work / "state", symlinks=True)
    (work / "cache").symlink_to(subject.home / "cache")
    relative = subject.folder.relative_to(subject.home)
    path = work / relative / damage.file
    other = _counterpart(subject, work, damage.file)
    damage.change(path, other)
    session = subject.session
    listed = call("sessions", home=work, memory=MEMORY)
    shown = call("show", session, "--json", home=work, memory=MEMORY)
    doctor = call("doctor", session, home=work, memory=MEMORY)
    resumed = call("resume", session, "--json", "-q", home=work, memory=MEMORY)
    wrong: list[str] = []
    for name, done in (("sessions", listed), ("show", shown), ("doctor", doctor), ("resume", resumed)):
        wrong += [f"{name}: {problem}" for problem in _misbehaved(done)]
    if listed.code != 0 or session not in listed.out:
        wrong.append(f"sessions: exit {listed.code}, does not list it")
    if doctor.code != 3 and not damage.harmless:
        wrong.append(f"doctor: exit {doctor.code}: {doctor.out[:300]}")
    if shown.code == 0 and shown.out != subject.shown:
        wrong.append("show: shows something else")
    if resumed.code == 0 and resumed.out != subject.resumed:
        wrong.append("resume: reports something else")
    return [f"{damage.file}, {damage.name}: {problem}" for problem in wrong]


def _counterpart(subject: Subject, work: Path, name: str) -> Path:
    """The same file of the other session, or one like it where tasks differ."""
    other = work / subject.other.relative_to(subject.home)
    if (other / name).exists():
        return other / name
    return sorted((other / name).parent.glob("*" + Path(name).suffix))[0]


def _misbehaved(done: Called) -> Iterator[str]:
    if "Traceback" in done.said:
        yield f"traceback: {done.err[-300:]}"
    if done.code not in (0, 2, 3):
        yield f"exit {done.code}: {done.err[-300:]}"
    if not done.said.strip():
        yield "says nothing"
    if done.code != 0 and len(done.err.splitlines()) > 3:
        yield f"{len(done.err.splitlines())} lines of error"
