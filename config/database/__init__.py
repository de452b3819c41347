"""PostgreSQL for coroutines: two pools per event loop, and a bridge for synchronous code.

The hot path (accept, claim, append, read) uses SQL through the serving pool; admin and the slow
endpoints use the ORM. Statements of analysts take seconds, so they have a small separate pool and
delay nobody else. Every loop has its own pools, each opened on first use.

A statement is prepared when a connection first runs it and planned once, whatever its values: a
claim costs a third of what it would cost if planned each time. So an optional filter is another
statement here, not `%s IS NULL OR …`.

A pooler may be between (`pooler`), which in transaction mode gives each transaction another session of
the server. So nothing outlasts a transaction, except on a connection of `session` (`new_connections`).
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Final, Literal, TypeVar
from weakref import WeakKeyDictionary, WeakSet

from django.conf import settings
from psycopg import AsyncConnection, InterfaceError, InternalError, OperationalError
from psycopg.pq import TransactionStatus
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from config.database.new_connections import (
    configure,
    connect,
    connection_arguments,
    django_session,
    find_pooling,
    session,
)
from config.database.pooler import UnusablePooler

__all__ = [
    "ANALYTICS_POOL_SIZE",
    "Purpose",
    "UnusablePooler",
    "close",
    "connect",
    "connection",
    "django_session",
    "find_pooling",
    "is_outage",
    "is_transient",
    "log_failure",
    "run_sync",
    "session",
    "set_serving_loop",
]

T = TypeVar("T")
Purpose = Literal["serving", "analytics"]
ANALYTICS_POOL_SIZE: Final = 2
_WAIT_S: Final[dict[Purpose, int]] = {"serving": 10, "analytics": 60}  # a statement may take a minute
_FINISH_S: Final = 1.0
_RECONNECT_S = 0.5  # between two attempts to connect after an outage
_TRANSIENT = ("08", "40", "53", "55", "57")
_IDLE_S: Final = 60.0
_LENT_S: Final = 600.0  # then the pool sees it again, which closes it when its lifetime is over
_opened: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Purpose, _Connections]] = WeakKeyDictionary()
_finishing: WeakKeyDictionary[asyncio.AbstractEventLoop, WeakSet[asyncio.Task[Any]]] = (
    WeakKeyDictionary()
)
_serving: asyncio.AbstractEventLoop | None = None
_suspect_at = 0.0
_sound_at: WeakKeyDictionary[AsyncConnection[Any], float] = WeakKeyDictionary()


class _Connections:
    """The connections of one loop for one purpose: those of a pool, which come back to a stack first.

    The last one returned is used first, by a server process whose caches are warm, and without the
    pool's locks and tasks: a `SELECT 1` costs 29 µs of CPU, and 65 with the pool alone; with sixteen at
    once 40 and 54 (`benchmarks.alternatives`, 26 November 2026, medians of seven). One that was not used
    for a while, or is broken, goes back to the pool, which closes or replaces it.

    What begins waits for what is under way, but for each eighth turn. Otherwise a burst does the first
    step of all its requests, then the second of all of them, and the first answer comes with the last.
    """

    def __init__(self, pool: AsyncConnectionPool, places: int, limit_s: float) -> None:
        self._pool = pool
        self._limit_s = limit_s
        self._free = self._places = places
        self._turns = 0
        self._borrowing = 0
        self._is_closed = False
        self._idle: list[tuple[AsyncConnection[Any], float]] = []
        self._lent: dict[AsyncConnection[Any], float] = {}
        self._under_way: deque[asyncio.Future[None]] = deque()
        self._beginning: deque[asyncio.Future[None]] = deque()
        self._returns: set[asyncio.Future[None]] = set()  # the loop has only weak references to tasks

    @property
    def in_use(self) -> int:
        """The number of callers that have a connection or wait for a new one."""
        return self._places - self._free

    async def take(self, *, begins: bool) -> AsyncConnection[Any]:
        """Return a connection for the caller alone; raise PoolTimeout if there is none in time."""
        until = time.monotonic() + self._limit_s
        await self._wait_for_place(begins=begins)
        try:
            while True:
                held = self._idle.pop()[0] if self._idle else await self._borrow(until)
                if not _suspect_at or _sound_at.get(held, 0.0) >= _suspect_at:
                    return held
                if await self._is_sound(held):
                    return held
        except BaseException:
            self._give_place()
            raise

    def give(self, held: AsyncConnection[Any]) -> None:
        """Take a connection back, at once: no cancellation can interrupt it and lose the connection."""
        now = time.monotonic()
        is_sound = held.info.transaction_status is TransactionStatus.IDLE
        keeps = not self._borrowing and not self._is_closed  # else the pool passes it to who waits there
        if is_sound and keeps and self._lent[held] > now - _LENT_S:
            self._idle.append((held, now))
        else:
            self._return(held)
        if self._idle and self._idle[0][1] < now - _IDLE_S:
            self._return(self._idle.pop(0)[0])
        self._give_place()

    async def close(self) -> None:
        """Close the pool with all connections that are not in use."""
        self._is_closed = True
        for held, _ in self._idle:
            self._return(held)
        self._idle.clear()
        await asyncio.gather(*self._returns, return_exceptions=True)
        await self._pool.close(timeout=5)

    async def _wait_for_place(self, *, begins: bool) -> None:
        if self._free:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        (self._beginning if begins else self._under_way).append(turn)
        try:
            async with asyncio.timeout(self._limit_s):
                await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled():
                self._give_place()
            if isinstance(error, TimeoutError):
                raise PoolTimeout(f"no connection within {self._limit_s:.0f} seconds") from None
            raise

    def _give_place(self) -> None:
        self._turns += 1
        both = (self._under_way, self._beginning)
        for waiting in both if self._turns % 8 else reversed(both):
            while waiting:
                turn = waiting.popleft()
                if not turn.done():
                    turn.set_result(None)
                    return
        self._free += 1

    async def _is_sound(self, held: AsyncConnection[Any]) -> bool:
        try:
            await held.execute("SELECT 1")
        except OperationalError:
            self._return(held)  # the pool replaces a closed one
            return False
        except BaseException:
            self._return(held)
            raise
        _sound_at[held] = time.monotonic()
        return True

    async def _borrow(self, until: float) -> AsyncConnection[Any]:
        self._borrowing += 1
        try:
            held = await self._pool.getconn(timeout=max(0.05, until - time.monotonic()))
        finally:
            self._borrowing -= 1
        self._lent[held] = time.monotonic()
        return held

    def _return(self, held: AsyncConnection[Any]) -> None:
        del self._lent[held]
        giving = asyncio.ensure_future(self._pool.putconn(held))
        self._returns.add(giving)
        giving.add_done_callback(self._returns.discard)


async def _connections(purpose: Purpose) -> _Connections:
    """Return the running loop's connections for this purpose, opened on first use."""
    mine = _opened.setdefault(asyncio.get_running_loop(), {})
    found = mine.get(purpose)
    if found is None:
        size = settings.DATABASE_POOL_SIZE if purpose == "serving" else ANALYTICS_POOL_SIZE
        pool = AsyncConnectionPool(
            kwargs=connection_arguments(),
            configure=configure,
            min_size=1 if purpose == "serving" else 0,
            max_size=size,
            timeout=_WAIT_S[purpose],
            reconnect_timeout=_RECONNECT_S,
            reconnect_failed=_keep_connecting,
            check=None,
            open=False,
            name="parley" if purpose == "serving" else "parley-analytics",
        )
        found = mine[purpose] = _Connections(pool, size, _WAIT_S[purpose])
        await pool.open()
    return found


