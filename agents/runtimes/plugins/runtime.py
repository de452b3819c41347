"""What a worker knows of a plugin runtime: its row as a frozen value, its token still sealed.

A runtime obeys one Host connection, the newest; so of all workers one holds the connection to a
runtime over WebSocket, for as long as it renews its hold. Of a stdio runtime each worker starts its own.
"""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

import msgspec
from msgspec import Struct

from config import sql
from config.database import connection
from prompts.endpoints.secrets import Purpose, SealedSecret, join_sql, open_secret


class Runtime(Struct, frozen=True, kw_only=True):
    """One active runtime. Two are equal when nothing that matters to a connection differs."""

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
        """The token, open; "" of none. Raises `SecretUnreadable`."""
        return open_secret(self.sealed_token, Purpose.PLUGIN_RUNTIME.of(self.id))


HOLD_S: Final = 10
_COLUMNS: Final = """
runtime.id, runtime.name, identity, transport, url, command, args, directory, profile,
secret.name, secret.sealed
"""
_ACTIVE: Final = f"""
SELECT {_COLUMNS}, held_by = %(worker)s AND held_until > now() + make_interval(secs => %(early)s),
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


async def to_connect(worker: str) -> dict[int, Runtime]:
    """The active runtimes that this worker is to be connected to, by id; holds are taken and renewed."""
    async with connection() as held:
        found = await (await held.execute(_ACTIVE, {"worker": worker, "early": HOLD_S / 2})).fetchall()
        ours = {row[0] for row in found if row[3] == "stdio" or row[-2]}
        wanted = [row[0] for row in found if row[-1] and row[0] not in ours]
        if wanted:
            asked = {"worker": worker, "hold": HOLD_S, "ids": wanted}
            ours |= {row[0] for row in await (await held.execute(_HOLD, asked)).fetchall()}
    return {row[0]: _runtime(row) for row in found if row[0] in ours}


async def release(ids: list[int], worker: str) -> None:
    """Let other workers have these at once."""
    await sql.change(_RELEASE, (ids, worker))


async def tell_status(
    runtime_id: int,
    status: str,
    *,
    problem: str = "",
    spoken: str = "",
    runners: list[Any] | None,
    passed_over: list[str],
    seen: Any,
) -> None:
    """Write what staff see of a connection; without `runners` those that it had last stay."""
    told = None if runners is None else _json(runners)
    left_out = None if runners is None else _json(passed_over)
    await sql.change(_STATUS, (status, problem[:500], spoken, told, left_out, seen, runtime_id))


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _runtime(row: Any) -> Runtime:
    return Runtime(
        id=row[0],
        name=row[1],
        identity=row[2],
        transport=row[3],
        url=row[4],
        command=row[5],
        args=tuple(row[6]),
        directory=row[7],
        profile=row[8],
        sealed_token=SealedSecret(row[9], row[10]) if row[9] else None,
    )
