"""Single statements and locks: on a pooled connection, or for synchronous code on Django's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

from django.db import connection as django_connection
from psycopg import AsyncConnection

from config import database

Arguments = Sequence[Any] | Mapping[str, Any] | None


async def one(statement: str, arguments: Arguments = None, *, begins: bool = False) -> Any:
    """Return the first row, or None; what `begins` something new waits for all that is under way."""
    async with database.connection(begins=begins) as connection:
        return await (await connection.execute(statement, arguments)).fetchone()


async def every(statement: str, arguments: Arguments = None) -> list[Any]:
    """Return all rows; the statement limits their number."""
    async with database.connection() as connection:
        return await (await connection.execute(statement, arguments)).fetchall()


async def change(statement: str, arguments: Arguments = None) -> int:
    """Return the number of affected rows."""
    async with database.connection() as connection:
        return (await connection.execute(statement, arguments)).rowcount


_LOCK_MAY_PAUSE: Final = "SET LOCAL idle_in_transaction_session_timeout = 0"
_TRY_LOCK: Final = "SELECT pg_try_advisory_xact_lock(%s)"


@asynccontextmanager
async def advisory_lock(key: int, *, wait: bool = False) -> AsyncIterator[bool]:
    """Yield whether this process alone has the lock; with `wait`, wait for it.

    A transaction that does nothing else has it, so that it is kept behind a pooler too. If the process
    dies the lock goes with its connection.
    """
    async with database.connection() as connection, connection.transaction():
        await connection.execute(_LOCK_MAY_PAUSE)
        while not (acquired := await _try_lock(connection, key)) and wait:  # noqa: ASYNC110 - another process tells nobody
            await asyncio.sleep(0.2)
        yield acquired


async def _try_lock(connection: AsyncConnection[Any], key: int) -> bool:
    return bool(await (await connection.execute(_TRY_LOCK, (key,))).fetchone() == (True,))


def fetch(statement: str, arguments: Arguments = None) -> list[Any]:
    """Return all rows, for synchronous code."""
    with django_connection.cursor() as cursor:
        cursor.execute(statement, arguments)
        return list(cursor.fetchall())
