"""Opening a large repository makes a hundred thousand objects that all stay, and no cycles: looking for garbage among
them again and again is a fifth of the whole cost."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def garbage_left_alone() -> Iterator[None]:
    """No look for garbage while the block runs. Reference counts free what they can, as ever."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
