"""Bodies of AG-UI with a long history, and where they are sent."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

AG_UI = "/api/v1/agent/ag-ui"
RUNS = "/api/v1/agent/runs"


def history(kib: int) -> dict[str, Any]:
    """A conversation of about this size, as an AG-UI client sends it each turn."""
    said = [
        {"id": str(place), "role": "assistant" if place % 2 else "user", "content": "word " * 200}
        for place in range(kib)
    ]
    asked = {"id": "last", "role": "user", "content": "hi"}
    props = {"model": "demo"}
    return {
        "threadId": str(uuid4()),
        "runId": "r1",
        "messages": [*said, asked],
        "state": {},
        "tools": [],
        "context": [],
        "forwardedProps": props,
    }
