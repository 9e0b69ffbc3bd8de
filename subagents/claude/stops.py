"""What each way a request can end means for the loop: every stop reason and every exception of the SDK, on purpose.

Foreign exceptions are translated here and nowhere else. The tables name classes, so that importing this module does
not import the SDK; a test walks the SDK's stop reasons and exceptions and fails on one that is not in a table.

    Trouble
    ├── Throttled        wait with everybody (the shared brake), then try again
    ├── Broken           this reply was malformed or cut: try again, a few times
    ├── TooLong          the request does not fit the window: shrink, once more
    ├── TooLarge         the body is too many bytes: shrink, once more
    ├── Refused400       a request of ours was invalid: a defect, named
    └── Closed           no request of this session can succeed: stop, resumable
"""

from __future__ import annotations

import json
from typing import Literal

from manifests.errors import EngineError, LeadlineError, UsageError

StopAction = Literal["finish", "act", "cut", "go_on", "refused", "full"]

STOP_ACTIONS: dict[str, StopAction] = {
    "end_turn": "finish",
    "stop_sequence": "finish",  # none is ever sent, so an endpoint's own: the reply is complete as it is
    "tool_use": "act",
    "max_tokens": "cut",
    "pause_turn": "go_on",
    "compaction": "go_on",
    "refusal": "refused",
    "model_context_window_exceeded": "full",
}


def stop_action(reason: str) -> StopAction:
    """What to do after a reply that stopped so. Raises EngineError for a reason nobody knows: never "done"."""
    action = STOP_ACTIONS.get(reason)
    if action is None:
        raise EngineError(
            f"unknown stop reason {reason!r}",
            hint="the endpoint is newer than this leadline: upgrade it; the session is saved and resumes",
        )
    return action


# --- trouble ----------------------------------------------------------------------------------------------------

TroubleKind = Literal["throttled", "broken", "too_long", "too_large", "bad_request", "closed", "usage", "cancelled"]


