"""What the store does to the disk, out of the operations in `fileops`: replace a file, make a folder, read safely.

Foreign errors end here: whatever the system refuses becomes a StateError that names the path and says what to do.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from manifests.errors import StateError
from manifests.fileops import current, retrying, unguessable, write_all

FOLDER_MODE = 0o700
FILE_MODE = 0o600
TEMPORARY_SUFFIX = ".tmp"

_HINTS = {
    errno.ENOSPC: "free some space on that disk; what was recorded before is safe, go on with `leadline resume`",
    errno.EFBIG: "no file may become that large; raise `ulimit -f`, then go on with `leadline resume`",
    errno.EDQUOT: "your disk quota is used up; free some of it, then go on with `leadline resume`",
    errno.EACCES: "make it yours to write, or point LEADLINE_STATE_DIR at another folder",
    errno.EPERM: "make it yours to write, or point LEADLINE_STATE_DIR at another folder",
    errno.EROFS: "the file system is read-only; point LEADLINE_STATE_DIR at another folder",
    errno.EIO: "the disk reports an error; check it (e.g. `dmesg`), and move the state to a sound one",
    errno.EMFILE: "too many open files; raise `ulimit -n`, or run fewer subagents at once",
    errno.ENFILE: "too many open files on this machine; close some, then go on with `leadline resume`",
    errno.ENOENT: "it is gone; see `leadline sessions` for what is left",
    errno.ELOOP: "a symbolic link stands where our own file should be; remove the link",
    errno.ENOTDIR: "a file stands where a folder should be; move it away",
    errno.ENAMETOOLONG: "point LEADLINE_STATE_DIR at a folder with a shorter path",
}


def state_error(error: OSError, path: Path, doing: str) -> StateError:
    """What a refused system call means to the person at the terminal."""
    hint = _HINTS.get(error.errno or 0, "check the folder of the state, then go on with `leadline resume`")
    return StateError(f"cannot {doing} {str(path)!r}: {error.strerror or error}", hint=hint)


@contextmanager
def explained(path: Path, doing: str) -> Iterator[None]:
    """Turn OSError inside into StateError."""
    try:
        yield
    except OSError as error:
        raise state_error(error, path, doing) from error


def make_folder(path: Path, *, label: str, parents: bool = False, lasting: bool = True) -> None:
    """Make a private folder; one that is there already is left alone. `lasting=False`: until its parent is synced."""
    try:
        _make_folder(path, label, parents, lasting)
    except OSError as error:
        refused = state_error(error, path, "make the folder")
        if parents and error.errno == errno.ENOENT:  # nothing is gone: its file system holds no folders of ours
            refused.hint = "point LEADLINE_STATE_DIR at a folder that can be made"
        raise refused from error


def _make_folder(path: Path, label: str, parents: bool, lasting: bool = True) -> None:
    try:
        retrying(lambda: current().mkdir(path, FOLDER_MODE, label=label))
    except FileExistsError:
        if not path.is_dir():
            raise
        return
    except FileNotFoundError:
        if not parents or path.parent == path:
            raise
        _make_folder(path.parent, label, True)
        _make_folder(path, label, False)
        return
    if lasting:
        retrying(lambda: current().sync_folder(path.parent, label=label))


def replace_file(path: Path, data: bytes, *, label: str, lasting: bool = True) -> None:
    """Put `data` in place of the file. After any crash a reader finds the old bytes or the new ones.

    `lasting=False` where a power cut may leave the old ones, because what they lack is on disk elsewhere.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{unguessable(4)}{TEMPORARY_SUFFIX}")
    with explained(path, "write"):
        try:
            _write_new(temporary, data, label)
            retrying(lambda: current().rename(temporary, path, label=label))
        except BaseException:
            with suppress(OSError):
                current().unlink(temporary, label=label)
            raise
        if lasting:
            retrying(lambda: current().sync_folder(path.parent, label=label))  # the rename lasts only from here on


def _write_new(path: Path, data: bytes, label: str) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = retrying(lambda: current().open(path, flags, FILE_MODE, label=label))
    try:
        write_all(descriptor, data, label=label)
        retrying(lambda: current().sync(descriptor, label=label, data_only=False))
    finally:
        os.close(descriptor)


