"""One conversation with all that a model-driven run can hold, and the transcript of its events.

`TRANSCRIPT=file pytest tests/end_to_end/test_whole_run.py` writes that transcript.
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import msgspec
import pytest
from PIL import Image
from pytest_django import Settings

from agents.models import McpServer
from agents.tools import registry
from agents.tools.base import Tool
from agents.tools.mcp.secret_pairs import delete_server
from config.database import run_sync
from conversations.events import RunEvent
from conversations.log import event_log
from prompts.endpoints import routing
from prompts.models import ModelMapping
from tests.conftest import Server
from tests.support.client import Client, ScriptedModel
from tests.support.fakes import fake_anthropic
from tests.support.fakes.fake_model import Answer
from tests.support.fakes.mcp_host import PROGRAM, McpHost, nothing_offered, wait_until

WORD = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
SIGNED = fake_anthropic.THOUGHT


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch) -> None:
    async def call(arguments: dict[str, Any]) -> dict[str, Any]:
        return {"said": arguments["word"]}

    echo = Tool("test.echo", "Echoes.", WORD, call, idempotent=True, timeout_s=5)
    send = Tool("test.send", "Sends.", WORD, call, idempotent=False, timeout_s=5, requires_approval=True)
    known = {**registry._by_name(), echo.name: echo, send.name: send}
    monkeypatch.setattr(registry, "_by_name", lambda: known)


@pytest.fixture
def mcp_tool(server: Server, settings: Settings, tmp_path: Path) -> Iterator[str]:
    """The name of an MCP server's tool `add`, once it is offered."""
    import asyncio

    from agents.tools import mcp

    settings.MCP_STDIO_COMMANDS = [f"{sys.executable} {PROGRAM} *"]
    host = McpHost("streamable_http", tmp_path / "notes")
    host.start()
    row = McpServer.objects.create(
        label=host.label, transport=host.transport, url=host.url, all_tools=True, timeout_s=20
    )

    async def offered() -> list[str]:
        return [tool.name for tool in mcp.connected_tools() if tool.server_label == host.label]

    try:
        names = wait_until(
            lambda: asyncio.run_coroutine_threadsafe(offered(), server.loop).result(5), 30
        )
        assert isinstance(names, list)
        yield next(name for name in names if name.endswith("__add"))
    finally:
        delete_server(row, by=None)
        nothing_offered(server)
        host.kill()


def thinking(*calls: tuple[str, str, str]) -> Answer:
    """Signed thoughts, then these calls."""
    thoughts = fake_anthropic.block(
        0,
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking_delta", "thinking": SIGNED["thinking"]},
        {"type": "signature_delta", "signature": SIGNED["signature"]},
    )
    begun = [fake_anthropic.tool(place, *call) for place, call in enumerate(calls, 1)]
    blocks = [part for start, pieces in begun for part in (start, *pieces)]
    return fake_anthropic.answer(thoughts, *blocks, reason="tool_use")


def picture() -> bytes:
    held = io.BytesIO()
    Image.new("RGB", (8, 8), "red").save(held, "PNG")
    return held.getvalue()


def events_of(run_id: str) -> list[RunEvent]:
    found: list[RunEvent] = run_sync(_read(UUID(run_id)))
    return found


async def _read(run_id: UUID) -> list[RunEvent]:
    return [event async for batch in event_log.read(run_id, after=0) for event in batch.after(0)]


