"""Every error that clients get, in one tree and one format.

    ParleyError                     500 internal_error
    ├── MalformedRequest            400 malformed_request
    ├── BodyTooSlow                 408 request_timeout
    ├── HeadTooLarge                431 headers_too_large
    ├── InvalidRequest              422 invalid_request (and subclasses with codes of their own)
    │   ├── PayloadTooLarge         413 payload_too_large
    │   └── UnsupportedMedia        415 unsupported_media_type
    ├── Unauthorized                401 (the code says why: token_missing, token_expired, …)
    ├── Forbidden                   403 forbidden
    ├── NotFound                    404 not_found
    ├── Conflict                    409 conflict
    ├── Gone                        410 gone
    ├── TooManyRequests             429 too_many_requests (Retry-After)
    ├── Unavailable                 503 unavailable (Retry-After)
    └── StorageFull                 507 storage_full

Code below the transport raises only these, and only `body()` renders them:
`{"detail", "code", "request_id", …facts}` (specs/run-agent-input.md §1, specs/text-run.md §6).
At addresses of another protocol they also have its `error` member: OpenAI's
`{"message", "type", "param", "code"}`, the Agent API's `{"code", "message"}` (seed 004, `Error`).
The message is for clients: Parley's own text, never `str(exc)` of a foreign exception. A class's
docstring is its default message.
"""

from __future__ import annotations

import json
from typing import Any, ClassVar, Final
from uuid import uuid4

import structlog

OPENAI_PATHS: Final = ("/v1/", "/compatible-mode/")
AGENT_API_PATHS: Final = ("/process", "/api/v1/agent/process")
_QUOTA_CODES: Final = frozenset(("model_daily_quota_exceeded", "budget_exceeded"))
_OPENAI_TYPES: Final = {
    401: "authentication_error",
    403: "permission_error",
    429: "rate_limit_error",
}


class ParleyError(Exception):
    """Something went wrong on our side; the request id finds it in the logs."""

    code: ClassVar[str] = "internal_error"
    status: ClassVar[int] = 500

    def __init__(
        self,
        detail: str = "",
        *,
        code: str = "",
        retry_after: int | None = None,
        **facts: Any,
    ) -> None:
        self.detail = detail or " ".join((type(self).__doc__ or "").split())
        self.error_code = code or self.code
        self.retry_after = retry_after
        self.facts = facts
        super().__init__(self.detail)


class MalformedRequest(ParleyError):
    """This is not valid HTTP: look at the characters of the address and of the headers."""

    code = "malformed_request"
    status = 400


class BodyTooSlow(ParleyError):
    """The request body did not arrive in time."""

    code = "request_timeout"
    status = 408


class HeadTooLarge(ParleyError):
    """The request line and the headers are too large: at most 64 KiB are taken."""

    code = "headers_too_large"
    status = 431


class InvalidRequest(ParleyError):
    """The request is not valid."""

    code = "invalid_request"
    status = 422


class PayloadTooLarge(InvalidRequest):
    """The request body is larger than this endpoint accepts."""

    code = "payload_too_large"
    status = 413


class UnsupportedMedia(InvalidRequest):
    """The file is no image of a kind that is taken here: JPEG, PNG, WebP or GIF."""

    code = "unsupported_media_type"
    status = 415


class Unauthorized(ParleyError):
    """A valid token is needed: send Authorization: Bearer <token>."""

    code = "unauthorized"
    status = 401


class Forbidden(ParleyError):
    """This account may not do that."""

    code = "forbidden"
    status = 403


class NotFound(ParleyError):
    """There is no such thing here."""

    code = "not_found"
    status = 404


class Conflict(ParleyError):
    """The request contradicts what is already stored."""

    code = "conflict"
    status = 409


class Gone(ParleyError):
    """This was here once and is no longer kept."""

    code = "gone"
    status = 410


class TooManyRequests(ParleyError):
    """Too many requests: wait as long as Retry-After says."""

    code = "too_many_requests"
    status = 429


class Unavailable(ParleyError):
    """The service cannot take this right now: try again after Retry-After seconds."""

    code = "unavailable"
    status = 503


class StorageFull(ParleyError):
    """There is no room for the file: staff must make some."""

    code = "storage_full"
    status = 507


def current_request_id() -> str:
    """Return the id of the current request, or of the run being executed, or ""."""
    return str(structlog.contextvars.get_contextvars().get("request_id", ""))


def body(error: ParleyError, path: str = "") -> dict[str, Any]:
    """Return the JSON of this error at this address.

    Parley's members stand beside those of another protocol, whose clients ignore them.
    """
    shape: dict[str, Any] = {
        "detail": error.detail,
        "code": error.error_code,
        "request_id": current_request_id(),
    }
    if f"{path}/".startswith(OPENAI_PATHS):
        shape["error"] = openai_error(error)
    elif path.startswith(AGENT_API_PATHS):
        shape["error"] = {"code": error.error_code, "message": error.detail}
    elif isinstance(error, Unauthorized):  # the format of seed 002 (specs/text-run.md §6)
        shape |= {"status": 401, "msg": error.error_code, "message": error.detail}
    return shape | error.facts


def openai_error(error: ParleyError) -> dict[str, Any]:
    """Return the error in OpenAI's format; `param` is the invalid field, if any."""
    return {
        "message": error.detail,
        "type": _openai_type(error),
        "param": error.facts.get("param") or _first_error_path(error),
        "code": error.error_code,
    }


def _openai_type(error: ParleyError) -> str:
    if error.error_code in _QUOTA_CODES:
        return "insufficient_quota"
    if error.status >= 500:
        return "server_error"
    return _OPENAI_TYPES.get(error.status, "invalid_request_error")


def _first_error_path(error: ParleyError) -> str | None:
    """Return the path of the first field error in OpenAI's notation: `tools[0].name`."""
    match error.facts.get("errors"):
        case [{"loc": [_, *keys]}, *_] if keys:
            return "".join(
                f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys
            ).removeprefix(".")
    return None


def render(error: ParleyError, path: str, request_id: str | None = None) -> tuple[dict[str, str], bytes]:
    """Return all headers and the body, for code that answers without Django."""
    request_id = request_id or uuid4().hex
    content = json.dumps(body(error, path) | {"request_id": request_id}).encode()
    more = {"content-type": "application/json", "content-length": str(len(content))}
    return headers(error) | more | {"x-request-id": request_id}, content


def headers(error: ParleyError) -> dict[str, str]:
    """Return the response headers of this error; they forbid caching and content sniffing."""
    found = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
    if error.retry_after is not None:
        found["Retry-After"] = str(error.retry_after)
    if isinstance(error, Unauthorized):
        found["WWW-Authenticate"] = "Bearer"
    if allowed := error.facts.get("allowed"):
        found["Allow"] = ", ".join(allowed)
    return found
