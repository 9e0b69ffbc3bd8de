"""The real command line in a forked child: as a process of its own, without paying for its start each time."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

TOO_LONG_S = 60


@dataclass(frozen=True, slots=True)
class Called:
    """`code` is minus the signal for a child that one killed."""

    code: int
    out: str
    err: str

    @property
    def said(self) -> str:
        return self.out + self.err


def call(
    *arguments: str,
    home: Path,
    extra: Mapping[str, str] | None = None,
    memory: int = 0,
    before: Callable[[], object] = lambda: None,
) -> Called:
    """Run `leadline ARGUMENTS` with its state and cache in `home`, `before` first.

    `memory`: so many bytes of address space on top of what the test has.
    """
    with tempfile.TemporaryDirectory(dir=home) as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        sys.stdout.flush()
        sys.stderr.flush()
        child = os.fork()
        if child == 0:
            code = 70
            try:
                before()
                code = _child(arguments, home, out, err, extra or {}, memory)
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        return Called(code, out.read_text(errors="replace"), err.read_text(errors="replace"))


def _child(arguments: tuple[str, ...], home: Path, out: Path, err: Path, extra: Mapping[str, str], memory: int) -> int:
    signal.alarm(TOO_LONG_S)  # a hang ends, and shows as such
    for number, path in ((1, out), (2, err)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), number)
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", closefd=False)
    for name in [*os.environ]:
        if name.startswith(("ANTHROPIC_", "LEADLINE_")):
            del os.environ[name]
    own = {"HOME": str(home), "LEADLINE_STATE_DIR": str(home / "state"), "LEADLINE_CACHE_DIR": str(home / "cache")}
    os.environ.update({**own, **extra})
    if memory:
        import resource

        used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (used + memory, used + memory))
    from orchestrator.main import run

    code = run(list(arguments))
    sys.stdout.flush()
    sys.stderr.flush()
    return code
