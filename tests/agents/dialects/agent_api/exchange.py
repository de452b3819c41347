"""What a client of the Agent API sends, and the frames that it gets."""

from __future__ import annotations

import json
from typing import Any

import httpx

from tests.support.client import Client

TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}


def said(text: str, role: str = "user") -> dict[str, Any]:
    return {"role": role, "type": "message", "content": [{"type": "text", "text": text}]}


def process(client: Client, *messages: dict[str, Any], **more: Any) -> httpx.Response:
    return client.http.post("/process", json={"input": list(messages), "model": "demo", **more})


def frames(response: httpx.Response) -> list[dict[str, Any]]:
    """The objects of a stream, and that it is framed as the contract says."""
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert "\r" not in response.text
    found = []
    for block in response.text.removesuffix("\n\n").split("\n\n"):
        if '"type":"heartbeat"' not in block:
            place, data = block.split("\n")
            found.append(json.loads(data.removeprefix("data: ")))
            assert place == f"id: {found[-1]['sequence_number']}"
    return found
