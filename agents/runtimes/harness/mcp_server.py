"""The MCP server of one run: the run's Host calls for the program that the run started, and nobody else.

It listens on this machine only, at a port of its own, for one token; both are gone when the run is.
What it offers is what the run was granted, and every call goes through the Host with its checks and its
audit.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import secrets
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext
from contextvars import ContextVar, copy_context
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

from agents.host_protocol.errors import HostRefusal
from agents.host_protocol.host_api import HostApi
from agents.host_protocol.run_context import AgentRunContext
from agents.providers.tool_names import Names

if TYPE_CHECKING:
    import uvicorn
    from mcp.types import CallToolResult

_STARTS_S: Final = 5.0
_GOODBYE_S: Final = 1


class _Quiet(logging.Filter):
    """Keeps to itself that a run's server comes and goes; the web server's own lines stay."""

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno >= logging.WARNING or not _quiet.get()


_quiet: ContextVar[bool] = ContextVar("quiet", default=False)
logging.getLogger("uvicorn.error").addFilter(_Quiet())


class Offer(Struct, frozen=True):
    """One tool as the program sees it."""

    name: str
    description: str
    parameters: dict[str, Any]
    call: Callable[[dict[str, Any]], Awaitable[Any]]


class Door(Struct, frozen=True):
    """Where the server is, for as long as the run lasts."""

    url: str
    token: str

    @property
    def config(self) -> str:
        """The server as command-line agents are told of it (`--mcp-config`)."""
        headers = {"Authorization": f"Bearer {self.token}"}
        return json.dumps(
            {"mcpServers": {"parley": {"type": "http", "url": self.url, "headers": headers}}}
        )


def offers(context: AgentRunContext, host: HostApi) -> tuple[Offer, ...]:
    """What the run was granted, as tools."""
    found = [
        *_tools(context, host),
        *_knowledge(context, host),
        *_history(context, host),
    ]
    return tuple({offer.name: offer for offer in reversed(found)}.values())


def _tools(context: AgentRunContext, host: HostApi) -> list[Offer]:
    names = Names(tool.tool_name for tool in context.resources.tools)

    def calling(name: str) -> Callable[[dict[str, Any]], Awaitable[Any]]:
        return lambda arguments: host.tools.call(name, arguments, may_wait=False)

    return [
        Offer(
            names.sent(tool.tool_name),
            tool.description or tool.tool_name,
            tool.parameters or {"type": "object"},
            calling(tool.tool_name),
        )
        for tool in context.resources.tools
        if not tool.operations or "call" in tool.operations
    ]


def _knowledge(context: AgentRunContext, host: HostApi) -> list[Offer]:
    bases = {
        base.kb_id: base.kb_name or base.kb_id
        for base in context.resources.knowledge_bases
        if not base.operations or "retrieve" in base.operations
    }
    if not bases:
        return []
    told = "; ".join(f"{kb_id} is {name}" for kb_id, name in bases.items())
    parameters = _object(
        {
            "kb_id": {"type": "string", "enum": list(bases)},
            "query": {"type": "string"},
            "top_k": {"type": "integer", "minimum": 1, "maximum": 50},
        },
        required=["kb_id", "query"],
    )

    async def retrieve(asked: dict[str, Any]) -> Any:
        kb_id, query, top_k = str(asked["kb_id"]), str(asked["query"]), asked.get("top_k") or 5
        return {"results": await host.knowledge.retrieve(kb_id, query, top_k=top_k)}

    return [Offer("knowledge_retrieve", f"Search a knowledge base: {told}.", parameters, retrieve)]


def _history(context: AgentRunContext, host: HostApi) -> list[Offer]:
    apis = context.context.available_apis
    found = []
    if apis.history_page:
        parameters = _object({"limit": {"type": "integer"}, "before_cursor": {"type": "string"}})
        told = "Read the earlier messages of this conversation, the newest first."
        found.append(Offer("history_page", told, parameters, lambda asked: host.history.page(**asked)))
    if apis.history_search:
        parameters = _object({"query": {"type": "string"}}, required=["query"])
        told = "Find earlier messages of this conversation."
        found.append(
            Offer("history_search", told, parameters, lambda asked: host.history.search(asked["query"]))
        )
    return found


def _object(properties: dict[str, Any], *, required: list[str] | None = None) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return schema | {"required": required} if required else schema


@asynccontextmanager
async def door(offered: tuple[Offer, ...]) -> AsyncIterator[Door]:
    """A server of these tools, until we leave."""
    app = await asyncio.to_thread(_app, offered)
    token = secrets.token_urlsafe(32)
    import uvicorn

    listener = socket.create_server(("127.0.0.1", 0), backlog=16)
    config = uvicorn.Config(
        _guarded(app, token),
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=_GOODBYE_S,
    )
    server = uvicorn.Server(config)
    server.capture_signals = nullcontext  # type: ignore[method-assign,assignment]
    quietly = copy_context()
    quietly.run(_quiet.set, True)
    serving = asyncio.create_task(server.serve(sockets=[listener]), context=quietly)
    try:
        async with asyncio.timeout(_STARTS_S):
            while not server.started and not serving.done():  # noqa: ASYNC110 (it tells no other way)
                await asyncio.sleep(0.002)
        yield Door(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", token)
    finally:
        await asyncio.shield(_ended(server, serving, listener))


async def _ended(server: uvicorn.Server, serving: asyncio.Task[None], listener: socket.socket) -> None:
    """Stop the server; its socket is closed last, for the loop watches it until then."""
    server.should_exit = True
    await asyncio.wait([serving], timeout=2 * _GOODBYE_S)
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)
    for listening in getattr(server, "servers", ()):
        listening.close()
    listener.close()


def _app(offered: tuple[Offer, ...]) -> Any:
    """The server as an ASGI application; the SDK takes a second to import, so this is for a thread."""
    from mcp.server.lowlevel import Server
    from mcp.types import CallToolResult, ListToolsResult, TextContent, Tool

    by_name = {offer.name: offer for offer in offered}
    listed = [
        Tool(name=offer.name, description=offer.description, input_schema=offer.parameters)
        for offer in offered
    ]

    async def list_tools(*_: Any) -> ListToolsResult:
        return ListToolsResult(tools=listed)

    async def call_tool(_: Any, asked: Any) -> CallToolResult:
        text, failed = await _called(by_name.get(asked.name), asked.arguments or {})
        return CallToolResult(content=[TextContent(type="text", text=text)], is_error=failed)

    server: Server[Any] = Server("parley", on_list_tools=list_tools, on_call_tool=call_tool)
    return server.streamable_http_app(json_response=True, stateless_http=True)


async def _called(offer: Offer | None, arguments: dict[str, Any]) -> tuple[str, bool]:
    """What a call gives as text, and whether it failed; a refusal is told with its code."""
    if offer is None:
        return "There is no tool of this name. (code: not_found)", True
    try:
        found = await offer.call(arguments)
    except HostRefusal as refusal:
        return f"{refusal.message} (code: {refusal.code})", True
    except (KeyError, TypeError, ValueError):
        return "The arguments are not those of this tool. (code: invalid_argument)", True
    return msgspec.json.encode(found).decode(), False


def _guarded(app: Any, token: str) -> Any:
    """The application for whoever has the token; 401 for anybody else."""
    expected = f"Bearer {token}".encode()

    async def guard(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            given = dict(scope["headers"]).get(b"authorization", b"")
            if not hmac.compare_digest(given, expected):
                await send({"type": "http.response.start", "status": 401, "headers": []})
                await send({"type": "http.response.body", "body": b""})
                return
        await app(scope, receive, send)

    return guard
