"""A tool with an effect that somebody must approve, and approving it."""

from __future__ import annotations

from typing import Any

import pytest

from agents.tools import registry
from agents.tools.base import Tool
from tests.support.client import Client
from tests.support.fakes.mcp_host import wait_until

CAREFUL = "test.careful"
_SCHEMA = {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]}


def offer_a_careful_tool(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Install it for one test; the list holds what it is called with."""
    sent: list[dict[str, Any]] = []

    async def send(arguments: dict[str, Any]) -> dict[str, Any]:
        sent.append(arguments)
        return {"sent_to": arguments["to"]}

    tool = Tool(CAREFUL, "Sends.", _SCHEMA, send, idempotent=False, timeout_s=30, requires_approval=True)
    known = {**registry._by_name(), CAREFUL: tool}
    monkeypatch.setattr(registry, "_by_name", lambda: known)
    return sent


def approve(client: Client, run: dict[str, Any], **decision: Any) -> str:
    """Decide on each of the run's interrupts (by default yes); the run that went on, once it ended."""
    ids = [one["id"] for one in run["interrupts"]]
    assert ids
    for one in ids:
        given = {"approve": True} | decision
        answer = client.http.post(f"/api/v1/agent/approvals/{one}", json=given)
        assert answer.status_code == 200, answer.text

    def told() -> str:
        shown = client.http.get(f"/api/v1/agent/approvals/{ids[-1]}").json()
        return str(shown["told_run_id"] or "")

    after: str = wait_until(told, 30)
    client.wait_for(after, "completed", "failed")
    return after
