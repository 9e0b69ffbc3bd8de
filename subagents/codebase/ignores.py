"""Which ignore rules apply beside the `.gitignore` files: the repository's own and those of the person asking.

git runs here without the user's configuration, but what the user never wants to see as new (editor files and the like)
should not make every tree dirty.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from subagents.codebase.gitrun import git_executable
from subagents.codebase.repository import GitPlace


def ignore_files(place: GitPlace) -> list[Path]:
    """Existing files of rules, for `git ls-files -X`."""
    home = Path.home()
    folder = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config") / "git"
    own = _configured(home, [home / ".gitconfig", folder / "config"]) or folder / "ignore"
    return [path for path in (place.common_dir / "info" / "exclude", own) if path.is_file()]


def _configured(home: Path, configurations: list[Path]) -> Path | None:
    """`core.excludesFile` of the user's own configuration, which is asked only when it speaks of one."""
    if not any(path.is_file() and b"excludesfile" in path.read_bytes().lower() for path in configurations):
        return None
    asked = subprocess.run(
        [git_executable(), "config", "--global", "--includes", "--type=path", "--get", "core.excludesFile"],
        capture_output=True,
        stdin=subprocess.DEVNULL,
        cwd=home,
        timeout=20,
        check=False,
    )
    found = asked.stdout.strip()
    return Path(os.fsdecode(found)) if asked.returncode == 0 and found else None
