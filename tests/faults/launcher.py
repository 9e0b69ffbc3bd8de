"""Runs the leadline command line with file operations that fail on purpose.

    python -m tests.faults.launcher --fault die_after --at 17 [--label append:journal] [--operation sync] [--lasting]
                                    [--log FILE] -- explore REPO QUESTION ...

`--fault none --log FILE` lists the operations of a sound run.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import get_args

from manifests.fileops import install
from tests.faults.faulty import Fault, FaultyFileOps, Plan


def main(arguments: list[str]) -> int:
    """Exit code of the command line; a process that the fault killed has none."""
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    parser = argparse.ArgumentParser(prog="tests.faults.launcher")
    parser.add_argument("--fault", choices=get_args(Fault), default="none")
    parser.add_argument("--at", type=int, default=0)
    parser.add_argument("--label", default="")
    parser.add_argument("--operation", default="")
    parser.add_argument("--lasting", action="store_true")
    parser.add_argument("--log", type=Path)
    options = parser.parse_args(arguments[:cut])
    plan = Plan(
        fault=options.fault,
        at=options.at,
        label=options.label,
        operation=options.operation,
        lasting=options.lasting,
    )
    install(FaultyFileOps(plan, log=options.log))
    from orchestrator.main import main as command_line

    sys.argv = ["leadline", *arguments[cut + 1 :]]
    result = command_line()
    return int(result or 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