def sync_file(path: Path, *, label: str) -> None:
    """Put on disk what any process has written to the file."""
    with explained(path, "sync"):
        descriptor = open_private(path, os.O_RDONLY, label=label)
        try:
            retrying(lambda: current().sync(descriptor, label=label, data_only=True))
        finally:
            os.close(descriptor)


def remove_file(path: Path, *, label: str) -> None:
    """Remove a file; one that is gone already is no error."""
    with explained(path, "remove"), suppress(FileNotFoundError):
        retrying(lambda: current().unlink(path, label=label))


def remove_tree(path: Path, *, label: str) -> None:
    """Remove a folder and all in it, without following links."""
    with explained(path, "remove"):
        _remove_tree(path, label)


def _remove_tree(path: Path, label: str) -> None:
    with os.scandir(path) as entries:
        found = [(Path(entry.path), entry.is_dir(follow_symlinks=False)) for entry in entries]
    for inner, is_folder in found:
        if is_folder:
            inner.chmod(FOLDER_MODE)
            _remove_tree(inner, label)
        else:
            retrying(partial(current().unlink, inner, label=label))
    retrying(lambda: current().rmdir(path, label=label))


def clean_temporaries(folder: Path, *, skip: frozenset[str], label: str) -> int:
    """Remove what replacements that died left in the folder and below; returns how many. Only for the lock's holder."""
    removed = 0
    for here, folders, files in os.walk(folder):
        if here == str(folder):
            folders[:] = [name for name in folders if name not in skip]
        for name in files:
            if name.startswith(".") and name.endswith(TEMPORARY_SUFFIX):
                remove_file(Path(here, name), label=label)
                removed += 1
    return removed


def check_private_folder(path: Path, *, shared_reading: bool = False) -> None:
    """Refuse a folder that others own or could change. `shared_reading`: others may look (the root, not a session)."""
    with explained(path, "look at"):
        found = path.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise StateError(f"{str(path)!r} is not a folder", hint="a link or file stands in its place; move it away")
    _check_owner(path, found, 0o022 if shared_reading else 0o077, "700")


def check_private_file(path: Path, found: os.stat_result) -> None:
    """Refuse a state file that is no regular file, or that others own, read or write."""
    if not stat.S_ISREG(found.st_mode):
        raise StateError(
            f"{str(path)!r} is not a regular file", hint="something else stands in its place; move it away"
        )
    _check_owner(path, found, 0o077, "600")


def _check_owner(path: Path, found: os.stat_result, forbidden: int, mode: str) -> None:
    if found.st_uid != os.geteuid():
        raise StateError(
            f"{str(path)!r} belongs to user {found.st_uid}, not to you",
            hint="state of another user is not trusted; point LEADLINE_STATE_DIR at a folder of your own",
        )
    if found.st_mode & forbidden:
        raise StateError(
            f"{str(path)!r} is open to other users (mode {stat.S_IMODE(found.st_mode):o})",
            hint=f"look whether its content is still yours, then `chmod {mode} {path}`",
        )


def open_private(path: Path, flags: int, *, label: str) -> int:
    """Open a state file without following a link, and check that it is ours alone. OSError passes."""
    flags |= os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # never wait for the other end of a planted pipe
    descriptor = retrying(lambda: current().open(path, flags, FILE_MODE, label=label))
    try:
        check_private_file(path, os.fstat(descriptor))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def read_private(path: Path, *, limit_bytes: int, label: str) -> bytes:
    """All bytes of a state file. Refuses one above the limit without loading it; FileNotFoundError passes."""
    try:
        descriptor = open_private(path, os.O_RDONLY, label=label)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise state_error(error, path, "read") from error
    try:
        size = os.fstat(descriptor).st_size
        if size > limit_bytes:
            raise StateError(
                f"{str(path)!r} is too large to be what it should be: {size:,} bytes, at most {limit_bytes:,}",
                hint="the file is damaged; `leadline doctor SESSION` says what can be saved",
            )
        with explained(path, "read"):
            return _read_up_to(descriptor, limit_bytes + 1)
    finally:
        os.close(descriptor)


def _read_up_to(descriptor: int, limit: int) -> bytes:
    parts: list[bytes] = []
    while limit > 0 and (part := os.read(descriptor, min(limit, 1 << 20))):
        parts.append(part)
        limit -= len(part)
    return b"".join(parts)
