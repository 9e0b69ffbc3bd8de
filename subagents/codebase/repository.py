"""Finding the repository that a path belongs to, without letting its configuration have a say.

`.git` is looked for upwards by ourselves. A `.git` file (linked worktree, submodule) counts only when its target
points back at it; links in place of `.git` or inside it are not followed. Of the configuration only a few plain
values are read, by git's own parser, from that one file, without includes. References are read here too.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from manifests.errors import UsageError
from subagents.codebase.confined import read_small
from subagents.codebase.gitrun import Git, GitFailed, ObjectFormat, as_leadline_error, check_version

_HEX = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?\Z")
_SPECIAL = re.compile(rb'["\\#;]')
_REFERENCE = re.compile(rb"refs/[^\0-\x20\x7f~^:?*\[\\]+\Z")
_PACKED_REFS_BYTES = 64 * 1024 * 1024
_OPEN_HINT = "give the path of a git repository or of a plain folder"


@dataclass(frozen=True, slots=True, kw_only=True)
class GitPlace:
    """Where the parts of a git repository are; all paths resolved."""

    root: Path
    """The working tree, or the bare repository itself."""
    git_dir: Path
    common_dir: Path
    """Differs from `git_dir` in a linked worktree only."""
    bare: bool
    object_format: ObjectFormat
    file_mode: bool
    """Whether executable bits of the working tree mean something."""
    remote: str = ""
    """Address of the remote called origin, as configured; may hold credentials: never to be printed."""

    @property
    def objects(self) -> Path:
        return self.common_dir / "objects"


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """`within` is the path asked for, relative to `root` (its own bytes; empty: the root itself)."""

    root: Path
    within: bytes
    git: GitPlace | None


def locate(path: Path) -> Located:
    """The repository around a path, or the plain folder it is. Raises UsageError."""
    resolved = _existing(path)
    start = resolved if resolved.is_dir() else resolved.parent
    if resolved.is_dir() and _looks_like_git_dir(resolved):
        if resolved.name != ".git":
            return Located(root=resolved, within=b"", git=_place(resolved, resolved, resolved, bare=True))
        start = resolved = resolved.parent
    for folder in (start, *start.parents):
        place = _at(folder)
        if place is not None:
            within = os.fsencode(resolved.relative_to(folder))
            return Located(root=folder, within=b"" if within == b"." else within, git=place)
    return folder_at(path)


def folder_at(path: Path) -> Located:
    """The path as a plain folder (or one file of a plain folder), whatever repository is around it."""
    resolved = _existing(path)
    if resolved.is_dir():
        return Located(root=resolved, within=b"", git=None)
    return Located(root=resolved.parent, within=os.fsencode(resolved.name), git=None)


def repository_key(root: Path) -> str:
    """Name and hash of the resolved path: one folder name for one repository on this machine."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", root.name).strip(".-")[:40] or "root"
    return f"{name}-{hashlib.sha256(os.fsencode(root)).hexdigest()[:12]}"


def _existing(path: Path) -> Path:
    try:
        resolved = path.expanduser().resolve(strict=True)
        mode = resolved.stat().st_mode
        readable = os.access(resolved, os.R_OK | (os.X_OK if stat.S_ISDIR(mode) else 0))
    except FileNotFoundError:
        raise UsageError(f"there is no {str(path)!r}", hint=_OPEN_HINT) from None
    except (OSError, RuntimeError, ValueError) as error:
        raise UsageError(f"cannot open {str(path)!r}: {error}", hint=_OPEN_HINT) from error
    if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
        raise UsageError(f"{str(path)!r} is neither a folder nor a file", hint=_OPEN_HINT)
    if not readable:
        raise UsageError(f"{str(path)!r} is not readable", hint="check its permissions")
    return resolved


def _looks_like_git_dir(folder: Path) -> bool:
    return all(_is_folder(folder / name) for name in ("objects", "refs")) and _is_file(folder / "HEAD")