class Trouble(Exception):
    """A request that gave no usable reply. `kind` says what may be done about it."""

    def __init__(
        self,
        kind: TroubleKind,
        message: str,
        *,
        retry_after_s: float | None = None,
        status: int = 0,
        may_be_charged: bool = False,
        never_sent: bool = False,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.retry_after_s = retry_after_s
        self.status = status
        self.never_sent = never_sent
        """The connection failed before the request left."""
        self.may_be_charged = may_be_charged
        """The request may have reached a model, whose reply was lost: its cost is unknown, not zero."""


class SessionClosed(EngineError):
    """The endpoint refuses the key or the account: no request of this session can succeed."""


BY_CLASS: dict[str, TroubleKind] = {
    # by status
    "BadRequestError": "bad_request",
    "AuthenticationError": "closed",
    "PaymentRequiredError": "closed",
    "PermissionDeniedError": "closed",
    "NotFoundError": "usage",
    "RequestTimeoutError": "throttled",
    "ConflictError": "throttled",
    "PreconditionFailedError": "bad_request",
    "ContentTooLargeError": "too_large",
    "UnprocessableEntityError": "bad_request",
    "RateLimitError": "throttled",
    "RequestHeaderFieldsTooLargeError": "bad_request",
    "ClientClosedRequestError": "throttled",
    "InternalServerError": "throttled",
    "HTTPNotImplementedError": "usage",
    "ServiceUnavailableError": "throttled",
    "GatewayTimeoutError": "throttled",
    "OverloadedError": "throttled",
    # without one
    "APIConnectionError": "throttled",
    "APITimeoutError": "throttled",
    "APIResponseValidationError": "broken",
    "APIWebhookValidationError": "usage",
    "RetryableError": "throttled",
    "CredentialsError": "closed",
    "IdentityTokenFileError": "closed",
    "WorkloadIdentityError": "closed",
    "MutuallyExclusiveAuthError": "usage",
    "MissingDependencyError": "usage",
    "StreamAlreadyConsumed": "broken",
    # of the SDK's own tools, which are never used here
    "ToolsetClosedError": "usage",
    "ToolsetConfigError": "usage",
    "ToolsetContractError": "usage",
    "ToolsetUsageError": "usage",
    "ToolsetsFixedError": "usage",
    # told inside a stream, or of a status without a class: by its error type, below
    "APIStatusError": "broken",
}
"""A subclass with an error code of its own is treated as its status, unless it is named here."""

BY_ERROR_TYPE: dict[str, TroubleKind] = {
    "invalid_request_error": "bad_request",
    "authentication_error": "closed",
    "billing_error": "closed",
    "permission_error": "closed",
    "not_found_error": "usage",
    "request_too_large": "too_large",
    "rate_limit_error": "throttled",
    "timeout_error": "throttled",
    "api_error": "throttled",
    "overloaded_error": "throttled",
    "conflict_error": "throttled",
}

_NEVER_SENT = {"ConnectError", "ConnectTimeout", "PoolTimeout", "InvalidURL", "UnsupportedProtocol"}
"""Exceptions of the SDK's HTTP library after which nothing can have been charged."""
_CLOUDS = {"boto3", "botocore", "google", "azure"}
"""Packages that fetch the credentials of a cloud; what they raise, they raise before anything was sent."""


def trouble_of(error: Exception) -> Trouble:
    """Translate whatever sending raised. An exception that is neither the SDK's nor the network's is raised again."""
    if isinstance(error, Trouble):
        return error
    names = [cls.__name__ for cls in type(error).__mro__]
    module = type(error).__module__.partition(".")[0]
    if module == "anthropic":
        return _of_sdk(error, names)
    if module in ("httpx2", "httpx", "httpcore", "httpcore2", "h11") or isinstance(error, OSError):
        kind: TroubleKind = "usage" if {"InvalidURL", "UnsupportedProtocol"} & set(names) else "throttled"
        unsent = bool(_NEVER_SENT & set(names))
        return Trouble(
            kind,
            f"connection: {type(error).__name__}: {error}".rstrip(": "),
            may_be_charged=not unsent,
            never_sent=unsent,
        )
    if isinstance(error, json.JSONDecodeError | UnicodeDecodeError):
        return Trouble("broken", f"the reply is not JSON: {error}")
    if module in _CLOUDS or (isinstance(error, RuntimeError) and "AWS credentials" in str(error)):
        return Trouble("closed", f"{type(error).__name__}: {_one_line(str(error))}")
    raise error


def _of_sdk(error: Exception, names: list[str]) -> Trouble:
    kind = next((BY_CLASS[name] for name in names if name in BY_CLASS), None)
    if names[0] == "AnthropicError":  # what a cloud's client cannot do at all, e.g. count tokens
        kind = "usage"
    if kind is None:
        raise error
    status = getattr(error, "status_code", 0) or 0
    text = str(getattr(error, "api_message", None) or getattr(error, "message", None) or error)
    if type(error).__name__ == "APIStatusError" or status == 200:
        kind = _by_type(error, status, kind)
    kind = _by_text(kind, getattr(error, "error_code", None), text)
    unsent = status == 0 and _was_never_sent(error)
    return Trouble(
        kind,
        _one_line(text),
        retry_after_s=_retry_after(error),
        status=status,
        may_be_charged=status == 0 and not unsent,
        never_sent=unsent,
    )


def trouble_in_stream(data: bytes) -> Trouble:
    """What an `error` event in a stream means; `data` is its JSON, if it is any."""
    try:
        body = json.loads(data)
    except ValueError:
        body = None
    told = body.get("error") if isinstance(body, dict) else None
    error = told if isinstance(told, dict) else {}
    text = str(error.get("message") or data.decode("utf-8", "replace") or "an error without a message")
    kind = BY_ERROR_TYPE.get(str(error.get("type", "")), "broken")
    return Trouble(_by_text(kind, error.get("error_code"), text), _one_line(text), status=200)


def _was_never_sent(error: Exception) -> bool:
    """Whether the connection failed before the request left; the SDK keeps the network's own exception as cause."""
    cause: BaseException | None = error
    while cause is not None:
        if type(cause).__name__ in _NEVER_SENT or "Credentials" in type(cause).__name__:
            return True
        cause = cause.__cause__ or cause.__context__
    return False


def _by_type(error: Exception, status: int, otherwise: TroubleKind) -> TroubleKind:
    named = BY_ERROR_TYPE.get(str(getattr(error, "type", "")))
    if named is not None:
        return named
    if 400 <= status < 500:
        return "bad_request"
    return "throttled" if status >= 500 else otherwise


def _by_text(kind: TroubleKind, error_code: object, text: str) -> TroubleKind:
    """What is told as an invalid request and is none: a full window, an empty account."""
    if kind in ("bad_request", "too_large") and _is_too_long(error_code, text):
        return "too_long"
    if kind == "bad_request" and "credit balance" in text.lower():
        return "closed"
    return kind


def _is_too_long(error_code: object, text: str) -> bool:
    """A full window is told as an invalid request; compatible servers word it in their own ways."""
    code = str(error_code or "")
    lowered = text.lower()
    return "prompt_too_long" in code or any(
        words in lowered
        for words in (
            "prompt is too long",
            "context length",
            "context window",
            "exceeds the available context",
            "n_ctx",
        )
    )


def _retry_after(error: Exception) -> float | None:
    response = getattr(error, "response", None)
    headers = getattr(response, "headers", None)
    if headers is None:
        return None
    return retry_after_s(headers.get("retry-after-ms"), headers.get("retry-after"))


def retry_after_s(milliseconds: str | None, text: str | None) -> float | None:
    """Seconds the server asks to wait, out of its two headers; an HTTP date is understood, nonsense is no wait."""
    for value, scale in ((milliseconds, 0.001), (text, 1.0)):
        if value is None:
            continue
        try:
            seconds = float(value) * scale
        except ValueError:
            continue
        if seconds == seconds and seconds >= 0:  # not NaN
            return seconds
    if text:
        import email.utils
        import time

        parsed = email.utils.parsedate_tz(text)
        if parsed is not None:
            return max(0.0, email.utils.mktime_tz(parsed) - time.time())
    return None


def _one_line(text: str, limit: int = 300) -> str:
    folded = " ".join(text.split())
    return folded if len(folded) <= limit else f"{folded[:limit]} [...]"


def as_error(trouble: Trouble, *, after_edit: str = "") -> LeadlineError:
    """What the person at the terminal is told when a trouble ends the session. `after_edit` names the last edit."""
    text = str(trouble)
    if trouble.kind == "closed":
        return SessionClosed(
            f"the endpoint refused this session ({trouble.status or 'credentials'}): {text}",
            hint="check the key, its permissions and the account (ANTHROPIC_API_KEY), then `leadline resume`",
        )
    if trouble.kind == "usage":
        return UsageError(
            f"the endpoint does not have what was asked for ({trouble.status or 'address'}): {text}",
            hint="check the model's name and ANTHROPIC_BASE_URL, then `leadline resume`",
        )
    if trouble.kind == "bad_request":
        seam = f", after {after_edit}" if after_edit else ""
        return EngineError(
            f"the endpoint refused a request as invalid{seam}: {text}",
            hint="if model and settings are right, this is a defect of leadline: report it; the session is saved",
        )
    if trouble.kind in ("too_long", "too_large"):
        return EngineError(
            f"the request does not fit, even shrunk: {text}",
            hint="set window_tokens to what the model really has, or use a model with a larger window",
        )
    return EngineError(
        f"the endpoint gave no usable reply: {text}",
        hint="try later: the session is saved, `leadline resume` continues it",
    )
