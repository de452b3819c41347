"""An error in the words of the address at which it is met (config.errors.body)."""

from __future__ import annotations

from typing import Any

import pytest

from config import errors
from config.http.body_limits import TOO_LARGE

WRONG = errors.InvalidRequest(
    "The body is not valid.", errors=[{"loc": ["body", "tools", 0, "name"], "msg": "is required"}]
)
CHOICE = errors.InvalidRequest("No.", code="x", param="tool_choice")
QUOTA = errors.TooManyRequests("Used up.", code="budget_exceeded", retry_after=60)


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/models", "/compatible-mode/v1/responses/x"])
@pytest.mark.parametrize(
    ("error", "kind", "param"),
    [
        (WRONG, "invalid_request_error", "tools[0].name"),
        (CHOICE, "invalid_request_error", "tool_choice"),
        (errors.PayloadTooLarge(TOO_LARGE), "invalid_request_error", None),
        (errors.NotFound(), "invalid_request_error", None),
        (errors.Conflict(), "invalid_request_error", None),
        (errors.Unauthorized(code="token_expired"), "authentication_error", None),
        (errors.Forbidden(), "permission_error", None),
        (errors.TooManyRequests(retry_after=1), "rate_limit_error", None),
        (QUOTA, "insufficient_quota", None),
        (errors.Unavailable(), "server_error", None),
        (errors.ParleyError(), "server_error", None),
    ],
)  # fmt: skip
def test_openai_s_clients_read_error(
    path: str, error: errors.ParleyError, kind: str, param: str | None
) -> None:
    told = errors.body(error, path)
    assert told["error"] == {
        "message": error.detail,
        "type": kind,
        "param": param,
        "code": error.error_code,
    }
    assert told["detail"] == error.detail
    assert "msg" not in told


@pytest.mark.parametrize("path", ["/process", "/process/task/x", "/api/v1/agent/process"])
def test_the_agent_api_s_error_has_code_and_message(path: str) -> None:
    told = errors.body(errors.Unauthorized(code="token_missing"), path)
    assert told["error"] == {"code": "token_missing", "message": told["detail"]}
    assert told.keys() == {"detail", "code", "request_id", "error"}


@pytest.mark.parametrize("path", ["", "/api/v1/agent/runs", "/api/v1/agent/ag-ui", "/storage/v1/x"])
def test_elsewhere_it_is_ours(path: str) -> None:
    told: dict[str, Any] = errors.body(errors.NotFound(), path)
    assert told.keys() == {"detail", "code", "request_id"}
    refused = errors.body(errors.Unauthorized(code="token_missing"), path)
    assert (refused["status"], refused["msg"], refused["message"]) == (
        401,
        "token_missing",
        refused["detail"],
    )
