"""A real MCP server, built with the official SDK: `python mcp_server.py TRANSPORT PORT NOTES`.

It writes what happens to it into the file NOTES, a line each, so that tests see it from outside.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context, Image
from mcp.types import ToolAnnotations

_transport, _port, _notes = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
server = MCPServer("test")


def note(line: str) -> None:
    with _notes.open("a") as file:
        file.write(line + "\n")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def add(a: int, b: int) -> dict[str, int]:
    """Adds two numbers."""
    note(f"add {a} {b}")
    return {"sum": a + b}


@server.tool()
async def hang() -> str:
    """Never answers."""
    note("hang begins")
    try:
        await asyncio.sleep(600)
    finally:
        note("hang ends")
    return ""


@server.tool()
def huge(size: int) -> str:
    """Says a lot."""
    return "x" * size


@server.tool()
def fail() -> str:
    """Fails."""
    raise ValueError("there is no such thing")


@server.tool()
def picture() -> Image:
    """Draws."""
    return Image(data=b"\x89PNG" + bytes(3000), format="png")


@server.tool()
def reveal(ctx: Context) -> str:
    """Says again what it was sent in its headers and variables."""
    headers = ctx.headers
    return f"{dict(headers) if headers else {}} {dict(os.environ)}"


@server.tool()
def trace(ctx: Context) -> dict[str, str]:
    """Says which trace it was told of (SEP-414)."""
    meta = dict(ctx.request_context.meta or {})
    return {name: str(meta[name]) for name in ("traceparent", "tracestate") if name in meta}


@server.tool()
async def grow(ctx: Context) -> str:
    """Brings a new tool."""

    def late() -> str:
        """Came later."""
        return "late"

    server.add_tool(late, name="late")
    await ctx.notify_tools_changed()
    return "grown"


def _boast(token: str) -> None:
    """A tool that says in its own name, description and schema what the server was given."""

    def nothing() -> str:
        return "boasts"

    server.add_tool(nothing, name=f"boast {token}", description=f"Given {token}")
    about = {"type": "object", "properties": {token: {"type": "string", "description": f'"{token}"'}}}
    server._tool_manager._tools[f"boast {token}"].parameters = about


if os.environ.get("MCP_TEST_TOKEN"):
    _boast(os.environ["MCP_TEST_TOKEN"])


def _evil(schema: dict[str, Any], name: str) -> None:
    """A tool that says such a schema of itself."""

    def nothing() -> str:
        """Evil.\x00\x1b[31m"""
        return "evil"

    server.add_tool(nothing, name=name)
    server._tool_manager._tools[name].parameters = schema


_OBJECT: dict[str, Any] = {"type": "object", "properties": {}}
_evil(_OBJECT, "名字 with/slash.and.dots")
_evil(_OBJECT, "n" * 100)
_evil({"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:1/evil.json"}}}, "remote")
_evil({"type": "object", "properties": {"a": {"type": "no-such-type"}}}, "wrong")
_evil({"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}, "slow")
_evil(_OBJECT | {"$schema": "http://127.0.0.1:1/evil.json"}, "elsewhere")
_levels: dict[str, Any] = {f"l{n}": {"anyOf": [{"$ref": f"#/$defs/l{n + 1}"}] * 2} for n in range(40)}
_deep = {"properties": {"a": {"$ref": "#/$defs/l0"}}, "$defs": _levels | {"l40": {"type": "integer"}}}
_evil(_OBJECT | _deep, "doubling")
_evil(_OBJECT | {"required": [name for n in range(9_000) for name in (n, f"a{n}")]}, "mixed")

if __name__ == "__main__":
    if _transport == "stdio":
        server.run("stdio")
    elif _transport == "sse":
        server.run("sse", port=_port)
    else:
        server.run("streamable-http", port=_port)
