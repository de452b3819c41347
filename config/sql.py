"""Single statements: of coroutines on a pooled connection, of synchronous code on Django's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import connection as django_connection

from config import database

Arguments = Sequence[Any] | Mapping[str, Any] | None


async def one(statement: str, arguments: Arguments = None) -> Any:
    """Return the first row, or None."""
    async with database.connection() as connection:
        return await (await connection.execute(statement, arguments)).fetchone()


async def every(statement: str, arguments: Arguments = None) -> list[Any]:
    """Return all rows; the statement limits their number."""
    async with database.connection() as connection:
        return await (await connection.execute(statement, arguments)).fetchall()


async def change(statement: str, arguments: Arguments = None) -> int:
    """Return the number of affected rows."""
    async with database.connection() as connection:
        return (await connection.execute(statement, arguments)).rowcount


def fetch(statement: str, arguments: Arguments = None) -> list[Any]:
    """Return all rows, for synchronous code."""
    with django_connection.cursor() as cursor:
        cursor.execute(statement, arguments)
        return list(cursor.fetchall())
