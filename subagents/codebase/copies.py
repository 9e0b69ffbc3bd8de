"""Bytes of a snapshot written out as files, for programs that only read files.

They lie in a private folder (0700), are named by blob, not by path, so that no name of the explored repository
reaches the file system, and are removed when the snapshot is closed.
"""

from __future__ import annotations

import os
import tempfile
import threading
from pathlib import Path

from manifests.temporary import make_temporary, remove_temporary


class Copies:
    """Thread-safe. `close` may be called twice."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._folder: Path | None = None
        self._closed = False

    def folder(self) -> Path:
        """The private folder; made at the first use."""
        with self._lock:
            if self._closed:
                raise ValueError("the snapshot is closed")
            if self._folder is None:
                self._folder = make_temporary("copies")
            return self._folder

    def has(self, name: str) -> bool:
        return self._folder is not None and (self._folder / name[:2] / name).exists()

    def path(self, name: str) -> bytes:
        """Where the copy of this name is, or would be."""
        return os.fsencode(self.folder() / name[:2] / name)

    def put(self, name: str, data: bytes) -> None:
        """Write one copy, whole or not at all. `name` is a blob id or starts with one."""
        target = self.folder() / name[:2] / name
        if not target.exists():
            target.parent.mkdir(mode=0o700, exist_ok=True)
            fd, temporary = tempfile.mkstemp(dir=target.parent)
            with os.fdopen(fd, "wb") as file:
                file.write(data)
            Path(temporary).rename(target)

    def close(self) -> None:
        with self._lock:
            folder, self._folder, self._closed = self._folder, None, True
        if folder is not None:
            remove_temporary(folder)
