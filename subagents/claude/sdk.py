"""Importing the SDK: some three thousand modules, a second or two of work before the first request can leave.

It is imported where a client is made, and can be begun ahead, beside whatever waits for git, files or index workers.
"""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.abc import MetaPathFinder
from threading import Lock, Thread, get_ident
from typing import Any

_SDK = "anthropic"
_importing = Lock()


def import_sdk() -> None:
    """Import it, or wait for whoever does. Raises ImportError.

    Collecting garbage meanwhile would look through all those modules again and again, for a fifth of the time, and
    find none; and what they hold stays, so later collections are spared it too.
    """
    with _importing:
        if _SDK in sys.modules:
            return
        was_on = gc.isenabled()
        gc.disable()
        try:
            importlib.import_module(_SDK)
            gc.freeze()
        finally:
            if was_on:
                gc.enable()


@contextmanager
def imported_ahead() -> Iterator[None]:
    """Import it in a thread meanwhile; what fails there fails again where the SDK is needed, and is told there.

    Whoever leaves before it is done (interrupted, or with an error) does not wait for the rest of it.
    """
    if _SDK in sys.modules:
        yield
        return
    ahead = _Ahead()
    sys.meta_path.insert(0, ahead)
    thread = Thread(target=ahead.run, name="import of the SDK")
    thread.start()
    try:
        yield
    finally:
        ahead.wanted = False
        thread.join()
        sys.meta_path.remove(ahead)


class _Ahead(MetaPathFinder):
    """Finds no module; asked for each, it ends the import in its own thread once that is not wanted any more."""

    def __init__(self) -> None:
        self.wanted = True
        self._thread = 0

    def run(self) -> None:
        self._thread = get_ident()
        with suppress(ImportError):
            import_sdk()

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> None:
        if not self.wanted and get_ident() == self._thread:
            raise ImportError(f"{fullname} is not wanted any more")
