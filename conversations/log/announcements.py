"""Announcements of committed batches to those who follow runs, in this process and in others."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final
from uuid import UUID
from weakref import WeakKeyDictionary

from config.coordination import notifications
from conversations.log.batches import Batch

GROUP: Final = "log"
_SOON_S: Final = 0.005
_kept: WeakKeyDictionary[asyncio.AbstractEventLoop, list[Batch]] = WeakKeyDictionary()


def announce(batches: Sequence[Batch]) -> None:
    """Notify followers of committed batches; notifications carry them, so followers need no query.

    Of a batch that is too large for what carries notifications they have only the place.
    """
    if kept := _kept.pop(asyncio.get_running_loop(), None):
        batches = [*kept, *batches]
    if batches:
        notifications.notify(GROUP, {"batches": [_carried(batch) for batch in batches]})


def announce_soon(batches: Sequence[Batch]) -> None:
    """Announce them with the next ones, or in a moment: a notification costs as much as a statement."""
    loop = asyncio.get_running_loop()
    if batches and loop not in _kept:
        _kept[loop] = []
        loop.call_later(_SOON_S, announce, ())
    if batches:
        _kept[loop] += batches


def read_announcement(message: notifications.Message) -> list[Batch]:
    """Return the batches that a notification carries; the body is b"" of what has to be read."""
    return [Batch(UUID(bytes=run), first, last, body) for run, first, last, body in message["batches"]]


def _carried(batch: Batch) -> tuple[bytes, int, int, bytes]:
    body = batch.body.encode() if isinstance(batch.body, str) else batch.body
    is_small = notifications.carries(len(body))
    return batch.run_id.bytes, batch.first_seq, batch.last_seq, body if is_small else b""
