"""One statement on a pooled connection: what most deeds need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from config import database


async def one(statement: str, arguments: Sequence[Any] | Mapping[str, Any]) -> Any:
    """The first row, or None."""
    async with database.connection() as connection:
        return await (await connection.execute(statement, arguments)).fetchone()


async def every(statement: str, arguments: Sequence[Any] | Mapping[str, Any]) -> list[Any]:
    """All rows; the statement bounds them."""
    async with database.connection() as connection:
        return await (await connection.execute(statement, arguments)).fetchall()


async def change(statement: str, arguments: Sequence[Any] | Mapping[str, Any]) -> int:
    """How many rows it touched."""
    async with database.connection() as connection:
        return (await connection.execute(statement, arguments)).rowcount
