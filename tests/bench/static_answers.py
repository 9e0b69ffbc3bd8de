"""Evaluate static answers on real repositories: `python -m tests.bench.static_answers NAME=FOLDER ...`.

NAME is one of static_questions.json (flask, django, gin, ...), FOLDER a checkout at its revision. Prints for each
question what was expected and is missing, and the time from start to answer; `--show TEXT` prints the answers of
questions that hold TEXT. Exit code 1 when something is missing.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from subagents.engine import Answer
from tests.subagents.static.harness import explore

QUESTIONS = Path(__file__).with_name("static_questions.json")


def short_answer(markdown: str) -> str:
    match = re.search(r"\*\*Short answer\.\*\*(.*?)(\n\n|$)", markdown, re.DOTALL)
    return match.group(1) if match else ""


def missing(expected: dict[str, Any], answer: Answer) -> Iterator[str]:
    """What the answer lacks, one line each."""
    if answer.found is not expected.get("found", True):
        yield f"found is {answer.found}"
    short = short_answer(answer.markdown)
    for text in expected.get("short", ()):
        if text not in short:
            yield f"short answer lacks {text!r}"
    for text in expected.get("not_short", ()):
        if text in short:
            yield f"short answer holds {text!r}"
    for text in expected.get("anywhere", ()):
        if text not in answer.markdown:
            yield f"answer lacks {text!r}"
    at = 0
    for text in expected.get("order", ()):
        found = short.find(text, at)
        if found < 0:
            yield f"short answer lacks {text!r} in its place"
        else:
            at = found + 1
    statements = [s for s in answer.statements if not s.findings]
    if statements and answer.found:
        yield f"{len(statements)} statements rest on nothing"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("repositories", nargs="+", metavar="NAME=FOLDER")
    parser.add_argument("--cache", type=Path, help="where indexes are kept (default: a temporary folder)")
    parser.add_argument("--show", default=None, help="print the answers of questions that hold this text")
    arguments = parser.parse_args()
    known = json.loads(QUESTIONS.read_text(encoding="utf-8"))["repositories"]
    passed = failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        for named in arguments.repositories:
            name, _, folder = named.partition("=")
            for expected in known[name]["questions"]:
                if arguments.show and arguments.show not in expected["ask"]:
                    continue
                started = time.process_time()
                run = asyncio.run(explore(Path(folder), expected["ask"], arguments.cache or Path(scratch)))
                lacks = list(missing(expected, run.answer))
                failed += bool(lacks)
                passed += not lacks
                spent = time.process_time() - started
                print(f"{'FAIL' if lacks else 'ok  '} {name}: {expected['ask']} ({spent:.1f} s of CPU)")
                for one in lacks:
                    print(f"       {one}")
                if arguments.show:
                    print(run.answer.markdown)
    print(f"{passed} of {passed + failed} answers hold what they must")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