def _mode(path: Path) -> int:
    try:
        return path.lstat().st_mode
    except OSError:
        return 0


def _is_folder(path: Path) -> bool:
    return stat.S_ISDIR(_mode(path))


def _is_file(path: Path) -> bool:
    return stat.S_ISREG(_mode(path))


def _at(folder: Path) -> GitPlace | None:
    """The repository whose working tree starts at this folder."""
    dot_git = folder / ".git"
    mode = _mode(dot_git)
    if stat.S_ISDIR(mode):
        if _looks_like_git_dir(dot_git):
            return _place(folder, dot_git, dot_git, bare=False)
        if any(_mode(dot_git / name) for name in ("HEAD", "objects", "refs", "config")):
            raise UsageError(
                f"{str(dot_git)!r} is damaged: HEAD, objects or refs are missing or no plain files and folders",
                hint="mend it, or move it away to open a plain folder",
            )
        return None
    if stat.S_ISLNK(mode):
        raise UsageError(
            f"{str(dot_git)!r} is a symbolic link",
            hint="open the repository that it leads to instead; links are not followed",
        )
    if stat.S_ISREG(mode):
        return _from_git_file(folder, dot_git)
    return None


def _from_git_file(folder: Path, dot_git: Path) -> GitPlace:
    """A linked worktree, a submodule or a separate git folder: accepted when its target names this very place."""
    content = read_small(folder, b".git", 8192) or b""
    if not content.startswith(b"gitdir: "):
        raise UsageError(f"{str(dot_git)!r} is no git folder and names none", hint="remove it to open a plain folder")
    target = folder / os.fsdecode(content[len(b"gitdir: ") :].rstrip(b"\r\n"))
    refused = UsageError(
        f"{str(dot_git)!r} points to {str(target)!r}, which does not point back",
        hint="`git worktree repair` mends a moved worktree; a git folder kept apart needs `core.worktree` set to here",
    )
    try:
        git_dir = target.resolve(strict=True)
    except (OSError, RuntimeError, ValueError):
        raise refused from None
    if not _is_file(git_dir / "HEAD"):
        raise refused
    back = read_small(git_dir, b"gitdir", 8192)
    if back is not None:
        common = git_dir.parent.parent
        named = read_small(git_dir, b"commondir", 8192)
        inside = named is not None and _same(git_dir / os.fsdecode(named.rstrip(b"\r\n")), common)
        if not inside or git_dir.parent.name != "worktrees" or not _looks_like_git_dir(common):
            raise refused
        if not _same(git_dir / os.fsdecode(back.rstrip(b"\r\n")), dot_git):
            raise refused
        return _place(folder, git_dir, common, bare=False)
    if not _looks_like_git_dir(git_dir):
        raise refused
    worktree = _configuration(git_dir).get("core.worktree")
    if worktree is None or not _same(git_dir / worktree, folder):
        raise refused
    return _place(folder, git_dir, git_dir, bare=False)


def _same(one: Path, other: Path) -> bool:
    try:
        return one.resolve(strict=True) == other.resolve(strict=True)
    except (OSError, RuntimeError, ValueError):
        return False


def _place(root: Path, git_dir: Path, common: Path, *, bare: bool) -> GitPlace:
    configuration = _configuration(common)
    format_name = configuration.get("extensions.objectformat", "sha1").lower()
    if format_name not in ("sha1", "sha256"):
        raise UsageError(f"unknown object format {format_name!r} in {str(common)!r}", hint="update Leadline")
    if configuration.get("core.repositoryformatversion", "0") not in ("0", "1"):
        raise UsageError(f"{str(common)!r} has an unknown repository format", hint="update git and Leadline")
    return GitPlace(
        root=root,
        git_dir=git_dir,
        common_dir=common,
        bare=bare,
        object_format="sha256" if format_name == "sha256" else "sha1",
        file_mode=configuration.get("core.filemode", "true").lower() not in ("false", "no", "off", "0"),
        remote=configuration.get("remote.origin.url", ""),
    )


