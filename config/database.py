"""PostgreSQL for coroutines: two pools per event loop, and a bridge for synchronous code.

The hot path (accept, claim, append, read) uses SQL through the serving pool; admin and the slow
endpoints use the ORM. Statements of analysts take seconds, so they have a small separate pool and
delay nobody else. Every loop has its own pools, each opened on first use.

A statement is prepared when a connection first runs it and planned once, whatever its values: a
claim costs a third of what it would cost if planned each time. So an optional filter is another
statement here, not `%s IS NULL OR …`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Final, Literal, TypeVar
from weakref import WeakKeyDictionary

from django.conf import settings
from django.db import connection as django_connection
from psycopg import AsyncConnection, Connection, OperationalError
from psycopg_pool import AsyncConnectionPool

T = TypeVar("T")
Purpose = Literal["serving", "analytics"]
ANALYTICS_POOL_SIZE: Final = 2
_CONNECT_S: Final = 2
_WAIT_S: Final[dict[Purpose, int]] = {"serving": 10, "analytics": 60}  # a statement may take a minute
_RECONNECT_S = 0.5  # between two attempts to connect after an outage
_TRANSIENT = ("08", "40", "53", "55", "57")
_pools: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Purpose, AsyncConnectionPool]]
_pools = WeakKeyDictionary()
_serving: asyncio.AbstractEventLoop | None = None
_suspect_at = 0.0
_returns: set[asyncio.Future[None]] = set()  # the loop has only weak references to tasks
_sound_at: WeakKeyDictionary[AsyncConnection[Any], float] = WeakKeyDictionary()


async def pool(purpose: Purpose = "serving") -> AsyncConnectionPool:
    """Return the running loop's pool for this purpose, opened on first use."""
    pools = _pools.setdefault(asyncio.get_running_loop(), {})
    found = pools.get(purpose)
    if found is None:
        found = pools[purpose] = _Pool(
            kwargs=_connection_arguments(),
            min_size=1 if purpose == "serving" else 0,
            max_size=settings.DATABASE_POOL_SIZE if purpose == "serving" else ANALYTICS_POOL_SIZE,
            timeout=_WAIT_S[purpose],
            reconnect_timeout=_RECONNECT_S,
            reconnect_failed=_keep_connecting,
            check=None,
            open=False,
            name="parley" if purpose == "serving" else "parley-analytics",
        )
        await found.open()
    return found


class _Pool(AsyncConnectionPool):
    """psycopg's pool as a stack: the connection that was returned last is used first.

    Consecutive statements then use a server process with warm caches, which saves half a millisecond
    of a single run's eight.
    """

    async def _add_to_pool(self, conn: AsyncConnection[Any]) -> None:
        await super()._add_to_pool(conn)
        if self._pool and self._pool[-1] is conn:
            self._pool.rotate(1)


async def _keep_connecting(source: AsyncConnectionPool) -> None:
    """Continue connecting while callers wait.

    The pool gives up after `_RECONNECT_S` and tries again only for a new caller; the callers that wait
    already would be delayed until then, seconds after the end of an outage.
    """
    if source.get_stats()["requests_waiting"]:
        await source.check()


@asynccontextmanager
async def connection(purpose: Purpose = "serving") -> AsyncIterator[AsyncConnection[Any]]:
    """Yield a pooled connection in autocommit: each statement is a transaction unless you open one.

    Never yield to a client, or wait for one, while you hold it.

    After a connection has broken, every other one is tested before its next use: a restart of the
    database breaks all of them, and later requests must not fail for that.
    """
    source = await pool(purpose)
    held = await _take(source)
    try:
        yield held
    except OperationalError:
        if held.closed:
            _mark_suspect()
        raise
    finally:
        _give_back(source, held)


async def _take(source: AsyncConnectionPool) -> AsyncConnection[Any]:
    while True:
        held = await source.getconn()
        if _sound_at.get(held, 0.0) >= _suspect_at:
            return held
        try:
            await held.execute("SELECT 1")
        except OperationalError:
            _give_back(source, held)  # the pool replaces a closed one
        except BaseException:
            _give_back(source, held)
            raise
        else:
            _sound_at[held] = time.monotonic()
            return held


def _give_back(source: AsyncConnectionPool, held: AsyncConnection[Any]) -> None:
    """Return the connection to the pool without waiting, so that no cancellation can interrupt it.

    An interrupted return would lose the connection for ever.
    """
    giving = asyncio.ensure_future(source.putconn(held))
    _returns.add(giving)
    giving.add_done_callback(_returns.discard)


def is_transient(error: BaseException) -> bool:
    """Return whether a retry may succeed after this database error, by the class of its SQLSTATE.

    Without a SQLSTATE the server did not respond. A program limit (class 54) is permanent, although
    psycopg treats it as an operational error: the value is too large.
    """
    state = getattr(error, "sqlstate", None)
    return state is None or state[:2] in _TRANSIENT


def _mark_suspect() -> None:
    global _suspect_at
    _suspect_at = time.monotonic()


async def close() -> None:
    """Close the running loop's pools."""
    loop = asyncio.get_running_loop()
    for found in _pools.pop(loop, {}).values():
        here = [giving for giving in _returns if giving.get_loop() is loop]
        await asyncio.gather(*here, return_exceptions=True)
        await found.close(timeout=5)


def set_serving_loop(loop: asyncio.AbstractEventLoop | None) -> None:
    """Set the serving loop of this process, to which other threads pass coroutines."""
    global _serving
    _serving = loop


def run_sync(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine from synchronous code (an admin view, a command) and wait for its result.

    In a serving process it runs on the serving loop; elsewhere on a loop of its own.
    """
    if _serving is not None and _serving.is_running():
        return asyncio.run_coroutine_threadsafe(work, _serving).result()
    return asyncio.run(_closing(work))


async def _closing(work: Coroutine[Any, Any, T]) -> T:
    try:
        return await work
    finally:
        await close()


def connect() -> Connection[Any]:
    """Open a connection for an operating-system thread without a loop; use it in a `with` block."""
    return Connection.connect(**_connection_arguments() | {"connect_timeout": _CONNECT_S})


def _connection_arguments() -> dict[str, Any]:
    """Return Django's arguments (so a test database is used) with additional time-outs."""
    arguments = django_connection.get_connection_params()
    for name in ("cursor_factory", "context", "prepare_threshold"):
        arguments.pop(name, None)
    options = "-c lock_timeout=5s -c statement_timeout=60s -c idle_in_transaction_session_timeout=10s"
    options += " -c plan_cache_mode=force_generic_plan -c jit=off"
    arguments["options"] = f"{arguments.get('options', '')} {options} -c timezone=UTC".strip()
    return arguments | {"autocommit": True, "prepare_threshold": 0}
