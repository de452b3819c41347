"""Starts the real MCP server of `mcp_server.py`, kills it, and waits for what it notes."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from agents.tools import mcp
from benchmarks.ports import free_port

if TYPE_CHECKING:
    from tests.conftest import Server

PROGRAM = Path(__file__).with_name("mcp_server.py")


def wait_until(done: Callable[[], Any], seconds: float = 15) -> Any:
    """What `done` gives once it is true."""
    until = time.monotonic() + seconds
    while not (found := done()):
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.02)
    return found


def nothing_offered(server: Server) -> None:
    """Wait until the server's worker offers no MCP tools, so that the next test's runs list none."""

    async def now() -> tuple[object, ...]:
        return mcp.connected_tools()

    wait_until(lambda: not asyncio.run_coroutine_threadsafe(now(), server.loop).result(5), 30)


@dataclass
class McpHost:
    """One server, as a process of its own."""

    transport: str
    notes: Path
    port: int = field(default_factory=free_port)
    label: str = field(default_factory=lambda: f"s{uuid4().hex[:8]}")
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/{'sse' if self.transport == 'sse' else 'mcp'}"

    def start(self) -> None:
        name = self.transport.replace("_", "-")
        self.process = subprocess.Popen(
            [sys.executable, PROGRAM, name, str(self.port), self.notes],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_until(self._answers, 30)

    def _answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return False
        return True

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait(10)
            self.process = None

    def noted(self) -> list[str]:
        return self.notes.read_text().splitlines() if self.notes.exists() else []
