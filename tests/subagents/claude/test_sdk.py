"""The SDK is imported once, ahead of its use where that can be, and what fails there is told where it is needed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

AHEAD = """
import gc, sys
from subagents.claude.sdk import imported_ahead, import_sdk
with imported_ahead(), imported_ahead():
    try:
        import_sdk()
        print("imported", "anthropic" in sys.modules, gc.isenabled())
    except ImportError as error:
        print("failed", error, gc.isenabled())
"""
LEFT = """
import sys, time
from subagents.claude.sdk import imported_ahead
before = list(sys.meta_path)
with imported_ahead():
    while "part0" not in sys.modules:
        time.sleep(0.01)
print("anthropic" in sys.modules, "part1" in sys.modules, sys.meta_path == before)
"""


def said(folder: Path, package: str, code: str = AHEAD) -> subprocess.CompletedProcess[str]:
    """What that prints where the SDK is this package."""
    (folder / "anthropic.py").write_text(package)
    path = os.pathsep.join([str(folder), str(Path(__file__).parents[3])])
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)


def test_it_is_imported_once_and_garbage_is_not_looked_for_meanwhile(tmp_path: Path) -> None:
    ended = said(tmp_path, "import gc, time\ntime.sleep(0.2)\nprint('importing', gc.isenabled())\n")
    assert (ended.stdout.splitlines(), ended.stderr) == (["importing False", "imported True True"], "")


def test_an_import_that_fails_ahead_is_told_where_the_sdk_is_needed(tmp_path: Path) -> None:
    ended = said(tmp_path, "raise ImportError('half installed')\n")
    assert (ended.stdout.splitlines(), ended.stderr) == (["failed half installed True"], "")


def test_who_leaves_before_it_is_done_does_not_wait_for_the_rest(tmp_path: Path) -> None:
    for n in range(2):
        (tmp_path / f"part{n}.py").write_text("import time\ntime.sleep(0.5)\n")
    ended = said(tmp_path, "import part0, part1\n", LEFT)
    assert (ended.stdout.split(), ended.stderr) == (["False", "False", "True"], "")
