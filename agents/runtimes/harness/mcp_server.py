"""The MCP server of one run: it gives the run's Host calls to the run's program, and to nobody else.

It listens on this machine only, at its own port, for one token; both end with the run. Its tools are the
run's grants, and every call goes through the Host with its checks and its audit.
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
from agents.providers.tool_names import ToolNames

if TYPE_CHECKING:
    import uvicorn
    from mcp.types import CallToolResult

_STARTS_S: Final = 5.0
_GOODBYE_S: Final = 1


class _Quiet(logging.Filter):
    """A filter of the start and stop messages of a run's server; those of the web server stay."""

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno >= logging.WARNING or not _quiet.get()


_quiet: ContextVar[bool] = ContextVar("quiet", default=False)
logging.getLogger("uvicorn.error").addFilter(_Quiet())


class GrantedTool(Struct, frozen=True):
    """One tool for the program."""

    name: str
    description: str
    parameters: dict[str, Any]
    call: Callable[[dict[str, Any]], Awaitable[Any]]


class ServerAddress(Struct, frozen=True):
    """The address of the server during the run."""

    url: str
    token: str

    @property
    def config(self) -> str:
        """Return the server as a config of command-line agents (`--mcp-config`)."""
        headers = {"Authorization": f"Bearer {self.token}"}
        return json.dumps(
            {"mcpServers": {"parley": {"type": "http", "url": self.url, "headers": headers}}}
        )


def granted_tools(context: AgentRunContext, host: HostApi) -> tuple[GrantedTool, ...]:
    """Return the run's grants as tools."""
    found = [
        *_tools(context, host),
        *_knowledge(context, host),
        *_history(context, host),
    ]
    return tuple({tool.name: tool for tool in reversed(found)}.values())


def _tools(context: AgentRunContext, host: HostApi) -> list[GrantedTool]:
    names = ToolNames(tool.tool_name for tool in context.resources.tools)

    def make_call(name: str) -> Callable[[dict[str, Any]], Awaitable[Any]]:
        return lambda arguments: host.tools.call(name, arguments, may_wait=False)

    return [
        GrantedTool(
            names.to_provider(tool.tool_name),
            tool.description or tool.tool_name,
            tool.parameters or {"type": "object"},
            make_call(tool.tool_name),
        )
        for tool in context.resources.tools
        if not tool.operations or "call" in tool.operations
    ]


def _knowledge(context: AgentRunContext, host: HostApi) -> list[GrantedTool]:
    bases = {
        base.kb_id: base.kb_name or base.kb_id
        for base in context.resources.knowledge_bases
        if not base.operations or "retrieve" in base.operations
    }
    if not bases:
        return []
    listed = "; ".join(f"{kb_id} is {name}" for kb_id, name in bases.items())
    parameters = _object(
        {
            "kb_id": {"type": "string", "enum": list(bases)},
            "query": {"type": "string"},
            "top_k": {"type": "integer", "minimum": 1, "maximum": 50},
        },
        required=["kb_id", "query"],
    )

    async def retrieve(arguments: dict[str, Any]) -> Any:
        kb_id, query = str(arguments["kb_id"]), str(arguments["query"])
        top_k = arguments.get("top_k") or 5
        return {"results": await host.knowledge.retrieve(kb_id, query, top_k=top_k)}

    return [
        GrantedTool("knowledge_retrieve", f"Search a knowledge base: {listed}.", parameters, retrieve)
    ]


def _history(context: AgentRunContext, host: HostApi) -> list[GrantedTool]:
    apis = context.context.available_apis
    page = GrantedTool(
        "history_page",
        "Read the earlier messages of this conversation, the newest first.",
        _object({"limit": {"type": "integer"}, "before_cursor": {"type": "string"}}),
        lambda by: host.history.page(**by),
    )
    search = GrantedTool(
        "history_search",
        "Find earlier messages of this conversation.",
        _object({"query": {"type": "string"}}, required=["query"]),
        lambda by: host.history.search(by["query"]),
    )
    granted = ((page, apis.history_page), (search, apis.history_search))
    return [tool for tool, is_granted in granted if is_granted]


def _object(properties: dict[str, Any], *, required: list[str] | None = None) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return schema | {"required": required} if required else schema


@asynccontextmanager
async def serve_tools(tools: tuple[GrantedTool, ...]) -> AsyncIterator[ServerAddress]:
    """Serve these tools until the context ends."""
    app = await asyncio.to_thread(_make_app, tools)
    token = secrets.token_urlsafe(32)
    import uvicorn

    listener = socket.create_server(("127.0.0.1", 0), backlog=16)
    config = uvicorn.Config(
        _require_token(app, token),
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
            while not server.started and not serving.done():  # noqa: ASYNC110 (there is no event for it)
                await asyncio.sleep(0.002)
        yield ServerAddress(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", token)
    finally:
        await asyncio.shield(_stop(server, serving, listener))


async def _stop(server: uvicorn.Server, serving: asyncio.Task[None], listener: socket.socket) -> None:
    """Stop the server; close its socket last, because the loop watches it until then."""
    server.should_exit = True
    await asyncio.wait([serving], timeout=2 * _GOODBYE_S)
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)
    for listening in getattr(server, "servers", ()):
        listening.close()
    listener.close()


def _make_app(tools: tuple[GrantedTool, ...]) -> Any:
    """Return the server as an ASGI application; run this in an OS thread: the import takes a second."""
    from mcp.server.lowlevel import Server
    from mcp.types import CallToolResult, ListToolsResult, TextContent, Tool

    by_name = {tool.name: tool for tool in tools}
    listed = [
        Tool(name=tool.name, description=tool.description, input_schema=tool.parameters)
        for tool in tools
    ]

    async def list_tools(*_: Any) -> ListToolsResult:
        return ListToolsResult(tools=listed)

    async def call_tool(_: Any, request: Any) -> CallToolResult:
        text, failed = await _call(by_name.get(request.name), request.arguments or {})
        return CallToolResult(content=[TextContent(type="text", text=text)], is_error=failed)

    server: Server[Any] = Server("parley", on_list_tools=list_tools, on_call_tool=call_tool)
    return server.streamable_http_app(json_response=True, stateless_http=True)


async def _call(tool: GrantedTool | None, arguments: dict[str, Any]) -> tuple[str, bool]:
    """Return the call's result as text, and whether it failed; a refusal's text has its code."""
    if tool is None:
        return "There is no tool of this name. (code: not_found)", True
    try:
        found = await tool.call(arguments)
    except HostRefusal as refusal:
        return f"{refusal.message} (code: {refusal.code})", True
    except (KeyError, TypeError, ValueError):
        return "The arguments are not those of this tool. (code: invalid_argument)", True
    return msgspec.json.encode(found).decode(), False


def _require_token(app: Any, token: str) -> Any:
    """Return the application for requests with the token; others get 401."""
    expected = f"Bearer {token}".encode()

    async def guard(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            authorization = dict(scope["headers"]).get(b"authorization", b"")
            if not hmac.compare_digest(authorization, expected):
                await send({"type": "http.response.start", "status": 401, "headers": []})
                await send({"type": "http.response.body", "body": b""})
                return
        await app(scope, receive, send)

    return guard
