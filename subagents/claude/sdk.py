"""Importing the SDK: some three thousand modules, a second or two of work before the first request can leave.

It is imported where a client is made, and can be begun ahead, beside whatever waits for git, files or index workers.
"""

from __future__ import annotations

import gc
import importlib
import sys
from contextlib import suppress
from threading import Lock, Thread

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


def import_ahead() -> None:
    """Begin to import it in a thread. What fails there fails again where the SDK is needed, and is told there."""
    if _SDK not in sys.modules:
        Thread(target=_import_quietly, name="import of the SDK").start()


def _import_quietly() -> None:
    with suppress(ImportError):
        import_sdk()