@pytest.mark.usefixtures("tools")
def test_reasoning_parallel_tools_mcp_approval_and_an_image_in_one_conversation(
    client: Client, mcp_tool: str
) -> None:
    name, thread = uuid4().hex, str(uuid4())
    with fake_anthropic.FakeAnthropic() as provider:
        model = ScriptedModel.make(
            provider.base_url, (f"script:{name}",), dialect="anthropic.messages"
        ).name
        key = model.removeprefix("global:")
        ModelMapping.objects.filter(key=key).update(supports_vision=True)
        routing.clear_cache()
        provider.script(
            thinking(
                ("toolu_1", "test_echo", '{"word": "卧推"}'),
                ("toolu_2", "test_echo", '{"word": "squat"}'),
                ("toolu_3", mcp_tool, '{"a": 2, "b": 3}'),
            ),
            thinking(("toolu_4", "test_send", '{"word": "plan"}')),
            fake_anthropic.text("Sent", "."),
            name=name,
        )
        stored = client.http.post(
            "/api/v1/agent/attachments", files={"file": ("a.png", picture(), "image/png")}
        ).json()
        content = [
            {"type": "text", "text": "What is this? Then send me a plan."},
            {"type": "binary", "mimeType": "image/png", "url": stored["url"]},
        ]
        body = {
            "threadId": thread,
            "runId": uuid4().hex,
            "messages": [{"id": uuid4().hex, "role": "user", "content": content}],
            "forwardedProps": {"model": model, "generation": {"reasoningEffort": "low"}},
        }
        first = client.http.post("/api/v1/agent/runs", json=body).json()["taskId"]
        client.wait_for(first, "completed")
        waiting = client.http.get("/api/v1/agent/approvals", params={"status": "pending"}).json()
        (approval,) = waiting["approvals"]
        answer = {"approve": True, "arguments": {"word": "a short plan"}}
        decided = client.http.post(f"/api/v1/agent/approvals/{approval['id']}", json=answer).json()
        second = decided["told_run_id"] or client.run(f"continue-{first}")["run_id"]
        client.wait_for(second, "completed")
        asked = [request.body for request in provider.requests_for(f"script:{name}")]
    seen = [(run, event) for run in (first, second) for event in events_of(UUID(run).hex)]
    _write(seen)
    check_events([event for run, event in seen if run == first], mcp_tool)
    check_requests(asked)
    said = client.history(thread)["messages"]
    assert (said[-1]["role"], said[-1]["content"]) == ("assistant", "Sent.")


def check_events(seen: list[RunEvent], mcp_tool: str) -> None:
    kinds = [event.type for event in seen]
    assert kinds.count("tool.call.started") == 4
    assert kinds.count("reasoning.delta") == 2
    started = [event.fact for event in seen if event.type == "tool.call.started"]
    assert [(call.tool_name, call.kind) for call in started] == [  # type: ignore[union-attr]
        ("test.echo", "function"),
        ("test.echo", "function"),
        (mcp_tool, "mcp"),
        ("test.send", "function"),
    ]
    assert [bool(call.reasoning) for call in started] == [True, False, False, True]  # type: ignore[union-attr]
    places = [place for place, kind in enumerate(kinds) if kind == "tool.call.started"]
    assert kinds.index("tool.call.completed") > places[2]  # all three are begun before one has ended
    assert kinds[-1] == "run.completed"


def check_requests(asked: list[dict[str, Any]]) -> None:
    """The image is shown; signed thoughts come back in the same run and in the one that goes on."""
    assert len(asked) == 3
    assert all(fake_anthropic.faults(body) == [] for body in asked)
    assert [part["type"] for part in asked[0]["messages"][0]["content"]] == ["text", "image"]
    assert asked[1]["messages"][1]["content"][0] == SIGNED
    thoughts = [
        part for turn in asked[2]["messages"] for part in turn["content"] if part["type"] == "thinking"
    ]
    assert thoughts == [SIGNED, SIGNED]
    sent = asked[2]["messages"][-1]["content"][-1]
    assert (sent["type"], sent["tool_use_id"]) == ("tool_result", "toolu_4")
    assert json.loads(sent["content"][0]["text"]) == {"said": "a short plan"}


def _write(seen: list[tuple[str, RunEvent]]) -> None:
    if target := os.environ.get("TRANSCRIPT"):
        lines = [
            f"{run[-6:]} {event.seq:>3} {msgspec.json.encode(event.fact).decode()}"
            for run, event in seen
        ]
        Path(target).write_text("\n".join(lines) + "\n")
