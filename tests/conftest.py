import os
from pathlib import Path

import pytest
from hypothesis import settings

from tests.repositories import make_shop
from tests.running import Leadline

settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("search", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))
"""The suite says the same each time of the same code; HYPOTHESIS_PROFILE=search looks for what it has not met yet."""


@pytest.fixture
def leadline(tmp_path: Path) -> Leadline:
    """The command line with a home of its own."""
    home = tmp_path / "home"
    home.mkdir()
    return Leadline(home)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A tiny real repository."""
    return make_shop(tmp_path / "shop")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--every-step", action="store_true", help="crash tests: every durable step, not a sample")
