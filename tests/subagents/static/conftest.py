from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache for all repositories of a module, so that each is indexed once."""
    return tmp_path_factory.mktemp("cache")
