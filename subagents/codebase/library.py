"""GitPython on our own view of a repository, where its reading of git's output beats one more parser of ours.

Not for the snapshot itself: importing it costs 0.1 s, its commands take over the caller's environment, and their
output is not bounded. Here the folder it opens is the view, whose configuration is ours, and the environment is set
so that nothing of the caller's decides where or how git reads.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from subagents.codebase.gitrun import Git

if TYPE_CHECKING:
    import git


def library(place: Git) -> git.Repo:
    """The view as a GitPython repository. Read-only use; its commands time out with `kill_after_timeout`."""
    os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")  # a missing git is reported by our own runner
    import git
    from git.db import GitCmdObjectDB

    repository = git.Repo(place.view, odbt=GitCmdObjectDB, search_parent_directories=False, expand_vars=False)
    ours = place.environment()
    theirs = {name: "" for name in os.environ if name.startswith("GIT_") and name not in ours}
    repository.git.update_environment(
        **theirs,
        **ours,
        GIT_COMMON_DIR=str(place.view),
        GIT_OBJECT_DIRECTORY=str(place.view / "objects"),
    )
    return repository
