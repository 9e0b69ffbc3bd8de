"""Repositories that try to run a command, to read outside themselves, or to be misread. Built by the tests.

Each trap runs the canary when something falls into it; `Trap.sprung_by` names a git command line that does, so that a
test can prove the trap is live before it proves that we do not fall into it.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

SECRET = "outside-secret-4711"
"""Stands in files outside of every hostile repository; must never be read."""

_IDENTITY = {
    "GIT_AUTHOR_NAME": "A U Thor",
    "GIT_AUTHOR_EMAIL": "author@example.com",
    "GIT_COMMITTER_NAME": "A U Thor",
    "GIT_COMMITTER_EMAIL": "author@example.com",
    "GIT_AUTHOR_DATE": "2024-05-01T12:00:00Z",
    "GIT_COMMITTER_DATE": "2024-05-01T12:00:00Z",
}


def git_environment() -> dict[str, str]:
    """A fixed identity and nobody's configuration."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    return {
        **kept,
        **_IDENTITY,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
    }


def git(folder: Path, *args: str | bytes, check: bool = True) -> bytes:
    """Run git as a test's own tool (never for what is under test); its output."""
    done = subprocess.run(
        ["git", *args],
        cwd=folder,
        env=git_environment(),
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=60,
        check=False,
    )
    if check and done.returncode != 0:
        raise AssertionError(f"git {args} failed: {done.stderr.decode(errors='replace')}")
    return done.stdout


