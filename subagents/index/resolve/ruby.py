"""Ruby: require and require_relative, and constants that Rails style autoloading finds by file name."""

from __future__ import annotations

from subagents.index.resolve.base import FileTree, Names, Resolver, Targets, common_prefix, folder_of, join

_ROOTS = ("lib", "app", "src", "test", "spec")


def make(tree: FileTree) -> Resolver:
    return RubyResolver(tree)


class RubyResolver:
    def __init__(self, tree: FileTree) -> None:
        self.tree = tree
        self.known: dict[tuple[str, str], str | None] = {}

    def resolve(self, source: str, module: str, names: Names, used: bytes) -> Targets:
        key = (folder_of(source), module)
        if key not in self.known:
            self.known[key] = self.look_up(*key)
        target = self.known[key]
        return [(target, [name for name, _ in names])] if target else []

    def look_up(self, folder: str, module: str) -> str | None:
        path = module if module.endswith(".rb") else module + ".rb"
        if module.startswith("."):
            beside = join(folder, path)
            return beside if beside is not None and beside in self.tree else None
        suffix = "/" + path
        candidates = [one for one in self.tree.by_name.get(path.rpartition("/")[2], ()) if ("/" + one).endswith(suffix)]
        rooted = [one for one in candidates if is_root(one[: -len(path)].rstrip("/"))]
        if not rooted:
            return None
        return min(rooted, key=lambda one: (-common_prefix(folder, folder_of(one)), one.count("/"), one))


def is_root(folder: str) -> bool:
    """Whether a load path may start here: the repository, a `lib` folder, or a folder below `app`."""
    parts = folder.split("/") if folder else []
    return not parts or parts[-1] in _ROOTS or (len(parts) > 1 and parts[-2] == "app")
