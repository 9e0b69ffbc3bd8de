"""Standard streams that are closed, or cannot write what we print."""

from __future__ import annotations

import os
import sys


def mend() -> bool:
    """Make all three usable; whether there is a standard output.

    A file that we open would take the number of a closed stream, and what is printed would go into it. What the
    encoding of a stream lacks is written as an escape.
    """
    there = [_is_open(number) for number in range(3)]
    for number, known in enumerate(there):
        if not known:
            descriptor = os.open(os.devnull, os.O_RDWR)
            if descriptor != number:
                os.dup2(descriptor, number)
                os.close(descriptor)
    if not there[0]:
        sys.stdin = os.fdopen(0, "r", closefd=False)
    if not there[1]:
        sys.stdout = os.fdopen(1, "w", closefd=False)
    if not there[2]:
        sys.stderr = os.fdopen(2, "w", closefd=False)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    return there[1]


def drop_output() -> None:
    """Nothing more can be written to standard output, and the interpreter is not to try when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def readable(text: str) -> str:
    """An argument as text: bytes of it that are no UTF-8 are replaced."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
