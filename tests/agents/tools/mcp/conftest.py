"""Real MCP servers: started, entered as staff do, and forgotten afterwards."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction
from pytest_django import Settings

from agents.models import McpServer
from agents.tools import mcp
from agents.tools.mcp.secret_pairs import delete_server, read_pairs, store_pairs
from tests.conftest import Server
from tests.support.fakes.mcp_host import PROGRAM, McpHost, nothing_offered, wait_until


@pytest.fixture(autouse=True)
def quick(settings: Settings) -> None:
    settings.MCP_STDIO_COMMANDS = [f"{sys.executable} {PROGRAM} *"]
    settings.MCP_STDIO_ENV = ["MCP_TEST_TOKEN"]


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Callable[..., McpHost]]:
    """Start MCP servers."""
    made: list[McpHost] = []

    def start(transport: str = "streamable_http") -> McpHost:
        made.append(McpHost(transport, tmp_path / f"notes-{len(made)}"))
        made[-1].start()
        return made[-1]

    yield start
    for one in made:
        one.kill()


@pytest.fixture(scope="module")
def none_left(server: Server) -> Iterator[None]:
    """At the end of the file its servers are forgotten everywhere."""
    yield
    nothing_offered(server)


@pytest.fixture
def enter(none_left: None) -> Iterator[Callable[..., McpServer]]:
    """Enter servers as staff do."""
    made: list[McpServer] = []

    def save(host: McpHost, *, headers: str = "", env: str = "", **more: Any) -> McpServer:
        given = {"label": host.label, "transport": host.transport, "url": host.url, "all_tools": True}
        with transaction.atomic():  # as admin does: a worker that looks meanwhile would go without them
            row = McpServer.objects.create(**(given | {"timeout_s": 20} | more))
            if headers:
                store_pairs(row, "headers", read_pairs("headers", headers), by=None)
            if env:
                store_pairs(row, "env", read_pairs("env", env), by=None)
        made.append(row)
        return row

    yield save
    for row in made:
        if McpServer.objects.filter(pk=row.pk).exists():
            delete_server(row, by=None)


@pytest.fixture
def offered(server: Server) -> Callable[[str], dict[str, Any]]:
    """The tools that the server's worker offers of a label, once there are some."""

    async def now() -> tuple[Any, ...]:
        return mcp.connected_tools()

    def of(label: str, *, none: bool = False) -> dict[str, Any]:
        def look() -> Any:
            tools = asyncio.run_coroutine_threadsafe(now(), server.loop).result(5)
            found = {tool.name: tool for tool in tools if tool.server_label == label}
            return (not found) if none else found

        found = wait_until(look, 30)
        return found if isinstance(found, dict) else {}

    return of
