"""Opening a repository or a folder as a snapshot: find it, freeze it, check the scope."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from manifests.errors import LeadlineError, StateError, UsageError
from manifests.temporary import make_temporary, remove_temporary
from subagents.codebase import remembered
from subagents.codebase.blobs import BlobReader
from subagents.codebase.collecting import garbage_left_alone
from subagents.codebase.confined import read_small
from subagents.codebase.freeze import Freezer, Frozen
from subagents.codebase.frozen import FrozenSnapshot
from subagents.codebase.gitrun import Git, GitFailed, as_leadline_error, check_version_once, write_view
from subagents.codebase.ignores import ignore_files
from subagents.codebase.listed import IndexMemory, tree_of
from subagents.codebase.objects import PackWriter, file_mode, object_id, trees
from subagents.codebase.paths import from_key, is_plain, to_key
from subagents.codebase.repository import GitPlace, Located, folder_at, head_commit, locate, repository_key
from subagents.codebase.types import FileEntry, SnapshotId

__all__ = ["FrozenSnapshot", "open_snapshot"]

_SHARED_INDEX_BYTES = 256 * 1024 * 1024


def open_snapshot(
    path: Path,
    *,
    scope: Sequence[str] = (),
    store: Path | None = None,
    pinned: SnapshotId | None = None,
    cache: Path | None = None,
    beat: Callable[[int], None] = lambda _: None,
) -> FrozenSnapshot:
    """Freeze the repository or plain folder at `path`.

    `scope` holds files or folders relative to `path`; without it, a subfolder as `path` is the scope. `store` is a
    folder of the session's own (made when missing) that keeps what the repository itself does not: without it, a
    dirty tree has an id but lasts only as long as the files stay. `pinned` opens that snapshot again, wherever HEAD
    and the working tree are by now. `cache` is a folder in which it is remembered what git said of the index, and
    what the files of a plain folder hashed to, so that opening again is quick; it may be deleted at any time.
    `beat` hears how many files were read so far, while there are many; what it raises ends the opening.
    Raises UsageError, StateError (the pinned snapshot is gone).
    """
    with garbage_left_alone():
        located = folder_at(path) if pinned is not None and pinned.kind == "folder" else locate(path)
        opened = _open(located, store, pinned, cache, beat)
        try:
            opened.restrict(_scope(located, scope, opened))
        except LeadlineError as error:
            opened.close()
            if located.git is None or not located.within or scope or not isinstance(error, _NothingThere):
                raise
            plain = folder_at(path)  # the repository around it ignores this folder
            opened = _open(plain, store, pinned, cache, beat)
            opened.restrict(_scope(plain, scope, opened))
        return opened


class _NothingThere(UsageError):
    """A path inside the repository at which the snapshot has no files."""


def _scope(located: Located, asked: Sequence[str], opened: FrozenSnapshot) -> tuple[str, ...]:
    """Scope as path keys from the root, checked against the snapshot; without duplicates and nested ones."""
    if not asked:
        raws = [located.within] if located.within else []
    else:
        raws = [_scope_item(located, item) for item in asked]
    if b"" in raws:
        return ()
    present = opened.all_paths()
    missing = {to_key(raw) for raw in raws}
    for path in present:
        if not missing:
            break
        missing -= {item for item in missing if path == item or path.startswith(f"{item}/")}
    if missing:
        raise _NothingThere(
            f"no files of the snapshot at {', '.join(repr(item) for item in sorted(missing))}",
            hint="give files or folders of the repository that are not ignored; `leadline map` lists its parts",
        )
    keys = sorted({to_key(raw) for raw in raws})
    return tuple(key for key in keys if not any(key.startswith(f"{other}/") for other in keys))


def _scope_item(located: Located, item: str) -> bytes:
    if "\0" in item or not item:
        raise UsageError(f"scope {item!r} is no path", hint="give files or folders relative to the repository")
    start = located.root / os.fsdecode(located.within)
    joined = os.path.normpath(start / item)
    raw = os.path.relpath(joined, located.root)
    if raw == ".":
        return b""
    encoded = os.fsencode(raw)
    if not is_plain(encoded):
        raise UsageError(
            f"scope {item!r} is outside of {str(located.root)!r}", hint="give files or folders inside the repository"
        )
    try:
        return from_key(raw)
    except UnicodeEncodeError:  # given as bytes, not as a path key
        return encoded


@dataclass(slots=True)
class _Opening:
    """What is needed while a snapshot is being opened."""

    located: Located
    git: Git
    owns_view: bool
    keep: bool
    cache: Path | None
    beat: Callable[[int], None]
    pack: PackWriter = field(default_factory=PackWriter)

    def store(self, blob: str, data: bytes) -> None:
        self.pack.add(blob, "blob", data)


def _open(
    located: Located,
    store: Path | None,
    pinned: SnapshotId | None,
    cache: Path | None,
    beat: Callable[[int], None],
) -> FrozenSnapshot:
    if pinned is not None and pinned.kind == "git" and located.git is None:
        raise StateError(
            f"{str(located.root)!r} is no longer a git repository", hint="put it back, or start a new session"
        )
    check_version_once(cache)
    view = store if store is not None else make_temporary("view")
    opening = _Opening(
        located, _git(located, view), owns_view=store is None, keep=store is not None, cache=cache, beat=beat
    )
    try:
        return _freeze(opening, pinned)
    except GitFailed as error:
        raise as_leadline_error(error, f"cannot read {str(located.root)!r}") from error
    except BaseException:
        if opening.owns_view:
            remove_temporary(view)
        raise
    finally:
        opening.pack.close()


def _git(located: Located, view: Path) -> Git:
    place = located.git
    try:
        write_view(view, place.object_format if place else "sha1")
        if place is None:
            return Git(view=view, object_format="sha1", work_tree=located.root)
        _borrow(place, view)
    except OSError as error:
        raise UsageError(f"cannot write {str(view)!r}: {error.strerror}", hint="check space and permissions") from error
    return Git(
        view=view,
        object_format=place.object_format,
        objects=place.objects,
        index=place.git_dir / "index",
        work_tree=None if place.bare else place.root,
    )


def _borrow(place: GitPlace, view: Path) -> None:
    """Copy into the view what git looks for beside its configuration: where history is cut off, and a split index
    (only older versions of git; newer ones also look beside the index)."""
    shallow = read_small(place.common_dir, b"shallow", 64 << 20)
    if shallow:
        (view / "shallow").write_bytes(shallow)
    else:
        (view / "shallow").unlink(missing_ok=True)
    for shared in place.git_dir.glob("sharedindex.*"):
        content = read_small(place.git_dir, os.fsencode(shared.name), _SHARED_INDEX_BYTES)
        if content is not None:
            (view / shared.name).write_bytes(content)


def _freeze(opening: _Opening, pinned: SnapshotId | None) -> FrozenSnapshot:
    place = opening.located.git
    if pinned is not None:
        listed = _listed(opening.git, pinned.tree)
        if listed is not None:
            return _made(opening, pinned, Frozen(files=listed))
        frozen, now = _as_it_is(opening)
        if now.tree != pinned.tree:
            what = f"commit {pinned.commit}" if not pinned.dirty and pinned.commit else f"tree {pinned.tree}"
            raise StateError(
                f"the snapshot of this session ({what}) is no longer in {str(opening.located.root)!r}",
                hint="bring it back (`git fetch`), or start a new session",
            )
        return _made(opening, pinned, frozen)
    if place is not None and place.bare:
        commit = head_commit(place)
        tree = tree_of(opening.git, commit) if commit else object_id(place.object_format, "tree", b"")
        listed = (_listed(opening.git, tree) or {}) if commit else {}
        return _made(opening, SnapshotId(kind="git", commit=commit, tree=tree, dirty=False), Frozen(files=listed))
    frozen, now = _as_it_is(opening)
    return _made(opening, now, frozen)


def _made(opening: _Opening, snapshot_id: SnapshotId, frozen: Frozen) -> FrozenSnapshot:
    located = opening.located
    return FrozenSnapshot(
        snapshot_id=snapshot_id,
        root=located.root,
        working_tree=None if located.git is not None and located.git.bare else located.root,
        git=opening.git,
        frozen=frozen,
        owns_view=opening.owns_view,
    )


def _as_it_is(opening: _Opening) -> tuple[Frozen, SnapshotId]:
    """The working tree or the plain folder as it is now; what the repository lacks goes into the store."""
    located = opening.located
    place = located.git
    store = opening.store if opening.keep else None
    freezer = Freezer(located.root, opening.git.object_format, store, opening.beat)
    try:
        if place is None:
            frozen = _folder(opening, freezer)
            return frozen, SnapshotId(kind="folder", commit=None, tree=_write_tree(opening, frozen, None), dirty=False)
        memory = IndexMemory(opening.git, _memory_file(opening, "index"))
        frozen = freezer.from_index(
            opening.git,
            memory,
            index_mtime_ns=_index_time(place),
            trust_modes=place.file_mode,
            exclude_files=ignore_files(place),
            attributes=read_small(place.common_dir, b"info/attributes") or b"",
        )
    finally:
        freezer.close()
    commit = head_commit(place)
    if commit is None:
        memory.save()
        tree = _write_tree(opening, frozen, None)
        return frozen, SnapshotId(kind="git", commit=None, tree=tree, dirty=bool(frozen.files))
    head = memory.head(commit)
    memory.save()
    staged, tree = head.staged, head.tree
    if frozen.changed or staged:
        _keep_staged(opening, frozen, staged)
        now = _write_tree(opening, frozen, frozen.changed | staged)
        return frozen, SnapshotId(kind="git", commit=commit, tree=now, dirty=now != tree)
    return frozen, SnapshotId(kind="git", commit=commit, tree=tree, dirty=False)


def _memory_file(opening: _Opening, what: str) -> Path | None:
    return opening.cache / f"{repository_key(opening.located.root)}.{what}" if opening.cache is not None else None


def _folder(opening: _Opening, freezer: Freezer) -> Frozen:
    """A plain folder, or one file of it."""
    located = opening.located
    if located.within and (located.root / os.fsdecode(located.within)).is_file():
        return freezer.from_folder(located.within)
    file = _memory_file(opening, "folder")
    if file is None or opening.keep:
        return freezer.from_folder()
    began_ns, memory = time.time_ns(), remembered.load(file)
    frozen = freezer.from_folder(memory=memory)
    now = {path: (known, frozen.files[path].blob) for path, known in frozen.signatures.items()}
    if now != memory:
        remembered.save(file, now, began_ns=began_ns)
    return frozen


def _index_time(place: GitPlace) -> int:
    try:
        return (place.git_dir / "index").lstat().st_mtime_ns
    except FileNotFoundError:
        return 0


def _listed(git: Git, tree: str) -> dict[bytes, FileEntry] | None:
    """All files of a tree, or None when git does not have it."""
    try:
        listed = git.run(["ls-tree", "-r", "-z", "--full-tree", tree])
    except GitFailed as error:
        if error.code == 128:
            return None
        raise
    found: dict[bytes, FileEntry] = {}
    for item in listed.split(b"\0"):
        if item:
            meta, _, path = item.partition(b"\t")
            mode, _, blob = meta.split(b" ")
            found[path] = FileEntry(to_key(path), path, blob.decode(), file_mode(mode))
    return found


def _keep_staged(opening: _Opening, frozen: Frozen, staged: frozenset[bytes]) -> None:
    """Blobs that only the index refers to may be pruned one day: keep a copy of them too."""
    if not opening.keep:
        return
    entries = [
        entry
        for path in sorted(staged - frozen.changed)
        if (entry := frozen.files.get(path)) is not None and entry.mode in ("file", "executable")
    ]
    reader = BlobReader(opening.located.root, opening.git)
    try:
        for entry, data in reader.read_many(entries):
            if isinstance(data, bytes):
                opening.store(entry.blob, data)
    finally:
        reader.close()


def _write_tree(opening: _Opening, frozen: Frozen, differing: set[bytes] | None) -> str:
    """Id of the tree of all files; with a store, its trees (those above `differing`, else all) are written there."""
    folders = None if differing is None else {folder for path in differing for folder in _folders_above(path)}
    tree = ""
    for folder, name, data in trees(frozen.files.values(), opening.git.object_format):
        tree = name
        if opening.keep and (folders is None or folder in folders):
            opening.pack.add(name, "tree", data)
    if opening.keep:
        opening.pack.store(opening.git)
    return tree


def _folders_above(path: bytes) -> Iterator[bytes]:
    while b"/" in path:
        path = path.rpartition(b"/")[0]
        yield path
    yield b""
