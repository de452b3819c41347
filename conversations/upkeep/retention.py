"""Erase events past their time, a thread, and everything of a user who leaves.

A conversation in which staff ran another one again goes with the one that it was copied from, and
so do its later messages: a model has answered there from the copied ones.

All go in steps of at most `_ROWS` rows, each a short transaction of its own, so nobody waits long
and an interrupted call is simply repeated.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import IntegrityError, connection, transaction

from config import database, sql
from conversations import attachments
from conversations.identifiers import lowest_uuid7
from conversations.log import partitions
from conversations.upkeep.holdings import CONTENT

_ROWS: Final = 2_000


# --- events past their time ---------------------------------------------------------------------


@dataclass(frozen=True)
class ExpiredCounts:
    """The dropped partitions and rows; `more` if old events are left for the next time."""

    partitions: int = 0
    rows: int = 0
    more: bool = False


_OLDEST_LIVE: Final = """
SELECT id FROM conversations_run WHERE status IN ('queued', 'running') ORDER BY id LIMIT 1
"""
_DELETE_OLD: Final = f"""
DELETE FROM {partitions.DEFAULT} WHERE ctid = ANY(ARRAY(
    SELECT ctid FROM {partitions.DEFAULT} batch WHERE run_id < %s AND NOT EXISTS (
        SELECT FROM conversations_run run WHERE run.id = batch.run_id AND run.created_at >= %s
    ) LIMIT %s))