async def _keep_connecting(source: AsyncConnectionPool) -> None:
    """Continue connecting while callers wait.

    The pool gives up after `_RECONNECT_S` and tries again only for a new caller; the callers that wait
    already would be delayed until then, seconds after the end of an outage.
    """
    if source.get_stats()["requests_waiting"]:
        await source.check()


class connection:  # noqa: N801 - callers use it as a function
    """Hold a pooled connection in autocommit: each statement is a transaction unless you open one.

    What `begins` something new waits until all that is under way have one. Never yield to a client, or
    wait for one, while you hold it.

    After a connection has broken, every other one is tested before its next use: a restart of the
    database breaks all of them, and later requests must not fail for that.
    """

    __slots__ = ("_begins", "_held", "_purpose", "_source")

    def __init__(self, purpose: Purpose = "serving", *, begins: bool = False) -> None:
        self._purpose: Purpose = purpose
        self._begins = begins

    async def __aenter__(self) -> AsyncConnection[Any]:
        self._source = await _connections(self._purpose)
        self._held = await self._source.take(begins=self._begins)
        return self._held

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, OperationalError) and self._held.closed:
            _mark_suspect()
        self._source.give(self._held)


def is_transient(error: BaseException) -> bool:
    """Return whether a retry may succeed after this database error, by the class of its SQLSTATE.

    Without a SQLSTATE the server did not respond. A program limit (class 54) is permanent, although
    psycopg treats it as an operational error: the value is too large.
    """
    state = getattr(error, "sqlstate", None)
    return state is None or state[:2] in _TRANSIENT


def is_outage(error: BaseException) -> bool:
    """Return whether the database itself could not be used: its answer to any statement is the same."""
    if not isinstance(error, (OperationalError, PoolTimeout, OSError)):
        return False
    state = getattr(error, "sqlstate", None)
    return state is None or state[:2] in ("08", "53", "57")


def log_failure(logger: Any, event: str, error: Exception, **facts: Any) -> None:
    """Log the failure of something that is tried again: what passes in a line, all else as an error.

    What does not pass is a fault of ours, which the next try will not mend.
    """
    name = type(error).__name__
    if _will_pass(error):
        logger.warning(event, error=name, **facts)
    else:
        logger.error(event, error=name, exc_info=error, **facts)


def _will_pass(error: Exception) -> bool:
    if isinstance(error, InternalError):  # a server that has become a replica
        return str(getattr(error, "sqlstate", ""))[:2] == "25"
    known = (OperationalError, InterfaceError, PoolTimeout, OSError)
    return isinstance(error, known) and is_transient(error)


def _mark_suspect() -> None:
    global _suspect_at
    _suspect_at = time.monotonic()


def finish_before_close(task: asyncio.Task[Any]) -> None:
    """Let `close` wait for the task, which uses the running loop's pools, for a second at most."""
    _finishing.setdefault(asyncio.get_running_loop(), WeakSet()).add(task)


async def close() -> None:
    """Close the running loop's pools."""
    if last := [task for task in _finishing.get(asyncio.get_running_loop(), ()) if not task.done()]:
        await asyncio.wait(last, timeout=_FINISH_S)
    for found in _opened.pop(asyncio.get_running_loop(), {}).values():
        await found.close()


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
