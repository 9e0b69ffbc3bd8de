"""The one way git is started here.

The explored repository is hostile: its configuration may name commands (fsmonitor, filters, textconv, pagers, hooks,
credential helpers, aliases, remotes with helpers, includes). So git never sees that configuration at all. Each command
runs in a *view*: a bare repository folder of our own, with a configuration written by us, that borrows objects, index
and working tree of the explored repository by environment variables. What would be dangerous is also switched off by
options, so that neither measure rests on the other.
"""

from __future__ import annotations

import os
import re
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Literal

from manifests.errors import EngineError, UsageError

ObjectFormat = Literal["sha1", "sha256"]

MINIMUM_GIT = (2, 25)
GIT_TIMEOUT_S = 120.0
GIT_OUTPUT_BYTES = 256 * 1024 * 1024
MEMORY_BYTES = 2 * 1024 * 1024 * 1024
_MESSAGE_CHARS = 300

OPTIONS = (
    "--no-optional-locks",
    "--no-replace-objects",
    "--literal-pathspecs",
    "--no-pager",
    "-c", "core.fsmonitor=false",
    "-c", "core.untrackedCache=false",
    "-c", "core.hooksPath=/dev/null",
    "-c", "core.pager=cat",
    "-c", "core.sshCommand=false",
    "-c", "core.askPass=false",
    "-c", "core.attributesFile=/dev/null",
    "-c", "core.quotePath=false",
    "-c", "core.precomposeUnicode=false",
    "-c", "credential.helper=",
    "-c", "diff.external=",
    "-c", "protocol.allow=never",
    "-c", "submodule.recurse=false",
    "-c", "gc.auto=0",
    "-c", "maintenance.auto=false",
    "-c", "log.showSignature=false",
    "-c", "i18n.logOutputEncoding=UTF-8",
)  # fmt: skip

_ENVIRONMENT = {
    "LC_ALL": "C",
    "LANGUAGE": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "false",
    "SSH_ASKPASS": "false",
    "GIT_SSH_COMMAND": "false",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_PROTOCOL_FROM_USER": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_PAGER": "cat",
}


class GitFailed(Exception):
    """git ended with an error code. Internal: callers turn it into something a person can act on."""

    def __init__(self, command: str, code: int, message: str) -> None:
        super().__init__(f"git {command}: exit code {code}: {message}")
        self.command = command
        self.code = code
        self.message = message


class OutputTooLarge(GitFailed):
    """git wrote more than it may, e.g. for a tree built to explode when it is listed."""


class GitTimeout(GitFailed):
    """git did not end in time."""


@cache
def git_executable() -> str:
    found = shutil.which("git", path=search_path())
    if found is None:
        raise UsageError("git was not found on PATH", hint=f"install git {_dotted(MINIMUM_GIT)} or newer")
    return found


def search_path() -> str:
    """PATH without relative entries: `.` would find programs in the explored repository."""
    entries = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(entry for entry in entries if Path(entry).is_absolute())


def _dotted(version: Sequence[int]) -> str:
    return ".".join(map(str, version))


def base_environment(home: Path) -> dict[str, str]:
    """What every program we start sees: a path, a harmless home and the switches above; nothing of the caller's."""
    return {"PATH": search_path(), "HOME": str(home), "XDG_CONFIG_HOME": str(home), **_ENVIRONMENT}


def check_version() -> None:
    """Raise UsageError when git is older than what our commands need. Called when a command failed, not before."""
    done = subprocess.run(
        [git_executable(), "version"], capture_output=True, timeout=20, check=False, stdin=subprocess.DEVNULL
    )
    found = re.search(rb"(\d+)\.(\d+)", done.stdout)
    if found is None:
        raise UsageError("`git version` gives no version", hint=f"install git {_dotted(MINIMUM_GIT)} or newer")
    version = (int(found[1]), int(found[2]))
    if version < MINIMUM_GIT:
        raise UsageError(f"git {_dotted(version)} is too old", hint=f"install git {_dotted(MINIMUM_GIT)} or newer")


def check_version_once(cache: Path | None) -> None:
    """The same, asked again only when the program has changed since it was last found new enough.

    Old versions stumble over our options, and are asked then; this is for what takes them and does something else.
    """
    program = Path(git_executable())
    if cache is None:
        return
    file = cache / "git-version"
    found = program.stat()
    state = f"{program} {found.st_ino} {found.st_size} {found.st_mtime_ns} {_dotted(MINIMUM_GIT)}\n"
    with suppress(OSError, ValueError):
        if file.read_text() == state:
            return
    check_version()
    with suppress(OSError):  # a cache that cannot be written costs time only
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file.write_text(state)