"""


async def drop_expired(now: datetime) -> ExpiredCounts:
    """Drop whole partitions older than EVENT_RETENTION_DAYS (0: keep for ever), and some old rows
    of the default partition: there lie also young runs to which a clock set back gave an old id. The
    events of a live run are never dropped."""
    if not settings.EVENT_RETENTION_DAYS:
        return ExpiredCounts()
    since = now - timedelta(days=settings.EVENT_RETENTION_DAYS)
    bound = lowest_uuid7(since)
    async with database.connection() as connection:
        row = await (await connection.execute(_OLDEST_LIVE)).fetchone()
        bound = min(bound, row[0]) if row else bound
        rows = (await connection.execute(_DELETE_OLD, (bound, since, _ROWS))).rowcount
    old = [one for one in await partitions.list_partitions() if one.upper <= bound]
    dropped = [one for one in old if await partitions.drop_partition(one)]
    return ExpiredCounts(len(dropped), rows, more=rows == _ROWS or len(dropped) < len(old))


# --- everything of a user or a thread -----------------------------------------------------------

_FOLDED_AT_ONCE: Final = 500  # runs with a row of the log each
_UNFOLDED_AT_ONCE: Final = 25  # with hundreds of rows each
_SETTLED_S: Final = 5.0
_PASSES: Final = 5


@dataclass(frozen=True)
class ErasedCounts:
    """The numbers of erased rows; staff made `copies` of the threads from the others."""

    messages: int = 0
    events: int = 0
    runs: int = 0
    threads: int = 0
    files: int = 0
    copies: int = 0


Progress = Callable[[ErasedCounts], None]


def _ignore(_: ErasedCounts) -> None:
    """Report the progress to nobody."""


def erase_user(
    user_id: UUID, progress: Progress = _ignore, *, keep_account: bool = False
) -> ErasedCounts:
    """Erase a user's threads, messages, runs, events and files, then tokens and account. Return counts.

    The account is shut first and its live runs are cancelled. Staff's re-runs go too. May
    be called again after an interruption, and for an erased user. Not for a serving loop's
    operating-system thread: it blocks.
    """
    if not keep_account:  # the user's tokens are worthless from now on
        get_user_model().objects.filter(pk=user_id).update(is_active=False)
    erased = _erase_copies(_COPIES_OF_USER, user_id, progress=progress)
    erased = _erase(_OF_USER, user_id, _cancel_runs(_OF_USER, user_id), erased, progress)
    files = database.run_sync(attachments.delete_user_files(user_id))
    erased = replace(erased, files=files)
    if files:
        progress(erased)
    for content in CONTENT:
        _delete(f"DELETE FROM {content.table} WHERE {content.column} = %s", user_id)
    erased = _erase_copies(_COPIES_OF_USER, user_id, erased, progress)  # created while the rest went
    if not keep_account:
        get_user_model().objects.filter(pk=user_id).delete()
    return erased


def erase_thread(thread_id: UUID, *, owner_id: UUID) -> ErasedCounts:
    """Erase a thread: messages, runs, events, files and staff's re-runs of it. Return the counts.

    Its live runs are cancelled first, so that their followers see an end, and no worker can write
    afterwards. May be called again after an interruption. Blocks, as `erase_user` does.
    """
    erased = _erase_copies(_COPIES_OF_THREAD, thread_id)  # they name its files too
    live = _cancel_runs(_OF_THREAD, thread_id)
    database.run_sync(attachments.delete_thread_files(owner_id, thread_id))  # while messages name them
    erased = _erase(_OF_THREAD, thread_id, live, erased)
    return _erase_copies(_COPIES_OF_THREAD, thread_id, erased)


@dataclass(frozen=True)
class _Scope:
    """The owner of the rows: conditions and queries that take one id."""

    runs: str
    threads: str

    @property
    def messages(self) -> str:
        return f"""SELECT id FROM conversations_message WHERE thread_id IN (
            SELECT id FROM conversations_thread WHERE {self.threads})"""


_OF_USER: Final = _Scope(runs="owner_id = %s", threads="owner_id = %s")
_OF_THREAD: Final = _Scope(runs="thread_id = %s", threads="id = %s")


def _copies(condition: str) -> _Scope:
    """Return all threads that were copied from those of a user, or from a thread."""
    threads = f"SELECT thread_id FROM conversations_threadcopy WHERE {condition}"
    return _Scope(runs=f"thread_id IN ({threads})", threads=f"id IN ({threads})")


_COPIES_OF_USER: Final = _copies("owner_id = %s")
_COPIES_OF_THREAD: Final = _copies("source_id = %s")
_COPIED: Final = "SELECT owner_id, id FROM conversations_thread WHERE {threads}"


def _erase_copies(
    scope: _Scope, of_id: UUID, erased: ErasedCounts = ErasedCounts(), progress: Progress = _ignore
) -> ErasedCounts:
    """Erase the copies, until no new one has been made meanwhile."""
    while copied := sql.fetch(_COPIED.format(threads=scope.threads), (of_id,)):
        live = _cancel_runs(scope, of_id)
        for owner_id, thread_id in copied:
            database.run_sync(attachments.delete_thread_files(owner_id, thread_id))
        erased = _erase(scope, of_id, live, erased, progress)
        erased = replace(erased, copies=erased.copies + len(copied))
    return erased


def _erase(
    scope: _Scope, of_id: UUID, live: list[UUID], erased: ErasedCounts, progress: Progress = _ignore
) -> ErasedCounts:
    for left in reversed(range(_PASSES)):
        try:
            for so_far in _erase_rows(scope, of_id, erased):
                erased = so_far
                progress(erased)
            break
        except IntegrityError:  # new messages came: the account is kept, or staff write
            if not left:
                raise
    _delete_events(live)  # rows that a worker wrote while its run was being erased
    return erased


_LIVE: Final = """
SELECT id FROM conversations_run WHERE {runs} AND status IN ('queued', 'running')
"""
_CANCEL: Final = """
UPDATE conversations_run SET cancel_requested_at = coalesce(cancel_requested_at, clock_timestamp())
WHERE {runs} AND status IN ('queued', 'running') RETURNING id
"""


def _cancel_runs(scope: _Scope, of_id: UUID) -> list[UUID]:
    """Cancel live runs and wait for their end. Return the runs' ids.

    If no process ends them the rows go all the same: without its row a run has no fence
    under which anything could be written.
    """
    until = time.monotonic() + _SETTLED_S
    live = [run_id for (run_id,) in sql.fetch(_CANCEL.format(runs=scope.runs), (of_id,))]
    while live and sql.fetch(_LIVE.format(runs=scope.runs), (of_id,)) and time.monotonic() < until:
        time.sleep(0.05)
    return live


_FOLDED: Final = "SELECT id FROM conversations_run WHERE {runs} AND folded"
_UNFOLDED: Final = "SELECT id FROM conversations_run WHERE {runs}"
_THREADS: Final = "SELECT id FROM conversations_thread WHERE {threads}"


def _erase_rows(scope: _Scope, of_id: UUID, erased: ErasedCounts) -> Iterator[ErasedCounts]:
    """Erase runs with their rows, then rows without a run; yield the count after each step."""
    for ids in _id_lists(_FOLDED.format(runs=scope.runs), of_id, _FOLDED_AT_ONCE):
        with transaction.atomic():
            events = _delete("DELETE FROM conversations_eventbatch WHERE run_id = ANY(%s)", ids)
            erased = _erase_runs(ids, replace(erased, events=erased.events + events))
        yield erased
    for ids in _id_lists(_UNFOLDED.format(runs=scope.runs), of_id, _UNFOLDED_AT_ONCE):
        erased = _erase_runs(ids, replace(erased, events=erased.events + _delete_events(ids)))
        yield erased
    for ids in _id_lists(scope.messages, of_id, _ROWS):
        gone = _delete("DELETE FROM conversations_message WHERE id = ANY(%s)", ids)
        erased = replace(erased, messages=erased.messages + gone)
        yield erased
    for ids in _id_lists(_THREADS.format(threads=scope.threads), of_id, _ROWS):
        gone = _delete("DELETE FROM conversations_thread WHERE id = ANY(%s)", ids)
        erased = replace(erased, threads=erased.threads + gone)
        yield erased


_MESSAGES_GONE: Final = "SELECT pg_stat_get_xact_tuples_deleted('conversations_message'::regclass)"


def _erase_runs(ids: list[UUID], erased: ErasedCounts) -> ErasedCounts:
    """Erase these runs with their messages, which PostgreSQL counts: a query for them costs more."""
    with transaction.atomic():
        ((before,),) = sql.fetch(_MESSAGES_GONE)
        runs = _delete("DELETE FROM conversations_run WHERE id = ANY(%s)", ids)
        ((after,),) = sql.fetch(_MESSAGES_GONE)
    messages = erased.messages + after - before
    return replace(erased, runs=erased.runs + runs, messages=messages)


_READ_AT_ONCE: Final = 100_000
_PAGE: Final = "SELECT id FROM ({query}) found WHERE id > %s ORDER BY id LIMIT %s"


def _id_lists(query: str, of_id: UUID, count: int) -> Iterator[list[UUID]]:
    """Yield the ids in lists. They are read in large pages, as each page reads deleted rows again."""
    statement, after = _PAGE.format(query=query), UUID(int=0)
    while True:
        rows = sql.fetch(statement, (of_id, after, _READ_AT_ONCE))
        ids = [row_id for (row_id,) in rows]
        yield from (ids[start : start + count] for start in range(0, len(ids), count))
        if len(ids) < _READ_AT_ONCE:
            return
        after = ids[-1]


_DELETE_EVENTS: Final = """
DELETE FROM conversations_eventbatch WHERE (run_id, first_seq) IN (
    SELECT run_id, first_seq FROM conversations_eventbatch WHERE run_id = ANY(%s) LIMIT %s)
    AND run_id = ANY(%s)
"""


def _delete_events(run_ids: list[UUID]) -> int:
    """Delete the runs' batches. Return their number."""
    total = 0
    while run_ids:
        gone = _delete(_DELETE_EVENTS, run_ids, _ROWS, run_ids)
        total += gone
        if gone < _ROWS:
            break
    return total


def _delete(statement: str, *arguments: Any) -> int:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement, arguments)
        return int(cursor.rowcount)
