"""C and C++ includes: next to the file, then under folders that headers are usually included from, then by suffix."""

from __future__ import annotations

from subagents.index.resolve.base import FileTree, Names, Resolver, Targets, common_prefix, folder_of, join

_SYSTEM = frozenset({
    "assert", "complex", "ctype", "errno", "fcntl", "fenv", "float", "getopt", "inttypes", "iso646", "limits",
    "locale", "math", "memory", "netdb", "poll", "pthread", "pwd", "sched", "setjmp", "signal", "stdalign",
    "stdarg", "stdatomic", "stdbool", "stddef", "stdint", "stdio", "stdlib", "stdnoreturn", "string", "strings",
    "syslog", "termios", "tgmath", "threads", "time", "uchar", "unistd", "wchar", "wctype", "windows", "sys/types",
    "sys/stat", "sys/time", "sys/socket", "sys/wait", "sys/mman", "sys/ioctl", "sys/resource", "sys/select",
    "sys/uio", "sys/un", "sys/param", "netinet/in", "netinet/tcp", "arpa/inet",
})  # fmt: skip
"""Headers of the C library and POSIX: in angle brackets they are the system's, whatever a repository carries."""


def make(tree: FileTree) -> Resolver:
    return IncludeResolver(tree)


class IncludeResolver:
    """The include path is part of the build and not known here. A suffix match names the file in all but odd trees; of
    several, the one under an `include` folder or nearest to the source is taken."""

    def __init__(self, tree: FileTree) -> None:
        self.tree = tree
        self.known: dict[tuple[str, str], str | None] = {}

    def resolve(self, source: str, module: str, names: Names, used: bytes) -> Targets:
        folder = folder_of(source)
        key = (folder, module)
        if key not in self.known:
            self.known[key] = self.look_up(folder, module)
        target = self.known[key]
        return [(target, ["*"])] if target else []

    def look_up(self, folder: str, module: str) -> str | None:
        quoted, path = module.startswith('"'), module[1:-1].strip()
        if not quoted and path.removesuffix(".h") in _SYSTEM:
            return None
        if quoted:
            beside = join(folder, path)
            if beside is not None and beside in self.tree:
                return beside
        name = path.rpartition("/")[2]
        suffix = "/" + path.lstrip("./")
        candidates = [one for one in self.tree.by_name.get(name, ()) if ("/" + one).endswith(suffix)]
        if not candidates:
            return None
        if not quoted and "/" not in path and len(candidates) > 3:
            return None  # <string.h> is the system's, whatever else is called so
        return min(
            candidates,
            key=lambda one: (
                not (f"/{one[: -len(path)]}").endswith("/include/"),
                -common_prefix(folder, folder_of(one)),
                one.count("/"),
                one,
            ),
        )
