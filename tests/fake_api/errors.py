"""Refusals of the fake, in the shape of the real API's: status, `error.type`, text and, where known, an error code."""

from __future__ import annotations

from collections.abc import Mapping

ERROR_TYPES: Mapping[int, str] = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    409: "conflict_error",
    413: "invalid_request_error",
    422: "invalid_request_error",
    429: "rate_limit_error",
    500: "api_error",
    502: "api_error",
    503: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}
"""Source: anthropic.types.shared.error_type; which one goes with 408, 413, 422 and 502 to 504 is assumed."""


class Refused(Exception):
    """A request that the API does not serve. `code`: `error.details.error_code`, which the SDK maps to a class."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str | None = None,
        kind: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.kind = kind or ERROR_TYPES.get(status, "api_error")
        self.headers = dict(headers or {})

    def body(self, request_id: str) -> dict[str, object]:
        """The JSON document that the API answers with."""
        error: dict[str, object] = {"type": self.kind, "message": self.message}
        if self.code:
            error["details"] = {"error_code": self.code}
        return {"type": "error", "error": error, "request_id": request_id}


def invalid(message: str, *, code: str | None = None) -> Refused:
    """A 400, by far the most frequent refusal."""
    return Refused(400, message, code=code)
