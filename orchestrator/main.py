"""The process: runs the command line, turns what we raise on purpose into one line and an exit code."""

from __future__ import annotations

import errno
import io
import os
import sys

_KEYS = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_BEARER_TOKEN_BEDROCK",
)


def main() -> None:
    """Entry point of the `leadline` command. Exit codes: docs/cli.md."""
    # Starting a thread for each core costs numpy's import 30 ms, and ranking multiplies small matrices only.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from orchestrator.streams import mend

    if not mend():
        print("leadline: standard output is closed\n  send it to a file, or to /dev/null", file=sys.stderr)
        sys.exit(2)
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """The exit code of one call. Nothing else in the project exits or prints a traceback."""
    import click

    from manifests.errors import LeadlineError
    from orchestrator.cli import leadline
    from orchestrator.terminal import printable

    if any(os.environ.get(name) for name in _KEYS):
        from scratch.redaction import know_own_secrets

        know_own_secrets(os.environ.get(name, "") for name in _KEYS)
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
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            return _report_bug(error)
        return _no_space(error)
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
    from orchestrator.streams import drop_output

    drop_output()
    return 141


def _no_space(error: OSError) -> int:
    """Not the state, whose errors say so themselves: the temporary folder, or what standard output is sent to."""
    import tempfile

    from orchestrator.streams import drop_output

    where = f"{error.filename!r}" if error.filename else f"standard output, or in {tempfile.gettempdir()!r} (TMPDIR)"
    print(f"leadline: {error.strerror}: {where}", file=sys.stderr)
    print("  free some space there; an answer is kept in its session: leadline sessions", file=sys.stderr)
    drop_output()
    return 3
