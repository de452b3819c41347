"""A server's secrets as staff enter them: one `Name: value` per line, sealed, shown only masked."""

from __future__ import annotations

import re
from typing import Final

import msgspec
import structlog
from django.db import transaction
from msgspec.structs import replace

from agents.models.mcp import McpServer
from agents.tools.mcp.servers import Kind, Server, open_pairs, seal_pairs
from config.audit.recording import record
from config.auth.models import User
from config.errors import InvalidRequest
from prompts.endpoints import secrets
from prompts.models import Secret

log = structlog.get_logger(__name__)

_NAMES: Final = {
    "headers": re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}"),
    "env": re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}"),
}
_MOST: Final = 20
_OURS: Final = frozenset(
    ("host", "content-length", "content-type", "accept", "accept-encoding", "connection",
     "transfer-encoding", "mcp-session-id", "mcp-protocol-version")
)  # fmt: skip


def read_pairs(kind: Kind, text: str) -> dict[str, str]:
    """Return the lines as pairs; raise InvalidRequest with the number of a wrong line, not its text."""
    pairs: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        name, parted, value = line.partition(":" if kind == "headers" else "=")
        name, value = name.strip(), value.strip()
        if not parted or not _NAMES[kind].fullmatch(name) or name.lower() in _OURS or name in pairs:
            raise _wrong(kind, number)
        try:
            secrets.check_key(value)
        except InvalidRequest:
            raise _wrong(kind, number) from None
        pairs[name] = value
    if len(pairs) > _MOST:
        raise InvalidRequest(f"At most {_MOST}.", code="key_invalid")
    return pairs


def _wrong(kind: Kind, number: int) -> InvalidRequest:
    form = "Name: value" if kind == "headers" else "NAME=value"
    return InvalidRequest(
        f"Line {number} is not `{form}` in printable ASCII, stands twice, or is set by Parley itself.",
        code="key_invalid",
    )


@transaction.atomic
def store_pairs(server: McpServer, kind: Kind, pairs: dict[str, str], *, by: User | None) -> None:
    """Seal these in place of the present ones; an empty dict removes them."""
    present: Secret | None = getattr(server, kind)
    before = "; ".join(mask_pairs(server, kind))
    if pairs:
        sealed = {"sealed": seal_pairs(pairs), "mask": ", ".join(pairs)[:64]}
        name = secrets.Purpose.MCP_SERVER.of(server.pk, kind).secret_name
        setattr(server, kind, Secret.objects.update_or_create(name=name, defaults=sealed)[0])
        server.save(update_fields=[kind, "updated_at"])
    elif present is not None:
        present.delete()
        setattr(server, kind, None)
    after = "; ".join(mask_pairs(server, kind))
    record(f"key changed: {kind}", server, by=by, before={kind: before}, after={kind: after})
    log.info("mcp secret changed", server=server.label, what=kind, by=by.get_username() if by else "")


@transaction.atomic
def delete_server(server: McpServer, *, by: User | None) -> None:
    """Delete the server and its secrets."""
    for secret in (server.headers, server.env):
        if secret is not None:
            secret.delete()
    log.info("mcp server deleted", server=server.label, by=by.get_username() if by else "")
    server.delete()


def mask_pairs(server: McpServer, kind: Kind) -> list[str]:
    """Return the names with masked values, one per line."""
    try:
        pairs = open_pairs(secrets.get_sealed(getattr(server, kind)), server.pk, kind)
    except secrets.SecretUnreadable:
        return ["They cannot be opened: enter them again."]
    return [f"{name}: {_mask(value)}" for name, value in pairs.items()]


def _mask(value: str) -> str:
    """Return the value masked; the scheme of an Authorization header stays readable."""
    scheme, space, token = value.partition(" ")
    if space and scheme in ("Bearer", "Basic"):
        return f"{scheme} {secrets.mask(token)}"
    return secrets.mask(value)


def server_from_row(row: McpServer) -> Server:
    """Return the row as a value for its connection."""
    sealed = secrets.get_sealed(row.headers), secrets.get_sealed(row.env)
    server = msgspec.convert(row, Server, from_attributes=True)
    return replace(server, sealed_headers=sealed[0], sealed_env=sealed[1])
