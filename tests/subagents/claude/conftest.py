from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from subagents.engine import Workspace
from tests.subagents.claude.world import World, make_repository, modules, opened, session_on


@pytest.fixture(scope="session")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_repository(tmp_path_factory.mktemp("repository"), modules(10))


@pytest.fixture(scope="session")
def workspace(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with opened(repository, tmp_path_factory.mktemp("cache")) as made:
        yield made


@pytest.fixture
def here(tmp_path: Path, workspace: Workspace) -> Iterator[World]:
    with session_on(workspace, tmp_path / "state") as made:
        yield made
