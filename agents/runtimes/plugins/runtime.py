"""A plugin runtime for a worker: its row as a frozen value, with its token still sealed.

A runtime obeys only the newest Host connection; so only one worker holds the connection to a runtime
over WebSocket, as long as it renews its hold. Each worker starts its own process of a stdio runtime.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

import msgspec
from msgspec import Struct

from config import sql
from config.database import connection
from prompts.endpoints.secrets import Purpose, SealedSecret, join_sql, open_secret, sealed_or_none


class Runtime(Struct, frozen=True, kw_only=True):
    """One active runtime; two are equal if no value differs that affects a connection."""

    id: int
    name: str
    identity: UUID
    transport: str
    url: str
    command: str
    args: tuple[str, ...]
    directory: str
    profile: str
    sealed_token: SealedSecret | None = None

    def __repr__(self) -> str:
        return f"Runtime({self.name!r})"

    def token(self) -> str:
        """Return the opened token, or "" for none; raise `SecretUnreadable`."""
        return open_secret(self.sealed_token, Purpose.PLUGIN_RUNTIME.of(self.id))


HOLD_S: Final = 10
_ACTIVE: Final = f"""
SELECT runtime.id, runtime.name, identity, transport, url, command, args, directory, profile,
    secret.name, secret.sealed,
    held_by = %(worker)s AND held_until > now() + make_interval(secs => %(early)s),
    transport = 'stdio' OR held_by = %(worker)s OR held_until IS NULL OR held_until < now()
FROM agents_pluginruntime AS runtime {join_sql("secret", "token_id")}
WHERE is_active ORDER BY runtime.name
"""
_HOLD: Final = """
UPDATE agents_pluginruntime
SET held_by = %(worker)s, held_until = now() + make_interval(secs => %(hold)s)
WHERE id = ANY(%(ids)s) AND is_active
    AND (held_by = %(worker)s OR held_until IS NULL OR held_until < now())
RETURNING id
"""
_RELEASE: Final = """
UPDATE agents_pluginruntime SET held_until = NULL, status = 'waiting', problem = ''
WHERE id = ANY(%s) AND held_by = %s
"""
_STATUS: Final = """
UPDATE agents_pluginruntime
SET status = %s, problem = %s, spoken = %s, runners = coalesce(%s::jsonb, runners),
    passed_over = coalesce(%s::jsonb, passed_over),
    seen_at = coalesce(%s, seen_at)
WHERE id = %s
"""


async def hold_runtimes(worker: str) -> dict[int, Runtime]:
    """Return this worker's active runtimes by id, after it has taken and renewed its holds."""
    async with connection() as db:
        found = await (await db.execute(_ACTIVE, {"worker": worker, "early": HOLD_S / 2})).fetchall()
        ours = {row[0] for row in found if row[3] == "stdio" or row[-2]}
        free = [row[0] for row in found if row[-1] and row[0] not in ours]
        if free:
            parameters = {"worker": worker, "hold": HOLD_S, "ids": free}
            ours |= {row[0] for row in await (await db.execute(_HOLD, parameters)).fetchall()}
    return {row[0]: _runtime(row) for row in found if row[0] in ours}


async def release(ids: list[int], worker: str) -> None:
    """Release these runtimes for other workers at once."""
    await sql.change(_RELEASE, (ids, worker))


async def write_status(
    runtime_id: int,
    status: str,
    *,
    problem: str,
    spoken: str,
    runners: list[Any] | None,
    passed_over: list[str],
) -> None:
    """Write a connection's status for staff; without `runners` the last ones stay, and their time."""
    facts: tuple[Any, ...] = (None, None, None)
    if runners is not None:
        facts = _json(runners), _json(passed_over), datetime.now(UTC)
    await sql.change(_STATUS, (status, problem[:500], spoken, *facts, runtime_id))


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _runtime(row: Any) -> Runtime:
    *fields, name, sealed = row[:11]
    values = zip(Runtime.__struct_fields__, (*fields, sealed_or_none(name, sealed)), strict=True)
    return msgspec.convert(dict(values), Runtime)
