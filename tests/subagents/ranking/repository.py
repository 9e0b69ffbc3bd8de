"""A small repository of several languages with a history, and a finder over it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from subagents.codebase.snapshot import open_snapshot
from subagents.index.opening import open_index
from subagents.ranking.finder import RankedFinder, open_finder

FILES = {
    "README.md": "# Ferry\n\nBooks seats on ferries. See the timetable.\n",
    "docs/guide.md": "# Guide\n\nHow the timetable is loaded, and how seats are booked. Timetable timetable.\n",
    "ferry/__init__.py": "from ferry.booking import book\nfrom ferry.timetable import Timetable\n",
    "ferry/booking.py": '''"""Booking of seats."""
from ferry.errors import SeatTaken
from ferry.timetable import Timetable


class Booking:
    """One seat for one passenger."""

    def __init__(self, seat, passenger):
        self.seat = seat
        self.passenger = passenger

    def cancel(self):
        """Give the seat back."""
        self.seat.passenger = None


def book(timetable: Timetable, departure, passenger):
    seat = timetable.free_seat(departure)
    if seat is None:
        raise SeatTaken("no free seat left on this departure")
    return Booking(seat, passenger)
''',
    "ferry/errors.py": '''class SeatTaken(Exception):
    """Somebody else has the seat."""
''',
    "ferry/timetable.py": '''"""Departures by day."""


class Timetable:
    """All departures, read from a file once a day."""

    def __init__(self, departures):
        self.departures = departures

    def free_seat(self, departure):
        # the first one that nobody has booked
        return next((seat for seat in departure.seats if seat.passenger is None), None)

    def reload(self, path):
        """Read the departures again."""
        with open(path) as file:
            self.departures = [parse_departure(line) for line in file]


def parse_departure(line):
    if ";" not in line:
        raise ValueError(f"departure line {line!r} has no semicolon")
    return line.split(";")
''',
    "ferry/weather.py": '''def wind_speed(station):
    """Wind in knots."""
    return station.read()
''',
    "tests/test_timetable.py": """from ferry.timetable import Timetable, parse_departure


def test_timetable_reload_reads_departures_of_the_timetable():
    assert Timetable([]).departures == []
    assert parse_departure("a;b") == ["a", "b"]
""",
    "native/engine.c": """#include "engine.h"

/* Turn the propeller. */
int engine_start(struct engine *e)
{
    if (e->fuel == 0)
        return engine_fail(e, "out of fuel");
    return 0;
}
""",
    "native/engine.h": "struct engine { int fuel; };\nint engine_start(struct engine *e);\n",
    "web/src/router.ts": """export class Router {
  /** Find the page for an address. */
  matchRoute(address: string): string | undefined {
    return undefined;
  }
}
""",
    "settings.toml": "[booking]\nretries = 3\n",
}


def git(folder: Path, *arguments: str) -> None:
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.org",
        "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@example.org",
    }  # fmt: skip
    subprocess.run(["git", "-C", str(folder), *arguments], check=True, env=environment, capture_output=True)


def write(folder: Path, files: Mapping[str, str]) -> None:
    for path, text in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def commit(folder: Path, files: Mapping[str, str], message: str) -> None:
    write(folder, files)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", message)


def make_ferry(folder: Path) -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "-q")
    commit(folder, FILES, "Begin")
    return folder


@contextmanager
def finder_of(folder: Path, cache: Path) -> Iterator[RankedFinder]:
    with open_snapshot(folder) as snapshot, open_index(snapshot, cache, workers=1) as index:
        yield open_finder(snapshot, index, cache)
