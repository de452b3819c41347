"""Whether the database has every migration of this installation's code.

A process of a new release that starts before its migrations must not take work: what it writes may need
columns that are not there yet.
"""

from __future__ import annotations

import asyncio
import functools
from contextlib import suppress

import structlog
from django.db.migrations.loader import MigrationLoader
from psycopg import Error
from psycopg_pool import PoolTimeout

from config import sql

log = structlog.get_logger(__name__)

_LOOK_S = 1.0


async def list_missing_migrations() -> list[str]:
    """Return the migrations that the database does not have yet; raise as a statement does."""
    applied = set(await sql.every("SELECT app, name FROM django_migrations"))
    return sorted(".".join(one) for one in await asyncio.to_thread(_migrations) - applied)


async def wait_for_migrations(stop: asyncio.Event) -> None:
    """Return when the database has all of them, or when `stop` is set."""
    told: list[str] | None = None
    while not stop.is_set():
        missing = await _look()
        if missing == []:
            return
        if missing != told:
            log.warning("waiting for migrations: run manage.py migrate", missing=missing)
            told = missing
        with suppress(TimeoutError):
            async with asyncio.timeout(_LOOK_S):
                await stop.wait()


async def _look() -> list[str] | None:
    """Return what is missing; None where the database is away or empty."""
    try:
        return await list_missing_migrations()
    except (Error, PoolTimeout):
        return None


@functools.cache
def _migrations() -> frozenset[tuple[str, str]]:
    """Every migration of this installation's code."""
    return frozenset(MigrationLoader(None).disk_migrations or ())
