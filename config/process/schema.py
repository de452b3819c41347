"""Whether the database has every migration of this installation's code.

A process of a new release that starts before its migrations must not take work: what it writes may need
columns that are not there yet.
"""

from __future__ import annotations

import asyncio
import functools
import pkgutil
from contextlib import suppress
from importlib.util import find_spec

import structlog
from django.apps import apps
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
    """List every migration of the installed code, as Django's loader does, but import none of them.

    A hundred modules, and the models at each of them, would stay in the memory of each process.
    """
    return frozenset(
        (app.label, module.name)
        for app in apps.get_app_configs()
        for module in pkgutil.iter_modules(_migration_folders(app.label))
        if not module.ispkg and module.name[0] not in "_~"
    )


def _migration_folders(label: str) -> list[str]:
    name, _ = MigrationLoader.migrations_module(label)
    try:
        package = find_spec(name) if name else None
    except ModuleNotFoundError:  # an app without models is a module, or has no such package
        return []
    return list(package.submodule_search_locations or ()) if package else []