def _quoted(path: Path) -> str:
    """A path as git reads it in GIT_ALTERNATE_OBJECT_DIRECTORIES, where `:` separates and `"` starts quoting."""
    text = str(path)
    if ":" in text or text.startswith('"') or "\\" in text:
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class Git:
    """How to run git for one repository. Holds paths only, so it can be sent to another process."""

    view: Path
    """Our own bare repository folder: the only configuration git reads."""
    object_format: ObjectFormat
    objects: Path | None = None
    """Object folder of the explored repository."""
    index: Path | None = None
    work_tree: Path | None = None

    def environment(self) -> dict[str, str]:
        env = base_environment(self.view)
        env["GIT_DIR"] = str(self.view)
        if self.objects is not None:
            env["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = _quoted(self.objects)
        if self.index is not None:
            env["GIT_INDEX_FILE"] = str(self.index)
        if self.work_tree is not None:
            env["GIT_WORK_TREE"] = str(self.work_tree)
        return env

    def _start(
        self, args: Sequence[str | bytes], stdin: IO[bytes] | int, stderr: IO[bytes] | int
    ) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [git_executable(), *OPTIONS, *args],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env=self.environment(),
            cwd=self.work_tree if self.work_tree is not None else self.view,
            start_new_session=True,
            umask=0o077,  # what git writes to a store is its owner's alone, whatever the caller's umask
        )
        limit_memory(process)
        return process

    def run(
        self,
        args: Sequence[str | bytes],
        *,
        stdin: IO[bytes] | bytes | None = None,
        timeout_s: float = GIT_TIMEOUT_S,
        max_bytes: int | None = None,
    ) -> bytes:
        """Standard output of one command. Raises GitFailed (or its subclasses), UsageError when git is missing."""
        return b"".join(self.stream(args, stdin=stdin, timeout_s=timeout_s, max_bytes=max_bytes))

    def stream(
        self,
        args: Sequence[str | bytes],
        *,
        stdin: IO[bytes] | bytes | None = None,
        timeout_s: float = GIT_TIMEOUT_S,
        max_bytes: int | None = None,
    ) -> Iterator[bytes]:
        """Standard output in pieces as it comes. Closing the iterator early ends git."""
        command = next((str(arg) for arg in args if not str(arg).startswith("-")), "")
        deadline = time.monotonic() + timeout_s
        with _as_file(stdin) as source, tempfile.TemporaryFile() as errors:
            process = self._start(args, source, errors)
            try:
                yield from _bounded(process, command, deadline, GIT_OUTPUT_BYTES if max_bytes is None else max_bytes)
                code = process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired as error:
                raise GitTimeout(command, -1, "did not end") from error
            finally:
                stop(process)
            if code != 0:
                errors.seek(0)
                raise GitFailed(command, code, _one_line(errors.read(4096)))

    def interactive(self, args: Sequence[str]) -> subprocess.Popen[bytes]:
        """A long-lived command (cat-file) with pipes. The caller ends it with `stop`."""
        return self._start(args, subprocess.PIPE, subprocess.DEVNULL)


def limit_memory(process: subprocess.Popen[bytes]) -> None:
    """Cap what a program may allocate: a crafted pack can hold a small object made from a gigantic one."""
    if sys.platform == "linux":
        with suppress(ProcessLookupError, PermissionError):  # it may have ended by now
            resource.prlimit(process.pid, resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a process and all it started; may be called twice."""
    if process.poll() is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()


@contextmanager
def _as_file(stdin: IO[bytes] | bytes | None) -> Iterator[IO[bytes] | int]:
    """Input as something to read from: a file needs no second thread that feeds a pipe."""
    if stdin is None:
        yield subprocess.DEVNULL
    elif isinstance(stdin, bytes):
        with tempfile.TemporaryFile() as file:
            file.write(stdin)
            file.seek(0)
            yield file
    else:
        yield stdin


def _bounded(process: subprocess.Popen[bytes], command: str, deadline: float, max_bytes: int) -> Iterator[bytes]:
    assert process.stdout is not None
    fd = process.stdout.fileno()
    ready = select.poll()
    ready.register(fd, select.POLLIN)
    total = 0
    while True:
        left = deadline - time.monotonic()
        if left <= 0 or not ready.poll(left * 1000):
            raise GitTimeout(command, -1, "took too long")
        piece = os.read(fd, 1 << 20)
        if not piece:
            return
        total += len(piece)
        if total > max_bytes:
            raise OutputTooLarge(command, -1, f"wrote more than {max_bytes} bytes")
        yield piece


def _one_line(message: bytes) -> str:
    """An error message of git, which may quote names of the repository, without control characters."""
    text = " ".join(message.decode(errors="backslashreplace").split())[:_MESSAGE_CHARS]
    return "".join(char if char.isprintable() else "?" for char in text)


def as_leadline_error(error: GitFailed, what: str) -> UsageError | EngineError:
    """What a person is told when git failed on this repository."""
    check_version()
    match error:
        case OutputTooLarge():
            return UsageError(f"{what}: {error}", hint="this repository is too large, or made to look so; use --scope")
        case GitTimeout():
            return EngineError(
                f"{what}: {error}", hint="try again; if it stays, look for what blocks reading the files"
            )
        case _:
            return UsageError(f"{what}: {error}", hint="`git fsck` in the repository tells whether it is damaged")


def write_view(folder: Path, object_format: ObjectFormat) -> None:
    """Make `folder` a bare repository (mode 0700) with our own configuration; objects in it are kept."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    # One by one: `parents=True` gives folders made on the way the mode of the umask.
    for name in ("objects", "objects/pack", "objects/info", "refs", "refs/heads"):
        (folder / name).mkdir(mode=0o700, exist_ok=True)
    for name, text in view_files(object_format).items():
        if (folder / name).is_symlink():
            (folder / name).unlink()
        (folder / name).write_text(text)
        (folder / name).chmod(0o600)


def view_files(object_format: ObjectFormat) -> dict[str, str]:
    """The files of a view that are written anew whenever it is opened, so that nothing rests on what stood there."""
    version, extension = (1, "[extensions]\n\tobjectFormat = sha256\n") if object_format == "sha256" else (0, "")
    config = f"[core]\n\trepositoryformatversion = {version}\n\tbare = true\n{extension}"
    return {"HEAD": "ref: refs/heads/none\n", "config": config}
