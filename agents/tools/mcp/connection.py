"""The connections of this process: one per server, opened and closed when staff change its row.

Everything is opened and closed in the one task that runs `keep`: the SDK's cancel scopes must be exited
by the task that entered them. Calls come from the tasks of runs and only use the open client.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec
import structlog
from django.conf import settings

from agents.tools.base import Tool, ToolFailure
from agents.tools.mcp.call_results import result_to_json, result_type
from agents.tools.mcp.sdk_client import FailureTrail, explain, list_tools, open_client, watch_changes
from agents.tools.mcp.servers import Server, active_servers
from agents.tools.mcp.tool_definitions import clean_description, model_name, usable_schema
from config.process.reconnecting import Link, Pool

if TYPE_CHECKING:
    from mcp import Client
    from mcp.types import CallToolResult, ToolAnnotations
    from mcp.types import Tool as McpTool

log = structlog.get_logger(__name__)

_LONGEST_MESSAGE: Final = 2_000
_GONE: Final = frozenset((-32000, -32001, -32600, -32603))  # closed, too late, session lost, HTTP error


class ServerLink(Link):
    """A server's connection; `tools` is empty while it is down."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.tools: tuple[Tool, ...] = ()
        self._client: Client | None = None
        self._trail = FailureTrail()
        self._list_again = asyncio.Event()
        self._reported = ""

    async def serve(self) -> None:
        self._trail = FailureTrail()
        async with open_client(self.server, self._trail, self._list_again.set) as client:
            changes = asyncio.create_task(watch_changes(client, self._list_again.set))
            try:
                await self._watch(client)
            finally:
                self._client, self.tools = None, ()
                changes.cancel()
                await asyncio.gather(changes, return_exceptions=True)

    async def _watch(self, client: Client) -> None:
        """List the tools again after each change, after a failed call, and every MCP_REFRESH_S."""
        while True:
            self._list_again.clear()
            self._trail.status = 0
            self.tools = self._usable_tools(await list_tools(client))
            if self._client is None:
                self._client, self._reported = client, ""
                log.info("mcp server connected", server=self.server.label, tools=len(self.tools))
            with suppress(TimeoutError):
                async with asyncio.timeout(settings.MCP_REFRESH_S):
                    await self._list_again.wait()

    def _usable_tools(self, definitions: list[McpTool]) -> tuple[Tool, ...]:
        """Return the allowed tools that a model can use; of several with one name, the first."""
        found: dict[str, Tool] = {}
        for definition in definitions:
            if self.server.allows(definition.name) and (tool := self._tool(definition)) is not None:
                found.setdefault(tool.name, tool)
        return tuple(found.values())

    def _tool(self, definition: McpTool) -> Tool | None:
        schema = usable_schema(self._trail.hide_in(definition.input_schema))
        if schema is None:
            return None
        hints, name = definition.annotations, self._trail.hide(definition.name)
        return Tool(
            name=model_name(self.server.label, name),
            description=clean_description(self._trail.hide(definition.description or ""), name),
            parameters=schema,
            call=partial(self._call, definition.name),
            idempotent=bool(hints and (hints.read_only_hint or hints.idempotent_hint)),
            timeout_s=float(self.server.timeout_s),
            kind="mcp",
            requires_approval=self.server.requires_approval,
            server_label=self.server.label,
            annotations=self._trail.hide_in(_annotations(hints)) or None,
        )

    async def _call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Call a tool on the server; raise ToolFailure.

        The codes are `mcp_unreachable`, `mcp_error` and `mcp_tool_error`.
        """
        client = self._client
        if client is None:
            raise _unreachable()
        result = await self._send_call(client, name, arguments)
        answer: dict[str, Any] = self._trail.hide_in(result_to_json(result))
        if result.is_error:
            raise ToolFailure("mcp_tool_error", _error_message(answer) or "The tool failed.")
        return answer

    async def _send_call(self, client: Client, name: str, arguments: dict[str, Any]) -> CallToolResult:
        """Call without the SDK's check of the result's schema, which would run the server's patterns."""
        from mcp import MCPError
        from mcp.types import CallToolRequest, CallToolRequestParams

        request = CallToolRequest(params=CallToolRequestParams(name=name, arguments=arguments))
        try:
            return await client.session.send_request(request, result_type())
        except MCPError as error:
            self._list_again.set()
            if error.code in _GONE:
                raise _unreachable() from None
            message = self._trail.hide(str(error.message))[:_LONGEST_MESSAGE]
            raise ToolFailure("mcp_error", f"The server refused the call: {message}") from None
        except Exception as error:
            self._list_again.set()
            log.warning("mcp call failed", server=self.server.label, error=type(error).__name__)
            raise ToolFailure("mcp_error", "The server's answer could not be understood.") from None

    async def report(self, error: Exception) -> None:
        """Log a problem once, not at every attempt."""
        problem = explain(error, self._trail)
        if problem != self._reported:
            log.warning("mcp server is down", server=self.server.label, why=problem)
            self._reported = problem


def _annotations(hints: ToolAnnotations | None) -> dict[str, Any]:
    """Return the server's hints in MCP's form, if they are not too large."""
    annotations = hints.model_dump(mode="json", by_alias=True, exclude_none=True) if hints else {}
    return annotations if len(msgspec.json.encode(annotations)) <= _LONGEST_MESSAGE else {}


def _unreachable() -> ToolFailure:
    return ToolFailure("mcp_unreachable", "The tool's server cannot be reached, or broke the call off.")


def _error_message(answer: dict[str, Any]) -> str:
    text = str(answer["text"]) if "text" in answer else msgspec.json.encode(answer).decode()
    return text[:_LONGEST_MESSAGE]


_pool: Final[Pool[Server, ServerLink]] = Pool(ServerLink, rows="mcp servers", goodbye_s=5)


def connected_tools() -> tuple[Tool, ...]:
    """Return the tools of the servers that this loop is connected to; never wait."""
    links = sorted(_pool.links(), key=lambda link: link.server.label)
    return tuple(tool for link in links for tool in link.tools)


async def connect_for_ever() -> None:
    """Keep a connection to each active server, until cancelled; without the database, to known ones."""
    await _pool.keep(active_servers)
