"""A conversation that its client keeps, and how a runner is told of it."""

from __future__ import annotations

from typing import Any

from tests.support.client import Client

CALL = {"id": "call_1", "type": "function", "function": {"name": "load", "arguments": '{"kg":100}'}}
STORY: list[dict[str, Any]] = [
    {"role": "system", "content": "Talk like a pirate."},
    {"role": "user", "content": "first question"},
    {"role": "assistant", "content": "first answer"},
    {"role": "user", "content": "second question"},
    {"role": "assistant", "content": "", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "call_1", "content": '{"plates":4}'},
    {"role": "assistant", "content": "second answer"},
    {"role": "user", "content": "third question"},
]


TOLD = [
    ("user", "message", "first question", None),
    ("assistant", "message", "first answer", None),
    ("user", "message", "second question", None),
    ("assistant", "tool_call", "", {"role": "assistant", "content": "", "tool_calls": [CALL]}),
    (
        "tool",
        "tool_result",
        '{"plates":4}',
        {"role": "tool", "content": '{"plates":4}', "tool_call_id": "call_1"},
    ),
    ("assistant", "message", "second answer", None),
]


def chat(client: Client, said: list[dict[str, Any]], **more: Any) -> Any:
    body = {"model": "demo", "messages": said} | more
    return client.http.post("/v1/chat/completions", json=body)
