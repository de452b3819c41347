"""Open a connection to a server, list its tools, and explain failures in plain words.

The SDK is imported for the first server, in an operating-system thread: the import takes a second, and
an installation without MCP servers avoids it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
from django.conf import settings

from agents.tools.mcp.servers import Server, StdioRefused, check_stdio
from prompts import outgoing_connections
from prompts.addresses import REFUSED
from prompts.endpoints.secrets import SecretUnreadable

if TYPE_CHECKING:
    from mcp import Client
    from mcp.types import Tool as McpTool

MOST_TOOLS: Final = 256
_MOST_PAGES: Final = 20
OnChange = Callable[[], None]


@dataclass
class FailureTrail:
    """The observations that explain a failure: the last HTTP status that was an error."""

    status: int = 0
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def hide(self, text: str) -> str:
        """Return the text without any value of the server's headers and variables."""
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return text

    def hide_in(self, value: Any) -> Any:
        """Return a JSON value with `hide` applied to every text, names included."""
        encoded = msgspec.json.encode(value)
        repeated = any(msgspec.json.encode(secret)[1:-1] in encoded for secret in self.secrets)
        return self._hide_in(value) if repeated else value

    def _hide_in(self, value: Any) -> Any:
        match value:
            case str():
                return self.hide(value)
            case list():
                return [self._hide_in(item) for item in value]
            case dict():
                return {self.hide(name): self._hide_in(item) for name, item in value.items()}
        return value


@asynccontextmanager
async def open_client(server: Server, trail: FailureTrail, on_change: OnChange) -> AsyncIterator[Client]:
    """Open a client, which the same task closes; call `on_change` when the server's tools change."""
    await asyncio.to_thread(import_module, "mcp.client.sse")
    await asyncio.to_thread(import_module, "agents.tools.mcp.http_transport")
    from mcp import Client
    from mcp.types import Implementation, ToolListChangedNotification

    async def on_message(message: Any) -> None:
        if isinstance(message, ToolListChangedNotification):
            on_change()

    async with AsyncExitStack() as stack:
        transport = await _transport(server, trail, stack)
        patience = asyncio.timeout(settings.MCP_CONNECT_S)
        async with patience:
            client = Client(
                transport,
                message_handler=on_message,
                client_info=Implementation(name="parley", version="1"),
                cache=None,
            )
            async with client:
                patience.reschedule(None)
                yield client


async def _transport(server: Server, trail: FailureTrail, stack: AsyncExitStack) -> Any:
    headers, env = server.headers(), server.env()
    trail.secrets = _secrets_to_hide((*headers.values(), *env.values()))
    if server.transport == "stdio":
        from mcp import StdioServerParameters, stdio_client

        check_stdio(server.command, server.args, env)
        devnull = stack.enter_context(Path(os.devnull).open("w"))  # noqa: ASYNC230, SIM115 (a device)
        parameters = StdioServerParameters(command=server.command, args=list(server.args), env=env)
        return stdio_client(parameters, errlog=devnull)
    from agents.tools.mcp.http_transport import LARGEST_BODY, make_client

    def set_status(status: int) -> None:
        trail.status = status

    if server.transport == "sse":
        from mcp.client.sse import sse_client

        return sse_client(
            server.url,
            headers=headers,
            sse_read_timeout=86_400,
            httpx_client_factory=lambda headers=None, timeout=None, auth=None: make_client(
                server.url, headers or {}, set_status, timeout=timeout
            ),
        )
    from mcp.client.streamable_http import streamable_http_client

    web = make_client(server.url, headers, set_status)
    await stack.enter_async_context(web)
    return streamable_http_client(server.url, http_client=web, max_sse_event_size=LARGEST_BODY)


def _secrets_to_hide(values: tuple[str, ...]) -> tuple[str, ...]:
    """Return the values to hide: whole ones, and tokens behind `Bearer`; the longest first."""
    tokens = {token for value in values for token in (value, value.rpartition(" ")[2])}
    return tuple(sorted((token for token in tokens if len(token) >= 6), key=len, reverse=True))


async def list_tools(client: Client) -> list[McpTool]:
    """Return the server's tools, at most MOST_TOOLS; raise TimeoutError after MCP_CONNECT_S."""
    found: list[McpTool] = []
    cursor: str | None = None
    async with asyncio.timeout(settings.MCP_CONNECT_S):
        for _ in range(_MOST_PAGES):
            page = await client.list_tools(cursor=cursor)
            found += page.tools
            cursor = page.next_cursor
            if cursor is None or len(found) >= MOST_TOOLS:
                break
    return found[:MOST_TOOLS]


async def check_connection(server: Server, trail: FailureTrail) -> list[McpTool] | str:
    """Connect, list the server's tools, and disconnect; return the tools, or why that failed.

    A caller that shows the tools must hide the `trail`'s secrets in them.
    """
    try:
        async with open_client(server, trail, lambda: None) as client:
            return await list_tools(client)
    except Exception as error:
        return explain(error, trail)


def explain(error: BaseException, trail: FailureTrail) -> str:
    """Return why a connection failed, in words on which staff can act, without secrets."""
    match _cause(error):
        case cause if outgoing_connections.was_refused(cause):
            return REFUSED
        case StdioRefused() as refused:
            return str(refused)
        case SecretUnreadable():
            return "The stored headers or variables cannot be opened: enter them again."
        case _ if trail.status in (401, 403):
            return f"The server answers {trail.status}: check the headers."
        case _ if trail.status:
            return f"The server answers {trail.status}: check the URL."
        case TimeoutError():
            return f"No answer within {settings.MCP_CONNECT_S:g} seconds."
        case FileNotFoundError() | PermissionError():
            return "The command cannot be started: there is no such program, or it is not executable."
        case cause if "Connect" in type(cause).__name__:
            return "Nothing answers at this address."
        case cause if type(cause).__name__ == "MCPError":
            return f"The server refuses, or does not speak MCP: {trail.hide(str(cause))[:200]}"
        case cause:
            return f"The server does not speak MCP as it should ({type(cause).__name__})."


def _cause(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


async def watch_changes(client: Client, on_change: OnChange) -> None:
    """Call `on_change` when the tools change, if the server supports the newer protocol for it."""
    with suppress(Exception):  # an older server notifies by itself; else the next refresh finds out
        async with client.listen(tools_list_changed=True) as changes:
            async for _ in changes:
                on_change()
