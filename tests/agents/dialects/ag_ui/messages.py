"""Messages as AG-UI clients send them, and what such a client has seen of a run."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

Seen = dict[str, Any]


WEATHER = {
    "name": "get_weather",
    "description": "The weather of a city",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


def user(text: Any, message_id: str | None = None) -> dict[str, Any]:
    return {"id": message_id or str(uuid4()), "role": "user", "content": text}


def params(script: str | None = None, **more: Any) -> dict[str, Any]:
    props = {"model": "demo"} | ({"script": script} if script else {})
    return {"forwardedProps": props} | more


def sound(seen: Seen) -> Seen:
    """Nothing that the client complains about."""
    assert seen["failure"] is None, seen["failure"]
    assert seen["warnings"] == []
    return seen


def shape(seen: Seen) -> list[Any]:
    """The messages without what differs between two runs of one script; activities come last.

    For a client that comes back those stand behind what was said, wherever they stood before.
    """
    in_order = sorted(seen["messages"], key=lambda m: m["role"] == "activity")
    return [
        (m["role"], m.get("content"), [c["function"] for c in m.get("toolCalls", [])]) for m in in_order
    ]
