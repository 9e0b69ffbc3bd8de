"""Where tests that sync thousands of times keep their files."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def quick_folder() -> Iterator[Path]:
    """In memory where that can be had: a killed process is the same there, and syncing costs nothing."""
    shared = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shared if os.access(shared, os.W_OK) else None) as folder:
        yield Path(folder)
