"""New connections to PostgreSQL: their arguments, and what each is told before its first use.

The limits of time are set in each session, as a pooler takes no start-up options.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final

from django.conf import settings
from django.db import connection as django_connection
from psycopg import AsyncConnection, Connection, OperationalError
from psycopg.conninfo import conninfo_to_dict

from config import env
from config.database.pooler import DIRECT, LIMITS, Pooling, UnusablePooler, find, no_session

_CONNECT_S: Final = 2
_SILENT_MS: Final = 5_000  # then a server that has vanished without a word counts as gone
_DEFAULTS: Final = LIMITS | {
    # A host that has vanished without a word counts as gone within 20 s, with the locks that it held.
    "tcp_keepalives_idle": "5",
    "tcp_keepalives_interval": "3",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "15s",
    # A statement is planned once, and on a new database while its tables are empty. Such a plan would
    # read whole tables, however long they are by then, until PostgreSQL's first ANALYZE.
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "jit": "off",
    "TimeZone": "UTC",
}
_SET: Final = "SELECT " + ", ".join(
    f"set_config('{name}', '{to}', false)" for name, to in _DEFAULTS.items()
)
_SET_IF_DIRECT: Final = f"{_SET} WHERE pg_backend_pid() = %s::bigint"
_SET_TIME_ZONE: Final = "SELECT set_config('TimeZone', 'UTC', false)"


def connect(*, direct: bool = False) -> Connection[Any]:
    """Open a connection for an operating-system thread without a loop; use it in a `with` block.

    If `direct` it leads to DIRECT_DATABASE_URL, if that is set. Raise UnusablePooler, or another
    OperationalError if the server does not answer.
    """
    limits = {"connect_timeout": _CONNECT_S, "tcp_user_timeout": _SILENT_MS}
    arguments = _session_arguments() if direct else connection_arguments()
    held = Connection.connect(**arguments | limits)
    try:
        if held.execute(_SET_IF_DIRECT, (held.info.backend_pid,), prepare=False).fetchone() is None:
            found = find(arguments)
            if statement := _statement_to_set(found, held):
                held.execute(statement, prepare=False)
            _prepare_if_kept(found, held)
    except BaseException:
        held.close()
        raise
    return held


def find_pooling(*, direct: bool = False) -> Pooling:
    """Return what is between Parley and PostgreSQL. Blocks, and raises as `connect` does."""
    return find(_session_arguments() if direct else connection_arguments())


@asynccontextmanager
async def session(name: str = "") -> AsyncIterator[AsyncConnection[Any]]:
    """Open a connection that has a session of the server to itself, for what outlasts a transaction.

    PostgreSQL shows a `name` in `pg_stat_activity`.

    It leads to DIRECT_DATABASE_URL, if that is set. Raise UnusablePooler if a pooler in transaction mode
    is between.
    """
    arguments = _session_arguments() | {"connect_timeout": _CONNECT_S, "tcp_user_timeout": _SILENT_MS}
    arguments |= {"application_name": name} if name else {}
    async with await AsyncConnection.connect(**arguments) as held:
        if (await _configure(held, arguments)).mode == "transaction":
            raise no_session()
        yield held


@contextmanager
def django_session() -> Iterator[None]:
    """Inside the block Django's connection leads to DIRECT_DATABASE_URL, if that is set.

    Raise UnusablePooler if a pooler in transaction mode is between. Django waits for a server that does
    not answer yet.
    """
    try:
        if find_pooling(direct=True).mode == "transaction":
            raise no_session()
    except UnusablePooler:
        raise
    except OperationalError:
        pass
    before = django_connection.settings_dict
    if settings.DIRECT_DATABASE_URL:
        _reconnect_django(before | settings.DIRECT_DATABASE | {"NAME": _direct_name()})
    try:
        yield
    finally:
        if django_connection.settings_dict is not before:
            _reconnect_django(before)


def _reconnect_django(parameters: dict[str, Any]) -> None:
    django_connection.close()
    django_connection.close_pool()  # type: ignore[attr-defined]
    django_connection.settings_dict = parameters


async def configure(held: AsyncConnection[Any]) -> None:
    """Tell a new connection of a pool what it needs. Raise UnusablePooler."""
    await _configure(held, connection_arguments())


async def _configure(held: AsyncConnection[Any], arguments: dict[str, Any]) -> Pooling:
    cursor = await held.execute(_SET_IF_DIRECT, (held.info.backend_pid,), prepare=False)
    if await cursor.fetchone() is not None:
        return DIRECT
    found = await asyncio.to_thread(find, arguments)
    if statement := _statement_to_set(found, held):
        await held.execute(statement, prepare=False)
    _prepare_if_kept(found, held)
    return found


def _statement_to_set(found: Pooling, held: Connection[Any] | AsyncConnection[Any]) -> str:
    """Return the statement that a new connection needs, or "".

    In transaction mode it would change a session that others use too, but for the time zone, which
    poolers keep for each client.
    """
    if found.mode != "transaction":
        return _SET
    return "" if held.info.parameter_status("TimeZone") == "UTC" else _SET_TIME_ZONE


def _prepare_if_kept(found: Pooling, held: Connection[Any] | AsyncConnection[Any]) -> None:
    held.prepare_threshold = 0 if found.keeps_statements else None


def connection_arguments() -> dict[str, Any]:
    """Return Django's arguments (so a test database is used) with those of the hot path."""
    arguments = django_connection.get_connection_params()
    for name in ("cursor_factory", "context", "prepare_threshold"):
        arguments.pop(name, None)
    return arguments | {"autocommit": True, "prepare_threshold": 0}


def _session_arguments() -> dict[str, Any]:
    """Return the arguments for a connection that needs a session of its own."""
    if not settings.DIRECT_DATABASE_URL:
        return connection_arguments()
    direct = env.NOTICE_SILENCE | conninfo_to_dict(settings.DIRECT_DATABASE_URL)
    return direct | {"dbname": _direct_name(), "autocommit": True, "prepare_threshold": 0}


def _direct_name() -> str:
    """Return the name of the database at DIRECT_DATABASE_URL, or that of the test database."""
    given = conninfo_to_dict(settings.DATABASE_URL).get("dbname", "postgres")
    name = str(django_connection.settings_dict["NAME"])
    return name if name != given else str(settings.DIRECT_DATABASE["NAME"])
