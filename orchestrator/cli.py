"""The command line. Declares commands and options only: what a command needs is imported when it runs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

_EPILOG = """Exit codes: 0 answered, 1 unexpected, 2 usage, 3 state refused, 4 engine failed but resumable,
5 stopped at a limit with a partial answer and resumable, 130 interrupted and resumable."""


def _named(_: click.Context, __: click.Parameter, value: str) -> str:
    """An empty path would mean the current folder: more likely a variable that was never set."""
    if not value.strip():
        raise click.BadParameter("it is empty; give a path, . for the current folder")
    return value


class Amount(click.FloatRange):
    """A finite number: `nan` is below no limit, and `inf` is none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is no amount", param, ctx)
        return number


_repo = click.argument("repo", metavar="REPO", callback=_named)


@click.group(epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="leadline")
def leadline() -> None:
    """Explore a code base too large to read.

    Every claim in an answer cites lines that were checked against the code; an interrupted exploration resumes
    where it stopped. Works without a key or a network; with a key, Claude plans, investigates and answers.
    """


_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")
_quiet = click.option("--quiet", "-q", is_flag=True, help="No progress on stderr.")
_yes = click.option("--yes", "-y", is_flag=True, help="Agree to what it will cost without being asked.")
_money = [
    click.option(
        "--max-tokens",
        type=click.IntRange(min=1),
        help="Most tokens in all, input and output, cached ones included.",
    ),
    click.option(
        "--max-cost",
        type=Amount(min=0, min_open=True),
        help="Most money in all; needs a configured price.",
    ),
]
_limits = [
    click.option("--max-agents", type=click.IntRange(min=1), help="Most subagents over the whole session."),
    click.option(
        "--max-minutes",
        type=Amount(min=0, min_open=True),
        help="Most minutes over the whole session, resumed runs included.",
    ),
    *_money,
    click.option("--parallel", type=click.IntRange(1, 64), help="Most subagents at the same time."),
    _yes,
    click.option("--verify", is_flag=True, help="Let fresh subagents try to refute what the answer rests on."),
]


def _with(*options: Callable[[F], F]) -> Callable[[F], F]:
    def apply(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return apply


@leadline.command()
@_repo
@click.argument("question")
@click.option(
    "--engine",
    type=click.Choice(["auto", "static", "claude"]),
    default="auto",
    show_default=True,
    help="Who investigates. auto: claude when credentials are configured, else static.",
)
@click.option("--scope", multiple=True, metavar="PATH", help="Only look below this path of REPO; may be given again.")
@_with(*_limits, _json, _quiet)
def explore(**options: Any) -> int:
    """Explore REPO (a path inside a git repository, or a plain folder) and answer QUESTION."""
    from orchestrator.commands.explore import explore as run

    return run(**options)


@leadline.command()
@click.argument("session", required=False)
@_with(*_limits, _json, _quiet)
@click.option("--takeover", is_flag=True, help="Take over a session whose holder is gone but whose lock is not.")
@click.option("--retry-failed", is_flag=True, help="Only run again what did not finish; plan nothing new.")
@click.option("--rebase", is_flag=True, help="Go on at what the repository holds now; ask again what changed.")
def resume(**options: Any) -> int:
    """Go on with an interrupted SESSION (default: the newest one of this repository)."""
    from orchestrator.commands.explore import resume as run

    return run(**options)


@leadline.command()
@click.argument("session")
@click.argument("question", required=False)
@_with(*_limits, _json, _quiet)
def ask(**options: Any) -> int:
    """Ask SESSION one more QUESTION: what it found is known, only what is missing is explored.

    Without QUESTION it reads one a line; /findings, /cost, /context, /compact and /quit do what they say.
    """
    from orchestrator.commands.ask import ask as run

    return run(**options)


@leadline.command()
@_with(_json)
def sessions(**options: Any) -> int:
    """List all sessions: live, interrupted, stopped at a limit, finished, damaged."""
    from orchestrator.commands.sessions import sessions as run

    return run(**options)


@leadline.command()
@click.argument("session")
@click.option("--findings", "what", flag_value="findings", help="Its findings with their citations.")
@click.option("--manifest", "what", flag_value="manifest", help="Its manifest as stored.")
@click.option("--tasks", "what", flag_value="tasks", help="Its tasks and how each one ended.")
@click.option("--cost", "what", flag_value="cost", help="What each subagent took, in tokens and money.")
@click.option("--context", metavar="TASK", help="What the next request of a subagent would be made of.")
@click.option("--turn", type=click.IntRange(min=1), help="With --context: the request that was sent at this turn.")
@_with(_json)
def show(**options: Any) -> int:
    """Show the answer of SESSION, or another part of it."""
    from orchestrator.commands.sessions import show as run

    return run(**options)


@leadline.command()
@click.argument("ref")
@click.option("--session", help="Look in this session only.")
@_with(_json)
def evidence(**options: Any) -> int:
    """Print what a tool showed to a model when it made a finding, as stored. REF: sha256:<hex>, or its first digits."""
    from orchestrator.commands.sessions import evidence as run

    return run(**options)


@leadline.command()
@_repo
@click.argument("query", required=False)
@click.option("--query-file", metavar="FILE", help="Read the query from FILE (- for standard input).")
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="Most files to print.")
@click.option("--scope", multiple=True, metavar="PATH", help="Only look below this path of REPO; may be given again.")
@_with(_json, _quiet)
def find(**options: Any) -> int:
    """Rank the files and symbols of REPO for QUERY, each with the reason why."""
    from orchestrator.commands.code import find as run

    return run(**options)


