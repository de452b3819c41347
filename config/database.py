"""PostgreSQL for coroutines: two pools an event loop, and a bridge for code that is not async.

The hot path (accept, claim, append, read) speaks SQL through the pool for serving; admin and the slow
endpoints use the ORM. What analysts read takes seconds a statement, so it has a small pool of its own:
nobody else ever waits behind it. Every loop has its own pools, each opened on first use.

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
_RECONNECT_S = 0.5  # between two attempts to connect: how soon the end of an outage is seen
_PASSING = ("08", "40", "53", "55", "57")
_pools: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Purpose, AsyncConnectionPool]]
_pools = WeakKeyDictionary()
_serving: asyncio.AbstractEventLoop | None = None
_suspect_at = 0.0
_giving: set[asyncio.Future[None]] = set()  # the loop itself holds tasks only weakly
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
            reconnect_failed=_try_again,
            check=None,
            open=False,
            name="parley" if purpose == "serving" else "parley-analytics",
        )
        await found.open()
    return found


class _Pool(AsyncConnectionPool):
    """psycopg's pool, but the connection that was given back last is given out first.

    Statements that follow each other then meet a server process that is awake, its caches warm:
    half a millisecond of a lone run's eight.
    """

    async def _add_to_pool(self, conn: AsyncConnection[Any]) -> None:
        await super()._add_to_pool(conn)
        if self._pool and self._pool[-1] is conn:
            self._pool.rotate(1)


async def _try_again(source: AsyncConnectionPool) -> None:
    """Go on connecting while anybody waits.

    The pool gives up after `_RECONNECT_S`, and by itself begins anew only when somebody else comes:
    those who wait already would wait for that, seconds after the database is back.
    """
    if source.get_stats()["requests_waiting"]:
        await source.check()


@asynccontextmanager
async def connection(purpose: Purpose = "serving") -> AsyncIterator[AsyncConnection[Any]]:
    """A pooled connection in autocommit: one statement is one transaction unless you open one.

    Never yield to a client, or wait for one, while you hold it.

    After a connection has broken, every other one is tried before it is next given out: a restart
    of the database breaks all of them, and the requests after it must not pay for that.
    """
    source = await pool(purpose)
    held = await _take(source)
    try:
        yield held
    except OperationalError:
        if held.closed:
            _suspect()
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
    """Have the connection given back. Nobody waits for that, and nobody's cancellation cuts it short:
    a connection that is half given back is lost to the pool for ever."""
    giving = asyncio.ensure_future(source.putconn(held))
    _giving.add(giving)
    giving.add_done_callback(_giving.discard)


def passes(error: BaseException) -> bool:
    """Whether an error of the database may be gone at the next try, by its SQLSTATE's class.

    One without a SQLSTATE got no answer at all. A limit of the program (class 54) stays, though psycopg
    counts it among the operational errors: it is the value that is too large.
    """
    state = getattr(error, "sqlstate", None)
    return state is None or state[:2] in _PASSING


def _suspect() -> None:
    global _suspect_at
    _suspect_at = time.monotonic()


async def close() -> None:
    """Close the running loop's pools."""
    loop = asyncio.get_running_loop()
    for found in _pools.pop(loop, {}).values():
        here = [giving for giving in _giving if giving.get_loop() is loop]
        await asyncio.gather(*here, return_exceptions=True)
        await found.close(timeout=5)


def serve_on(loop: asyncio.AbstractEventLoop | None) -> None:
    """Name the loop that serves this process, so that threads can hand coroutines to it."""
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
    """Open a connection for a thread that must not wait for a loop; use it in a `with` block."""
    return Connection.connect(**_connection_arguments() | {"connect_timeout": _CONNECT_S})


def _connection_arguments() -> dict[str, Any]:
    """Django's own arguments (so a test database is honoured), with time-outs on top."""
    arguments = django_connection.get_connection_params()
    for name in ("cursor_factory", "context", "prepare_threshold"):
        arguments.pop(name, None)
    options = "-c lock_timeout=5s -c statement_timeout=60s -c idle_in_transaction_session_timeout=10s"
    options += " -c plan_cache_mode=force_generic_plan -c jit=off"
    arguments["options"] = f"{arguments.get('options', '')} {options} -c timezone=UTC".strip()
    return arguments | {"autocommit": True, "prepare_threshold": 0}
