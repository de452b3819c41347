"""Single statements, statements for many callers and locks, on a pooled connection; or on Django's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import Context
from typing import Any, Final, Generic, TypeVar
from weakref import WeakKeyDictionary

import msgspec
from django.db import connection as django_connection
from psycopg import AsyncConnection

from config import database

T = TypeVar("T")
R = TypeVar("R")
_SLOW_S: Final = 0.05
_TOLD_AT_ONCE: Final = 8
Arguments = Sequence[Any] | Mapping[str, Any] | None


async def one(statement: str, arguments: Arguments = None, *, begins: bool = False) -> Any:
    """Return the first row, or None; what `begins` something new waits for all that is under way."""
    async with database.connection(begins=begins) as connection:
        return await (await connection.execute(statement, arguments)).fetchone()


async def every(statement: str, arguments: Arguments = None, *, begins: bool = False) -> list[Any]:
    """Return all rows, whose number the statement limits; `begins` as in `one`."""
    async with database.connection(begins=begins) as connection:
        return await (await connection.execute(statement, arguments)).fetchall()


async def change(statement: str, arguments: Arguments = None) -> int:
    """Return the number of affected rows."""
    async with database.connection() as connection:
        return (await connection.execute(statement, arguments)).rowcount


def rows_as_json(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return rows, by the names of their columns, as `json_populate_recordset` reads them."""
    return msgspec.json.encode(list(rows)).decode()


def raw_json(text: str) -> msgspec.Raw:
    """Return text that is JSON already, as a value of such a row."""
    return msgspec.Raw(text.encode())


class Grouped(Generic[T, R]):
    """Calls that share statements: those of one turn of the loop, and those that arrive while a
    statement is under way, which go with the next one. A call that is alone does not wait.

    `work` takes up to `most` values and returns their results, in the same order. If it fails for
    several they are tried one by one, so that a fault is only its caller's; but not in an outage.
    Of many callers a few go on in each turn of the loop, and others on it between them: those that
    are answered first are sooner done, and no turn is long.
    """

    def __init__(self, work: Callable[[list[T]], Awaitable[Sequence[R]]], *, most: int) -> None:
        self._work = work
        self._most = most
        self._waiting: WeakKeyDictionary[asyncio.AbstractEventLoop, list[_Call[T, R]]]
        self._waiting = WeakKeyDictionary()
        self._tasks: set[asyncio.Task[None]] = set()  # the loop has only weak references to them

    async def call(self, value: T) -> R:
        """Return the result for this value. The work may be done though the caller was cancelled."""
        loop = asyncio.get_running_loop()
        waiting = self._waiting.get(loop)
        if waiting is None:
            waiting = self._waiting[loop] = []
            self._start(self._answer_all(waiting))
        result: asyncio.Future[R] = loop.create_future()
        waiting.append((value, result))
        return await result

    async def _answer_all(self, waiting: list[_Call[T, R]]) -> None:
        """Send one statement after the other, but no call waits long for the answer to another one."""
        try:
            while waiting:
                calls = [call for call in waiting[: self._most] if not call[1].done()]
                del waiting[: self._most]
                if calls:
                    await asyncio.wait({self._start(self._answer(calls))}, timeout=_SLOW_S)
        finally:
            for _, result in waiting:  # the loop is closing
                result.cancel()
            del self._waiting[asyncio.get_running_loop()]

    async def _answer(self, calls: list[_Call[T, R]]) -> None:
        try:
            results = await self._work([value for value, _ in calls])
        except Exception as error:
            if len(calls) > 1 and not database.is_outage(error):
                await asyncio.gather(*(self._answer([call]) for call in calls))
                return
            for _, result in calls:
                if not result.done():
                    result.set_exception(error)
        except asyncio.CancelledError:  # the loop is closing
            for _, result in calls:
                result.cancel()
            raise
        else:
            self._tell(calls, results)

    def _tell(self, calls: list[_Call[T, R]], results: Sequence[R]) -> None:
        """Answer a few of the calls, and the others in the next turns of the loop."""
        few = _TOLD_AT_ONCE
        for (_, result), found in zip(calls[:few], results[:few], strict=True):
            if not result.done():
                result.set_result(found)
        if len(calls) > few:
            asyncio.get_running_loop().call_soon(self._tell, calls[few:], results[few:])

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work, context=Context())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


_Call = tuple[T, asyncio.Future[R]]


_LOCK_MAY_PAUSE: Final = "SET LOCAL idle_in_transaction_session_timeout = 0"
_TRY_LOCK: Final = "SELECT pg_try_advisory_xact_lock(%s)"


@asynccontextmanager
async def advisory_lock(key: int, *, wait: bool = False) -> AsyncIterator[bool]:
    """Yield whether this process alone has the lock; with `wait`, wait for it.

    A transaction that does nothing else has it, so that it is kept behind a pooler too. If the process
    dies the lock goes with its connection.
    """
    async with database.connection() as connection, connection.transaction():
        await connection.execute(_LOCK_MAY_PAUSE)
        while not (acquired := await _try_lock(connection, key)) and wait:  # noqa: ASYNC110 - another process tells nobody
            await asyncio.sleep(0.2)
        yield acquired


async def _try_lock(connection: AsyncConnection[Any], key: int) -> bool:
    return bool(await (await connection.execute(_TRY_LOCK, (key,))).fetchone() == (True,))


def fetch(statement: str, arguments: Arguments = None) -> list[Any]:
    """Return all rows, for synchronous code."""
    with django_connection.cursor() as cursor:
        cursor.execute(statement, arguments)
        return list(cursor.fetchall())
