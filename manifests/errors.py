"""Everything Leadline raises on purpose, and what the process exits with.

LeadlineError            1
├── UsageError           2   the person can fix the call or the configuration
├── StateError           3   what is on disk cannot be trusted, or is held by another process
├── EngineError          4   the engine failed after all retries; the session resumes
└── LimitReached         5   before there was anything to answer from
"""


class LeadlineError(Exception):
    """Base of all we raise on purpose. `hint` tells the person at the terminal what to do next."""

    exit_code = 1

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


class UsageError(LeadlineError):
    """The call or the configuration is wrong."""

    exit_code = 2


class StateError(LeadlineError):
    """State on disk is damaged, foreign, too new, or held by another process."""

    exit_code = 3


class EngineError(LeadlineError):
    """The engine (model endpoint, index, search) refused or failed after all retries."""

    exit_code = 4


class LimitReached(LeadlineError):
    """A limit of this call was met before the session had begun."""

    exit_code = 5