@leadline.command(name="map")
@_repo
@click.option("--scope", multiple=True, metavar="PATH", help="Only look below this path of REPO; may be given again.")
@_with(_json, _quiet)
def map_(**options: Any) -> int:
    """Print the repository brief: languages, packages, entry points, layers, cycles, hubs, docs."""
    from orchestrator.commands.code import map_ as run

    return run(**options)


@leadline.command()
@click.argument("session", nargs=-1)
@click.option("--finished", is_flag=True, help="Remove all finished sessions.")
@click.option(
    "--older-than", type=click.IntRange(min=0), metavar="DAYS", help="Remove sessions not used for DAYS days."
)
@click.option("--cache", is_flag=True, help="Remove the code index; it is built again when needed.")
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@_with(_json)
def clean(**options: Any) -> int:
    """Remove sessions or the cache. A live session is never removed."""
    from orchestrator.commands.sessions import clean as run

    return run(**options)


@leadline.command()
@click.argument("session", required=False)
@click.option("--repair", is_flag=True, help="Save what is sound of SESSION into a new session; the old one stays.")
@_with(_json)
def doctor(**options: Any) -> int:
    """Check SESSION, or all: files, checksums, references, citations against the snapshot, sums.

    Says what is damaged and what can be saved. Exit code 3 if anything is damaged.
    """
    from orchestrator.commands.doctor import doctor as run

    return run(**options)


@leadline.group(name="eval")
def eval_() -> None:
    """Measure what the configured model makes of what it is sent."""


@eval_.command()
@click.option(
    "--lengths",
    default="8000,32000,100000",
    show_default=True,
    metavar="N,N,...",
    help="Lengths of the contexts in tokens; those past the model's window are left out.",
)
@click.option("--facts", type=click.IntRange(1, 20), default=3, show_default=True, help="Facts planted in each place.")
@click.option("--model", help="Model to ask (default: the one that subagents use).")
@_with(*_money, _yes, _json, _quiet)
def recall(**options: Any) -> int:
    """Ask a model for facts planted in long contexts, as they are, cleared and compacted.

    Facts stand at the start, in the middle and at the end; some were recorded as findings, some only shown. Prints
    how many of each come back.
    """
    from orchestrator.commands.evaluate import recall as run

    return run(**options)
