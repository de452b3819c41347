"""The MCP server that the hostile tests fake, and our reading, against the SDK's own server, run here.

Nothing is recorded: the peer is a library (requirements), so each run compares with the one installed.
"""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
from mcp import Client
from mcp.server.lowlevel import Server
from mcp.types import (
    AudioContent,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ListToolsResult,
    ResourceLink,
    TextContent,
    TextResourceContents,
    Tool,
)

from agents.tools.mcp.call_results import result_to_json
from agents.tools.mcp.sdk_client import list_tools
from tests.hostile import mcp as hostile
from tests.hostile.loopback import Loopback
from tests.support.fakes.shapes import Ids, Profile, reduce, unlike

_HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "parley", "version": "1"},
}
ASKED: tuple[dict[str, Any], ...] = (
    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": _HELLO},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "t", "arguments": {}}},
    {"jsonrpc": "2.0", "id": 4, "method": "ping"},
    {"jsonrpc": "2.0", "id": 5, "method": "no/such"},
)
TOOLS = [Tool(name=name, description="Does.", input_schema={"type": "object"}) for name in "tuv"]
RESULTS = {
    "t": CallToolResult(content=[TextContent(type="text", text="Done.")]),
    "fails": CallToolResult(content=[TextContent(type="text", text="No.")], is_error=True),
    "structured": CallToolResult(content=[], structured_content={"sum": 3}),
    "parts": CallToolResult(
        content=[
            TextContent(type="text", text="See:"),
            ImageContent(type="image", data="iVBORw0K", mime_type="image/png"),
            AudioContent(type="audio", data="UklGRg==", mime_type="audio/wav"),
            ResourceLink(type="resource_link", uri="file:///a.txt", name="a"),
            EmbeddedResource(
                type="resource", resource=TextResourceContents(uri="file:///b.txt", text="And b.")
            ),
        ]
    ),
}


async def _one(_: Any, asked: Any) -> ListToolsResult:
    return ListToolsResult(tools=TOOLS[:1])


async def _in_pages(_: Any, asked: Any) -> ListToolsResult:
    """One tool a page."""
    place = int(asked.cursor or 0) if asked else 0
    more = str(place + 1) if place + 1 < len(TOOLS) else None
    return ListToolsResult(tools=TOOLS[place : place + 1], next_cursor=more)


async def _called(_: Any, asked: Any) -> CallToolResult:
    return RESULTS[asked.name]


def real_server(listed: Any) -> Server[Any]:
    return Server("real", version="1", on_list_tools=listed, on_call_tool=_called)


async def exchange(client: httpx.AsyncClient, path: str) -> list[Any]:
    """What a server answers, each with its request's method."""
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}
    told = []
    for asked in ASKED:
        answer = await client.post(path, json=asked, headers=headers)
        body = reduce(answer.json(), Ids()) if answer.content else None
        told.append(
            {
                "asked": asked["method"],
                "status": answer.status_code,
                "media": answer.headers.get("content-type") if body else "",
                "body": body,
            }
        )
    return told


async def _of_the_real_one() -> list[Any]:
    server = real_server(_one)
    app = server.streamable_http_app(json_response=True, stateless_http=True)
    client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1:8000")
    async with server.session_manager.run(), client:
        return await exchange(client, "/mcp")


async def _of_ours() -> list[Any]:
    with Loopback(hostile.answer) as server:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{server.port}") as client:
            return await exchange(client, "/none")


def _method(frame: Any) -> str:
    return f"{frame['asked']} {frame['status']} {frame['media']}"


def test_the_fake_server_could_have_sent_what_the_real_one_sends() -> None:
    real, fake = asyncio.run(_of_the_real_one()), asyncio.run(_of_ours())
    assert unlike(Profile([fake], _method), Profile([real], _method)) == []


def test_a_list_in_pages_is_read_whole() -> None:
    async def listed() -> list[str]:
        async with Client(real_server(_in_pages)) as client:
            return [tool.name for tool in await list_tools(client)]

    assert asyncio.run(listed()) == ["t", "u", "v"]


def test_every_kind_of_content_is_told_of() -> None:
    async def called() -> list[dict[str, Any]]:
        async with Client(real_server(_one)) as client:
            return [result_to_json(await client.call_tool(name, {})) for name in RESULTS]

    assert asyncio.run(called()) == [
        {"text": "Done."},
        {"text": "No."},
        {"structured": {"sum": 3}},
        {
            "text": "See:\nAnd b.",
            "left_out": [
                {"type": "image", "mime_type": "image/png", "size_bytes": 6},
                {"type": "audio", "mime_type": "audio/wav", "size_bytes": 6},
                {"type": "resource_link", "uri": "file:///a.txt"},
            ],
        },
    ]