def write(folder: Path, name: str | bytes, content: str | bytes) -> Path:
    path = folder / os.fsdecode(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def make_repository(
    folder: Path, files: dict[str, str | bytes] | None = None, *, commit: bool = True, object_format: str = "sha1"
) -> Path:
    """A git repository with these files (a small default set), committed once."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", "-b", "main", f"--object-format={object_format}")
    for name, content in (DEFAULT_FILES if files is None else files).items():
        write(folder, name, content)
    if commit:
        commit_all(folder)
    return folder


DEFAULT_FILES: dict[str, str | bytes] = {
    "README.md": "# Sample\n\nA sample.\n",
    "src/app.py": "def main():\n    return helper()\n\n\ndef helper():\n    return 42\n",
    "src/util.py": "LIMIT = 10\n",
}


def commit_all(folder: Path, message: str = "change") -> str:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", message)
    return git(folder, "rev-parse", "HEAD").decode().strip()


class Canary:
    """A command that leaves a mark when it is run."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._mark = folder / "the-canary-is-dead"
        self.script = folder / "canary.sh"
        self.script.write_text(f"#!/bin/sh\necho \"$0 $*\" >> '{self._mark}'\nexit 0\n")
        self.script.chmod(0o755)

    @property
    def command(self) -> str:
        return str(self.script)

    def plant(self, at: Path) -> None:
        """Put the command under another name, e.g. a hook or a program found on PATH."""
        at.parent.mkdir(parents=True, exist_ok=True)
        at.write_bytes(self.script.read_bytes())
        at.chmod(0o755)

    def runs(self) -> str:
        return self._mark.read_text() if self._mark.exists() else ""

    def revive(self) -> None:
        self._mark.unlink(missing_ok=True)


@dataclass(frozen=True)
class Trap:
    """`build(folder, canary)` makes the repository; `sprung_by` are git arguments that run the canary in it."""

    build: Callable[[Path, Canary], Path]
    sprung_by: Sequence[str] = ()


def _configured(**settings: str) -> Callable[[Path, Canary], Path]:
    """A dirty repository whose configuration names the canary; `__` stands for a dot, `{}` for the command."""

    def build(folder: Path, canary: Canary) -> Path:
        make_repository(folder)
        for key, value in settings.items():
            name = key.replace("__", ".").replace("_dash_", "-")
            git(folder, "config", "--add", name, value.replace("{}", canary.command))
        _make_dirty(folder)
        return folder

    return build


def _make_dirty(folder: Path) -> None:
    write(folder, "src/app.py", DEFAULT_FILES["src/app.py"] + "# changed\n")  # type: ignore[operator]
    write(folder, "src/new.py", "NEW = 1\n")


def _hooks(folder: Path, canary: Canary) -> Path:
    make_repository(folder)
    for place in (folder / ".git" / "hooks", folder / "hooks"):
        for name in ("post-checkout", "pre-commit", "post-index-change", "reference-transaction", "fsmonitor-watchman"):
            canary.plant(place / name)
    git(folder, "config", "core.hooksPath", "hooks")
    _make_dirty(folder)
    return folder


def _filters(folder: Path, canary: Canary) -> Path:
    make_repository(folder)
    for key in ("clean", "smudge", "process"):
        git(folder, "config", f"filter.evil.{key}", canary.command)
    git(folder, "config", "filter.evil.required", "true")
    write(folder, ".gitattributes", "* filter=evil\n")
    write(folder, ".git/info/attributes", "* filter=evil\n")
    _make_dirty(folder)
    return folder


def _diff_drivers(folder: Path, canary: Canary) -> Path:
    make_repository(folder)
    git(folder, "config", "diff.external", canary.command)
    git(folder, "config", "diff.evil.command", canary.command)
    git(folder, "config", "diff.evil.textconv", canary.command)
    git(folder, "config", "diff.evil.cachetextconv", "true")
    git(folder, "config", "merge.evil.driver", canary.command)
    write(folder, ".gitattributes", "* diff=evil merge=evil\n")
    write(folder, ".git/info/attributes", "* diff=evil merge=evil\n")
    _make_dirty(folder)
    return folder


def _included(folder: Path, canary: Canary) -> Path:
    make_repository(folder)
    write(folder, "evil.config", f"[core]\n\tfsmonitor = {canary.command}\n\tpager = {canary.command}\n")
    git(folder, "config", "include.path", "../evil.config")
    git(folder, "config", "includeIf.gitdir:/.path", "../evil.config")
    _make_dirty(folder)
    return folder


def _include_of_a_pipe(folder: Path, canary: Canary) -> Path:
    make_repository(folder)
    os.mkfifo(folder / ".git" / "pipe")
    git(folder, "config", "include.path", "pipe")
    return folder


def _lazy_fetch(folder: Path, canary: Canary) -> Path:
    """A partial clone with a missing object, whose promisor remote is a command."""
    make_repository(folder)
    blob = git(folder, "rev-parse", "HEAD:src/util.py").decode().strip()
    (folder / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    write(folder, "src/util.py", "LIMIT = 11\n")
    git(folder, "config", "core.repositoryformatversion", "1")
    git(folder, "config", "extensions.partialClone", "origin")
    git(folder, "config", "remote.origin.url", f"ext::{canary.command} %S")
    git(folder, "config", "remote.origin.promisor", "true")
    git(folder, "config", "remote.origin.partialclonefilter", "blob:none")
    git(folder, "config", "protocol.ext.allow", "always")
    git(folder, "config", "protocol.allow", "always")
    return folder


def _worktree_elsewhere(folder: Path, canary: Canary) -> Path:
    make_repository(folder)
    outside = folder.parent / "elsewhere"
    write(outside, "src/util.py", f"{SECRET}\n")
    write(outside, "secret.txt", f"{SECRET}\n")
    git(folder, "config", "core.worktree", str(outside))
    return folder


def _own_programs(folder: Path, canary: Canary) -> Path:
    """Programs named like those we start, for a PATH that holds `.` or an empty entry."""
    make_repository(folder)
    for name in ("git", "rg", "ssh", "less", "sh"):
        canary.plant(folder / name)
    return folder


def _ripgrep_configuration(folder: Path, canary: Canary) -> Path:
    make_repository(folder)
    write(folder, ".ripgreprc", f"--pre={canary.command}\n--pre-glob=*\n--follow\n--no-ignore=false\n")
    write(folder, ".rgignore", "*\n")
    write(folder, ".ignore", "*\n")
    (folder / "out").symlink_to(folder.parent)
    return folder


def _submodule_options(folder: Path, canary: Canary) -> Path:
    make_repository(folder)
    write(
        folder,
        ".gitmodules",
        '[submodule "x"]\n\tpath = sub\n\turl = -u./payload\n\tupdate = !touch pwned\n'
        f'[submodule "y"]\n\tpath = -oops\n\turl = ext::{canary.command}\n\tupdate = !{canary.command}\n',
    )
    commit = git(folder, "rev-parse", "HEAD").decode().strip()
    for path in ("sub", "--upload-pack=x"):
        git(folder, "update-index", "--add", "--cacheinfo", f"160000,{commit},{path}")
    git(folder, "config", "submodule.recurse", "true")
    git(folder, "config", "diff.submodule", "diff")
    git(folder, "commit", "-q", "-m", "submodules")
    return folder


TRAPS: dict[str, Trap] = {
    "fsmonitor": Trap(_configured(core__fsmonitor="{}"), ("status",)),
    "hooks": Trap(_hooks, ("checkout", "-q", "-B", "other")),
    "pager": Trap(_configured(core__pager="{}", pager__log="{}", pager__blame="{}")),
    "diff drivers": Trap(_diff_drivers, ("diff",)),
    "filters": Trap(_filters, ("add", "-A")),
    "include": Trap(_included, ("status",)),
    "include of a pipe": Trap(_include_of_a_pipe),
    "alias": Trap(_configured(**{"alias__ls_dash_others": "!{}", "alias__log": "!{}"}), ("ls-others",)),
    "signature": Trap(_configured(log__showSignature="true", gpg__program="{}", gpg__ssh__program="{}")),
    "remote programs": Trap(
        _configured(
            core__sshCommand="{}",
            core__askPass="{}",
            core__gitProxy="{}",
            credential__helper="!{}",
            core__alternateRefsCommand="{}",
            core__editor="{}",
            sequence__editor="{}",
            uploadpack__packObjectsHook="{}",
        )
    ),
    "lazy fetch": Trap(_lazy_fetch, ("cat-file", "-p", "HEAD:src/util.py")),
    "worktree elsewhere": Trap(_worktree_elsewhere),
    "own programs": Trap(_own_programs),
    "ripgrep configuration": Trap(_ripgrep_configuration),
    "submodule options": Trap(_submodule_options),
}
"""Repositories that can be opened; none of them may run its canary or show the secret."""


ODD_NAMES: tuple[bytes, ...] = (
    b"with space.py",
    b"-",
    b"-leading-dash.py",
    b"--files=x",
    b"new\nline.py",
    b"tab\there.py",
    b"col:on.py",
    b":(top)magic.py",
    b"quote\"and'apostrophe.py",
    b"back\\slash.py",
    b"back\\x41slash.py",
    b"looks\\xfflike.py",
    b"latin-\xe9.py",
    b"\xff\xfe.py",
    b"esc\x1b[31mred.py",
    b"bidi-\xe2\x80\xae-override.py",
    b"\xc3\xa9-composed.py",
    b"e\xcc\x81-composed.py",
    b"UPPER.py",
    b"upper.py",
    b"*star?.py",
    b"[bracket].py",
    b"~tilde",
    b"$HOME",
    b"`x`",
    b"..dots",
    b"...",
    b"folder /trailing space.py",
    b"-folder/-file.py",
    b"new\nfolder/\xff.py",
)


def odd_names(folder: Path) -> Path:
    """Each file holds `marker = <its number>`."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", "-b", "main")
    for number, name in enumerate(ODD_NAMES):
        write(folder, name, f"marker = {number}\n")
    commit_all(folder)
    return folder


def links(folder: Path) -> Path:
    """Loops, broken links, links out of the tree to a file and to a folder, and one inside."""
    make_repository(folder)
    outside = folder.parent / "outside"
    write(outside, "secret.txt", f"{SECRET}\n")
    for name, target in {
        "loop": "loop",
        "loop-a": "loop-b",
        "loop-b": "loop-a",
        "up": ".",
        "broken": "nowhere",
        "secret": "../outside/secret.txt",
        "outside": "../outside",
        "etc": "/etc",
        "inside.py": "src/app.py",
    }.items():
        (folder / name).symlink_to(target)
    commit_all(folder)
    return folder
