"""Runs that this process has just accepted: their first reader mostly comes at once, and here.

It finds the run's head and its first events in memory. Any other reader, and this one if it comes too
late or elsewhere, finds them in the database.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from uuid import UUID

from conversations.identifiers import uuid_of
from conversations.log import follow
from conversations.log.batches import Batch
from conversations.runs import client_queries
from conversations.runs.acceptance import InsertedRun
from conversations.runs.client_queries import RunRow

_heads: Final[dict[UUID, tuple[float, RunRow]]] = {}
"""Until when each is kept, and the head, in the order of their times."""


@contextmanager
def expecting_reader(run_id: UUID) -> Iterator[None]:
    """Keep the events of a run that the block writes, unless it fails."""
    hub = follow.started_hub()
    if hub is None:
        yield
        return
    hub.expect(run_id)
    try:
        yield
    except BaseException:
        hub.forget(run_id)
        raise
    hub.note_written(run_id)


def remember(head: RunRow, written: InsertedRun) -> None:
    """Keep the first batch of a run that is committed now; its head too, if it is to be stored."""
    hub = follow.started_hub()
    if hub is None:
        return
    hub.push(Batch(head.run_id, 1, written.last_seq, written.events))
    if head.stored:
        now = time.monotonic()
        _heads[head.run_id] = now + follow.EXPECTED_S, head
        for run_id in list(itertools.takewhile(lambda one: _heads[one][0] < now, _heads)):
            del _heads[run_id]


def recall(reference: str, *, user_id: UUID) -> RunRow | None:
    """Return the head of the user's run as it was accepted, if that was here and a moment ago."""
    run_id = uuid_of(reference)
    if run_id is None or run_id not in _heads:
        return None
    until, head = _heads[run_id]
    return head if head.owner_id == user_id and time.monotonic() < until else None


async def fetch_run(reference: str, *, user_id: UUID) -> RunRow:
    """Return the head of the user's run from memory, or else as `client_queries.fetch_run` does."""
    return recall(reference, user_id=user_id) or await client_queries.fetch_run(
        reference, user_id=user_id
    )


def forget_thread(thread_id: UUID) -> None:
    """Forget the runs of a thread that is deleted."""
    for run_id in [one for one, (_, head) in _heads.items() if head.thread_id == thread_id]:
        del _heads[run_id]
