"""Threads and their owners: a foreign thread does not exist (promise P10)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from config import sql
from config.errors import NotFound

_EXISTING: Final = "SELECT id FROM conversations_thread WHERE id = ANY(%s)"


def parse_thread_id(text: str) -> UUID:
    """Return a thread id that a client wrote. Raise NotFound for any other text."""
    try:
        return UUID(text)
    except ValueError:
        raise thread_not_found() from None


async def find_existing(thread_ids: Sequence[UUID]) -> set[UUID]:
    """Return those that exist, whoever owns them."""
    return {row[0] for row in await sql.every(_EXISTING, (list(thread_ids),))}


def thread_not_found() -> NotFound:
    return NotFound("There is no such thread.", code="thread_not_found")
