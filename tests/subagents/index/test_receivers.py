"""A name alone decides a call only among types that have everything that is called on its receiver."""

from __future__ import annotations

from pathlib import Path

import pytest

from subagents.codebase.snapshot import open_snapshot
from subagents.index.opening import open_index

SITE = """
class Site:
    def login(self, who):
        return who

    def has_right(self, who):
        return True
"""
MAIL = """
class Mail:
    def __init__(self, connection):
        self.connection = connection

    def open(self, who):
        {other}
        self.connection.login(who)
"""


def called_by(folder: Path, cache: Path, name: str) -> list[str]:
    with open_snapshot(folder) as snapshot, open_index(snapshot, cache, extras=()) as index:
        (symbol,) = index.definitions(name)
        return [edge.callee.qualified for edge in index.callees(symbol)]


def write(folder: Path, **files: str) -> Path:
    folder.mkdir()
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    return folder


@pytest.mark.parametrize(
    ("other", "site", "called"),
    [
        ("pass", SITE, ["Site.login"]),
        ("self.connection.has_right(who)", SITE, ["Site.has_right", "Site.login"]),
        ("self.connection.start_tls()", SITE, []),
        ("other.start_tls()", SITE, ["Site.login"]),
        ("self.connection.start_tls()", SITE.replace("Site:", "Site(Unseen):"), ["Site.login"]),
        ("self.connection.start_tls()", SITE + "\n    def __getattr__(self, name):\n        pass\n", ["Site.login"]),
        ("self.connection.start_tls()", SITE.replace("return True", "self.start_tls = who"), ["Site.login"]),
        ("self.connection.check()", "class Base:\n    def check(self): pass\n" + SITE.replace("Site:", "Site(Base):"),
         ["Base.check", "Site.login"]),
    ],
)  # fmt: skip
def test_what_else_is_called_on_it(tmp_path: Path, other: str, site: str, called: list[str]) -> None:
    folder = write(tmp_path / "r", site=site, mail=MAIL.format(other=other))
    assert called_by(folder, tmp_path / "cache", "Mail.open") == called


def test_locals_of_two_functions_are_two_receivers(tmp_path: Path) -> None:
    users = """
def greet(thing):
    thing.start_tls()


def enter(thing):
    thing.login("me")
    thing.has_right("me")
"""
    folder = write(tmp_path / "r", site=SITE, users=users)
    assert called_by(folder, tmp_path / "cache", "enter") == ["Site.login", "Site.has_right"]
