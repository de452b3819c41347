"""What every refusal of the API looks like."""

from __future__ import annotations

from typing import Any

import httpx


def check_error(response: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """Assert that it is refused so, in the one shape; its body."""
    body: dict[str, Any] = response.json()
    assert (response.status_code, body["code"]) == (status, code), body
    assert body["detail"]
    assert body["request_id"] == response.headers["x-request-id"]
    assert "Traceback" not in response.text
    assert response.headers["cache-control"] == "no-store"
    assert response.headers["x-content-type-options"] == "nosniff"
    return body
