from pathlib import Path

import pytest

from manifests.errors import UsageError
from orchestrator.settings import load_settings


def test_environment_names_the_roots(tmp_path: Path) -> None:
    settings = load_settings({"LEADLINE_STATE_DIR": str(tmp_path / "s"), "LEADLINE_CACHE_DIR": str(tmp_path / "c")})
    assert (settings.state_dir, settings.cache_dir) == (tmp_path / "s", tmp_path / "c")
    assert not settings.has_credentials


def test_the_file_gives_limits_and_credentials(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[limits]\nparallel = 2\nmax_minutes = 1.5\n[claude]\nbase_url = "http://127.0.0.1:1"\n')
    settings = load_settings({"LEADLINE_CONFIG": str(file)})
    assert (settings.parallel, settings.max_minutes, settings.has_credentials) == (2, 1.5, True)


@pytest.mark.parametrize(
    "text",
    [
        "[limits]\nmax_cos = 1\n",
        "[limit]\nparallel = 1\n",
        "paralel = 1\n",
        "[limits\n",
        "[limits]\nparallel = 0\n",
        "[limits]\nparallel = 'x'\n",
        "limits = 1\n",
    ],
)
def test_a_wrong_file_is_refused_with_its_name(tmp_path: Path, text: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(text)
    with pytest.raises(UsageError, match=r"config\.toml"):
        load_settings({"LEADLINE_CONFIG": str(file)})


def test_a_missing_file_is_an_error_only_when_it_was_asked_for(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no configuration file"):
        load_settings({"LEADLINE_CONFIG": str(tmp_path / "none.toml")})


def test_a_key_in_the_environment_is_a_credential() -> None:
    assert load_settings({"ANTHROPIC_API_KEY": "x"}).has_credentials
