"""Runs the real command line in a real process, with its own state, cache and home."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Leadline:
    """`home` holds state and cache; nothing of the person who runs the tests is seen."""

    home: Path

    @property
    def environment(self) -> dict[str, str]:
        keep = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "TMPDIR") if name in os.environ}
        return {
            **keep,
            "HOME": str(self.home),
            "LEADLINE_STATE_DIR": str(self.home / "state"),
            "LEADLINE_CACHE_DIR": str(self.home / "cache"),
            "PYTHONPATH": str(ROOT),
            "PYTHONWARNINGS": "error",
        }

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "orchestrator", *arguments]

    def run(
        self, *arguments: str, cwd: Path | None = None, timeout: float = 120, extra: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run to the end; output as text."""
        return subprocess.run(
            self.command(*arguments),
            env={**self.environment, **(extra or {})},
            cwd=cwd or self.home,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    def json(self, *arguments: str, code: int = 0, cwd: Path | None = None) -> Any:
        """Run with --json, expect the exit code, parse what was printed."""
        done = self.run(*arguments, "--json", cwd=cwd)
        assert done.returncode == code, f"exit {done.returncode}\n{done.stderr}\n{done.stdout[:2000]}"
        return json.loads(done.stdout)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start and return at once."""
        return subprocess.Popen(
            self.command(*arguments),
            env=self.environment,
            cwd=self.home,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
