"""An MCP server for a worker: its row as a frozen value, with its secrets still sealed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final, Literal

import msgspec
from django.conf import settings
from msgspec import Struct

from config import sql
from config.process.subprocesses import is_allowed
from prompts.endpoints import secrets
from prompts.endpoints.secrets import Purpose, SealedSecret

Kind = Literal["headers", "env"]
_decode: Final = msgspec.json.Decoder(dict[str, str]).decode


class StdioRefused(Exception):
    """The installation does not allow this program; the message has the fix."""


class Server(Struct, frozen=True, kw_only=True):
    """One active server; two are equal if no value differs that affects a connection."""

    id: int
    label: str
    transport: str
    url: str
    command: str
    args: tuple[str, ...]
    all_tools: bool
    allowed_tools: frozenset[str]
    requires_approval: bool
    timeout_s: int
    sealed_headers: SealedSecret | None = None
    sealed_env: SealedSecret | None = None

    def __repr__(self) -> str:
        return f"Server({self.label!r})"

    def allows(self, tool: str) -> bool:
        """Return whether staff let models call this tool of the server."""
        return self.all_tools or tool in self.allowed_tools

    def headers(self) -> dict[str, str]:
        """Return the opened headers; raise `SecretUnreadable`."""
        return open_pairs(self.sealed_headers, self.id, "headers")

    def env(self) -> dict[str, str]:
        """Return the opened variables; raise `SecretUnreadable`."""
        return open_pairs(self.sealed_env, self.id, "env")


def seal_pairs(pairs: Mapping[str, str]) -> str:
    """Return names and values, sealed together."""
    return secrets.seal(msgspec.json.encode(dict(pairs)).decode())


def open_pairs(sealed: SealedSecret | None, server_id: int, kind: Kind) -> dict[str, str]:
    """Return the opened names and values, {} for none; raise `SecretUnreadable`."""
    text = secrets.open_secret(sealed, Purpose.MCP_SERVER.of(server_id, kind))
    return _decode(text) if text else {}


def check_stdio(command: str, args: tuple[str, ...], env: Mapping[str, str]) -> None:
    """Raise StdioRefused unless MCP_STDIO_COMMANDS and MCP_STDIO_ENV allow program and variables.

    The right to edit admin is no right to run programs: an entry is a whole command line, and only an
    entry that ends in ` *` lets staff add arguments.
    """
    if not is_allowed([command, *args], settings.MCP_STDIO_COMMANDS):
        raise StdioRefused(
            "This command line is not allowed here: whoever runs Parley adds it to MCP_STDIO_COMMANDS."
        )
    if unknown := sorted(set(env) - set(settings.MCP_STDIO_ENV)):
        raise StdioRefused(
            f"These variables are not allowed here: {', '.join(unknown)}. "
            "Whoever runs Parley adds them to MCP_STDIO_ENV."
        )


_ACTIVE: Final = f"""
SELECT server.id, label, transport, url, command, args, all_tools, allowed_tools,
       requires_approval, timeout_s, headers.name, headers.sealed, env.name, env.sealed
FROM agents_mcpserver AS server
{secrets.join_sql("headers", "headers_id")}
{secrets.join_sql("env", "env_id")}
WHERE is_active ORDER BY label
"""


_SERVED: Final = "SELECT label FROM agents_mcpserver WHERE is_active AND label = ANY(%s)"


async def is_served(name: str) -> bool:
    """Return whether a name has the label of an enabled server; only a worker knows its tools."""
    label, apart, _ = name.partition("__")
    return bool(apart) and label in await find_served_labels([label])


async def find_served_labels(labels: Collection[str]) -> set[str]:
    """Return those of the labels that belong to enabled servers."""
    return {label for (label,) in await sql.every(_SERVED, (list(labels),))}


async def active_servers() -> dict[int, Server]:
    """Return the enabled servers by id."""
    return {row[0]: _server(row) for row in await sql.every(_ACTIVE)}


def _server(row: Any) -> Server:
    *fields, headers_name, headers, env_name, env = row
    sealed = secrets.sealed_or_none(headers_name, headers), secrets.sealed_or_none(env_name, env)
    values = zip(Server.__struct_fields__, (*fields, *sealed), strict=True)
    return msgspec.convert(dict(values), Server)
