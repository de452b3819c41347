"""A tool that sends mail once somebody has approved it, and the answers to such a call."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from tests.support.client import Client

SEND = {
    "type": "object",
    "properties": {"to": {"type": "string"}, "text": {"type": "string"}},
    "required": ["to", "text"],
    "additionalProperties": False,
}


HI = {"to": "ann", "text": "hi"}


class Mail:
    """A tool with an effect; it keeps what it was called with, and may be made to wait."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.begun = asyncio.Event()
        self.holds = False

    async def call(self, arguments: dict[str, Any]) -> dict[str, Any]:
        self.sent.append(arguments)
        self.begun.set()
        if self.holds:
            await asyncio.sleep(60)
        return {"sent_to": arguments["to"]}


def approvals(client: Client, **asked: str) -> list[dict[str, Any]]:
    """The client's approvals that match."""
    response = client.http.get("/api/v1/agent/approvals", params=asked)
    assert response.status_code == 200, response.text
    found: list[dict[str, Any]] = response.json()["approvals"]
    return found


def decide(client: Client, approval: dict[str, Any], **decision: Any) -> Any:
    """Answer one of the approvals."""
    return client.http.post(f"/api/v1/agent/approvals/{approval['id']}", json=decision)


def send(call_id: str = "c1", **arguments: Any) -> tuple[str, str, str]:
    """A call of the tool, as a model makes it."""
    return call_id, "test.send", json.dumps(HI | arguments)
