"""The process: runs the command line, turns what we raise on purpose into one line and an exit code."""

from __future__ import annotations

import io
import os
import sys


def main() -> None:
    """Entry point of the `leadline` command. Exit codes: docs/cli.md."""
    # Starting a thread for each core costs numpy's import 30 ms, and ranking multiplies small matrices only.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """The exit code of one call. Nothing else in the project exits or prints a traceback."""
    import click

    from manifests.errors import LeadlineError
    from orchestrator.cli import leadline
    from orchestrator.terminal import printable

    try:
        code = leadline.main(args=arguments, prog_name="leadline", standalone_mode=False)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        shown = io.StringIO()
        error.show(file=shown)
        print(printable(_redacted(shown.getvalue())), end="", file=sys.stderr)
        return 2 if isinstance(error, click.UsageError) else error.exit_code
    except (click.Abort, KeyboardInterrupt):
        print("interrupted", file=sys.stderr)
        return 130
    except LeadlineError as error:
        print(printable(_redacted(f"leadline: {error}\n  {error.hint}")), file=sys.stderr)
        return error.exit_code
    except (BrokenPipeError, SystemExit):  # click turns the first into the second
        return _closed_pipe()
    except Exception as error:  # noqa: BLE001 - the last line of defence: a bug is reported, never a traceback
        return _report_bug(error)
    return code if isinstance(code, int) else 0


def _redacted(text: str) -> str:
    from scratch.redaction import redact_text

    return redact_text(text)[0]


def _report_bug(error: Exception) -> int:
    """One redacted line for the person, and where it happened for the one who mends it."""
    import traceback

    from orchestrator.terminal import printable

    last = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{last.filename.rpartition('/')[2]}:{last.lineno}"
    print(printable(_redacted(f"leadline: unexpected {type(error).__name__} at {place}: {error}")), file=sys.stderr)
    print("  this is a bug; the session, if one was started, can be resumed: leadline sessions", file=sys.stderr)
    return 1


def _closed_pipe() -> int:
    """The reader of our output went away (`| head`): nothing to say, and nobody to say it to."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 141
