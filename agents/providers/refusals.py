"""The meaning of a provider's refusal: by the words of its error body, or else by its status.

Only the closed words of a body are read (`code`, `type`, `status`, `reason`), and only to be
compared; nothing of it is passed on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

from agents.providers.base import ProviderError

_MESSAGES: Final = {
    "provider_bad_request": "The model provider refused the request as malformed.",
    "provider_auth_error": "The model provider refused the endpoint's key.",
    "provider_quota_exceeded": "The model provider's account has no credit left.",
    "provider_model_not_found": "The model provider does not know this model or address.",
    "provider_rate_limited": "The model provider is limiting our rate.",
    "provider_unavailable": "The model provider is overloaded or out of order.",
    "provider_context_exceeded": "The conversation is longer than the model takes.",
    "provider_content_filtered": "The model provider's filter refused the request.",
}
_RETRYABLE: Final = {"provider_rate_limited", "provider_unavailable"}
_STATUSES: Final = {
    400: "provider_bad_request",
    401: "provider_auth_error",
    402: "provider_quota_exceeded",
    403: "provider_auth_error",
    404: "provider_model_not_found",
    408: "provider_unavailable",
    413: "provider_bad_request",
    422: "provider_bad_request",
    429: "provider_rate_limited",
}
_KINDS: Final = {
    # OpenAI, and other servers of its wires
    "context_length_exceeded": "provider_context_exceeded",
    "content_filter": "provider_content_filtered",
    "content_policy_violation": "provider_content_filtered",
    "insufficient_quota": "provider_quota_exceeded",
    "billing_hard_limit_reached": "provider_quota_exceeded",
    "invalid_api_key": "provider_auth_error",
    "invalid_prompt": "provider_bad_request",
    "model_not_found": "provider_model_not_found",
    "rate_limit_exceeded": "provider_rate_limited",
    "server_error": "provider_unavailable",
    "server_is_overloaded": "provider_unavailable",
    # Anthropic
    "api_error": "provider_unavailable",
    "authentication_error": "provider_auth_error",
    "billing_error": "provider_quota_exceeded",
    "not_found_error": "provider_model_not_found",
    "overloaded_error": "provider_unavailable",
    "permission_error": "provider_auth_error",
    "rate_limit_error": "provider_rate_limited",
    "timeout_error": "provider_unavailable",
    # Gemini
    "API_KEY_INVALID": "provider_auth_error",
    "DEADLINE_EXCEEDED": "provider_unavailable",
    "INTERNAL": "provider_unavailable",
    "NOT_FOUND": "provider_model_not_found",
    "PERMISSION_DENIED": "provider_auth_error",
    "RESOURCE_EXHAUSTED": "provider_rate_limited",
    "UNAUTHENTICATED": "provider_auth_error",
    "UNAVAILABLE": "provider_unavailable",
}
Facts = dict[str, Any]
_DELAY: Final = re.compile(r"(\d{1,6}(?:\.\d{1,9})?)s", re.ASCII)


def refusal_error(status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
    """Return the error for a response that is no stream."""
    error = _error_in(body)
    wait = _retry_after(headers)
    code = _kind(error) or _code(status)
    if code == "provider_unavailable" and status < 500:  # a vague word with an exact status
        code = _code(status)
    if status == 413 and code == "provider_bad_request":
        message = "The model provider refused the request as too large."
    elif code == "provider_unavailable":
        message = f"The model provider answered {status}."
    else:
        message = _MESSAGES.get(code, f"The model provider answered {status}, which is no stream.")
    return ProviderError(
        code,
        message,
        retryable=code in _RETRYABLE,
        retry_after_s=_delay(error) if wait is None else wait,
    )


def stream_error(error: object) -> ProviderError:
    """Return the error for an error event inside a stream."""
    facts = error if isinstance(error, dict) else {}
    numbers = (facts.get("code"), facts.get("status_code"))  # the HTTP status that it would have had
    statuses = (_code(number) for number in numbers if isinstance(number, int))
    code = _kind(facts) or next(statuses, "provider_error")
    message = _MESSAGES.get(code, "The model provider reported an error in its stream.")
    return ProviderError(code, message, retryable=code in _RETRYABLE, retry_after_s=_delay(facts))


def interrupted_error() -> ProviderError:
    return ProviderError(
        "provider_stream_interrupted",
        "The model provider's stream broke off before its end.",
        retryable=True,
    )


def invalid_response_error() -> ProviderError:
    return ProviderError("provider_invalid_response", "The model provider sent something unreadable.")


def _code(status: int) -> str:
    return "provider_unavailable" if status >= 500 else _STATUSES.get(status, "provider_error")


def _error_in(body: bytes) -> Facts:
    """Return the error object of a body: `{"error": …}`, or a list with that, as Gemini sends it."""
    try:
        found = json.loads(body or b"null")
    except (ValueError, RecursionError):
        return {}
    match found:
        case {"error": dict(error)} | [{"error": dict(error)}, *_]:
            return error
    return {}


def _kind(error: Facts) -> str | None:
    """Return our code for the most exact known word of the error."""
    reasons = (detail.get("reason") for detail in _details(error))
    words = (error.get("code"), *reasons, error.get("type"), error.get("status"))
    return next((_KINDS[word] for word in words if isinstance(word, str) and word in _KINDS), None)


def _details(error: Facts) -> list[Facts]:
    found = error.get("details")
    return [detail for detail in found if isinstance(detail, dict)] if isinstance(found, list) else []


def _delay(error: Facts) -> float | None:
    """Return the seconds of Gemini's RetryInfo, which is in the body."""
    delays = (_DELAY.fullmatch(str(detail.get("retryDelay", ""))) for detail in _details(error))
    return next((float(found[1]) for found in delays if found), None)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Return `Retry-After` as seconds; a date is by the provider's clock (RFC 9110 §10.2.3)."""
    value = headers.get("retry-after", "")
    if value.isascii() and value.isdigit():
        return float(value[:9])
    until = _date(value)
    now = _date(headers.get("date", "")) or datetime.now(UTC)
    return None if until is None else max(0.0, (until - now).total_seconds())


def _date(value: str) -> datetime | None:
    try:
        found = parsedate_to_datetime(value)
    except (ValueError, TypeError, IndexError):
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