def _configuration(git_dir: Path) -> dict[str, str]:
    """The plain values of a repository's own configuration file; keys in lower case, the last value wins."""
    content = read_small(git_dir, b"config")
    if not content:
        return {}
    plain = _plain_configuration(content)
    if plain is not None:
        return plain
    with tempfile.TemporaryDirectory(prefix="leadline-config-") as folder:
        copy = Path(folder) / "config"
        copy.write_bytes(content)
        try:
            listed = Git(view=Path(folder), object_format="sha1").run(
                ["config", "--file", str(copy), "--no-includes", "--null", "--list"], timeout_s=20
            )
        except GitFailed as error:
            check_version()
            raise UsageError(
                f"the configuration of {str(git_dir)!r} is damaged: {error.message}",
                hint="mend it, or open a fresh clone",
            ) from error
    pairs = (item.partition(b"\n") for item in listed.split(b"\0") if item)
    return {key.decode(errors="replace").lower(): value.decode(errors="surrogateescape") for key, _, value in pairs}


_SECTION = re.compile(rb'\[([A-Za-z0-9-]+)(?: "([^"\\\0\]]*)")?\]')
_VALUE = re.compile(rb"\t([A-Za-z][A-Za-z0-9-]*) = ([!-~](?:[ -~]*[!-~])?)")


def _plain_configuration(content: bytes) -> dict[str, str] | None:
    """What git wrote in its own way, without quotes, comments and continued lines; None when git has to read it."""
    found: dict[str, str] = {}
    section = ""
    for line in content.removesuffix(b"\n").split(b"\n"):
        if header := _SECTION.fullmatch(line):
            section = header[1].decode().lower()
            if header[2] is not None:
                section += f".{header[2].decode(errors='replace')}".lower()
        elif section and (value := _VALUE.fullmatch(line)) and not _SPECIAL.search(value[2]):
            found[f"{section}.{value[1].decode().lower()}"] = value[2].decode()
        else:
            return None
    return found


def head_commit(place: GitPlace) -> str | None:
    """The commit HEAD names; None before the first commit. Raises UsageError for a HEAD that makes no sense."""
    content = read_small(place.git_dir, b"HEAD", 4096)
    if content is None:
        raise UsageError(f"{str(place.git_dir)!r} has no readable HEAD", hint="`git fsck` tells whether it is damaged")
    if content.strip() == b"ref: refs/heads/.invalid":
        return _by_git(place)  # references are in a format of their own (reftable)
    return _resolve(place, content.strip(), 0)


def _by_git(place: GitPlace) -> str | None:
    """HEAD as git itself reads it: the only command that sees the repository's own folder."""
    git = Git(view=place.git_dir, object_format=place.object_format)
    try:
        return git.run(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"], timeout_s=20).decode().strip()
    except GitFailed as error:
        if error.code == 1:
            return None
        raise as_leadline_error(error, f"cannot read HEAD of {str(place.root)!r}") from error


def _resolve(place: GitPlace, value: bytes, depth: int) -> str | None:
    text = value.decode("ascii", errors="replace")
    if _HEX.match(text):
        return text
    name = value.removeprefix(b"ref:").strip()
    if not value.startswith(b"ref:") or not _REFERENCE.match(name) or b".." in name or depth > 5:
        raise UsageError(f"HEAD of {str(place.root)!r} is not understood", hint="`git symbolic-ref HEAD` shows it")
    for folder in dict.fromkeys((place.git_dir, place.common_dir)):
        loose = read_small(folder, name, 4096)
        if loose:
            return _resolve(place, loose.strip(), depth + 1)
    packed = read_small(place.common_dir, b"packed-refs", _PACKED_REFS_BYTES) or b""
    found = re.search(rb"^([0-9a-f]{40,64}) " + re.escape(name) + rb"$", packed, re.MULTILINE)
    return found[1].decode() if found else None
