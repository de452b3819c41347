"""Single statements and locks: on a pooled connection, or for synchronous code on Django's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

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


@asynccontextmanager
async def advisory_lock(key: int, *, wait: bool = False) -> AsyncIterator[bool]:
    """Yield whether this process alone has the lock; with `wait`, wait for it.

    If the process dies the lock goes with its connection.
    """
    async with database.connection() as connection:
        while not (acquired := await _try_lock(connection, key)) and wait:  # noqa: ASYNC110 - another process tells nobody
            await asyncio.sleep(0.2)
        try:
            yield acquired
        finally:
            if acquired:
                await connection.execute("SELECT pg_advisory_unlock(%s)", (key,))


async def _try_lock(connection: AsyncConnection[Any], key: int) -> bool:
    cursor = await connection.execute("SELECT pg_try_advisory_lock(%s)", (key,))
    return bool(await cursor.fetchone() == (True,))


def fetch(statement: str, arguments: Arguments = None) -> list[Any]:
    """Return all rows, for synchronous code."""
    with django_connection.cursor() as cursor:
        cursor.execute(statement, arguments)
        return list(cursor.fetchall())
