"""The audit of Host calls: the caller, the run, the request and the result.

Notes gather during a write and are written together, so that no call waits for its note; `flush` waits
until all are written. If the database is not available they wait, up to a limit; notes dropped beyond
it are logged. Old notes, and with them expired artifacts, are deleted every hour while notes come.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple
from uuid import UUID
from weakref import WeakKeyDictionary

import structlog
from django.conf import settings
from psycopg import Error as DatabaseError
from psycopg_pool import PoolTimeout

from config import database, sql
from conversations.log.storable_text import clean_text

log = structlog.get_logger(__name__)

_MAX_WAITING: Final = 50_000
_RETRY_S: Final = 0.5
_FORGET_EVERY_S: Final = 3_600.0


_TEXTS: Final = {2: 320, 4: 64, 5: 200, 6: 64, 7: 32}


class CallNote(NamedTuple):
    """A row of `agents.HostCall`; `at` is epoch seconds."""

    at: float
    run_id: UUID | None
    runner_id: str
    binding_id: int
    action: str
    resource: str
    scope: str
    result: str
    elapsed_us: int


_WRITE: Final = """
INSERT INTO agents_hostcall
    (at, run_id, runner_id, binding_id, action, resource, scope, result, elapsed_us)
SELECT * FROM unnest(%s::timestamptz[], %s::uuid[], %s::text[], %s::int[], %s::text[], %s::text[],
    %s::text[], %s::text[], %s::int[])
"""


_DELETE_NOTES: Final = """
DELETE FROM agents_hostcall WHERE id IN (
    SELECT id FROM agents_hostcall WHERE at < now() - make_interval(days => %s) ORDER BY at LIMIT 10000)
"""
_DELETE_ARTIFACTS: Final = """
DELETE FROM agents_hostartifact WHERE id IN (
    SELECT id FROM agents_hostartifact WHERE expires_at <= now() LIMIT 1000)
"""


class _NoteQueue:
    """The notes of one event loop."""

    def __init__(self) -> None:
        self._waiting: list[CallNote] = []
        self._writing: asyncio.Task[None] | None = None
        self._dropped = 0
        self._forgot_at = float("-inf")

    def add(self, note: CallNote) -> None:
        if len(self._waiting) >= _MAX_WAITING:
            self._dropped += 1
            return
        self._waiting.append(note)
        if self._writing is None:
            self._writing = asyncio.get_running_loop().create_task(self._write())

    async def flush(self) -> None:
        while self._writing is not None:
            await asyncio.shield(self._writing)

    async def _write(self) -> None:
        try:
            while self._waiting:
                notes, self._waiting = self._waiting, []
                await self._write_until_stored(notes)
            await self._delete_old()
        finally:
            self._writing = None

    async def _write_until_stored(self, notes: list[CallNote]) -> None:
        columns = _columns(notes)
        while True:
            try:
                await sql.change(_WRITE, columns)
            except Exception as error:  # any error: a call must not fail because of its note
                log.warning("audit waits", notes=len(notes), error=type(error).__name__)
                if not database.is_transient(error):
                    return
                await asyncio.sleep(_RETRY_S)
            else:
                break
        if self._dropped:
            log.error("audit dropped notes", count=self._dropped)
            self._dropped = 0

    async def _delete_old(self) -> None:
        """Delete old rows and expired artifacts, once an hour."""
        if time.monotonic() < self._forgot_at + _FORGET_EVERY_S:
            return
        self._forgot_at = time.monotonic()
        with suppress(OSError, DatabaseError, PoolTimeout):  # the next attempt is in an hour
            await delete_old()


async def delete_old() -> None:
    """Delete some rows past HOST_AUDIT_DAYS and some expired artifacts."""
    await sql.change(_DELETE_ARTIFACTS, ())
    if settings.HOST_AUDIT_DAYS:
        await sql.change(_DELETE_NOTES, (settings.HOST_AUDIT_DAYS,))


def _columns(notes: list[CallNote]) -> tuple[list[Any], ...]:
    columns = [list(column) for column in zip(*notes, strict=True)]
    columns[0] = [datetime.fromtimestamp(at, UTC) for at in columns[0]]
    for place, longest in _TEXTS.items():
        columns[place] = [clean_text(text)[:longest] for text in columns[place]]
    return tuple(columns)


_queues: WeakKeyDictionary[asyncio.AbstractEventLoop, _NoteQueue] = WeakKeyDictionary()


def _queue() -> _NoteQueue:
    return _queues.setdefault(asyncio.get_running_loop(), _NoteQueue())


def add_note(note: CallNote) -> None:
    """Schedule the note for writing."""
    _queue().add(note)


async def flush() -> None:
    """Wait until all notes of this loop are written."""
    await _queue().flush()
