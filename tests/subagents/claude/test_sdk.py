"""The SDK is imported once, ahead of its use where that can be, and what fails there is told where it is needed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

AHEAD = """
import gc, sys, threading
from subagents.claude.sdk import import_ahead, import_sdk
import_ahead()
import_ahead()
try:
    import_sdk()
    print("imported", "anthropic" in sys.modules, gc.isenabled())
except ImportError as error:
    print("failed", error, gc.isenabled())
"""


def said(folder: Path, package: str) -> subprocess.CompletedProcess[str]:
    """What that prints where the SDK is this package."""
    (folder / "anthropic.py").write_text(package)
    path = os.pathsep.join([str(folder), str(Path(__file__).parents[3])])
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run([sys.executable, "-c", AHEAD], env=environment, capture_output=True, text=True, timeout=60)


def test_it_is_imported_once_and_garbage_is_not_looked_for_meanwhile(tmp_path: Path) -> None:
    ended = said(tmp_path, "import gc, time\ntime.sleep(0.2)\nprint('importing', gc.isenabled())\n")
    assert (ended.stdout.splitlines(), ended.stderr) == (["importing False", "imported True True"], "")


def test_an_import_that_fails_ahead_is_told_where_the_sdk_is_needed(tmp_path: Path) -> None:
    ended = said(tmp_path, "raise ImportError('half installed')\n")
    assert (ended.stdout.splitlines(), ended.stderr) == (["failed half installed True"], "")
