"""Whose thread it is: a foreign one does not exist (promise P10)."""

from __future__ import annotations

from uuid import UUID

from config.errors import NotFound


def thread_id_of(text: str) -> UUID:
    """A thread id as clients write it; NotFound for what is none."""
    try:
        return UUID(text)
    except ValueError:
        raise thread_not_found() from None


def thread_not_found() -> NotFound:
    return NotFound("There is no such thread.", code="thread_not_found")
