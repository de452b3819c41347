"""Audit entries of opened keys: noted in memory, and written by a background task.

Every run opens keys and must not wait for a statement. Therefore each process notes a key once per
hour and writes its notes within a second; a killed process loses the notes of that second.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections import deque
from contextlib import suppress
from datetime import UTC, datetime
from time import monotonic
from typing import Final, NamedTuple

import structlog

from config import sql
from config.audit.recording import NOBODY
from config.errors import current_request_id

log = structlog.get_logger(__name__)

ACTION: Final = "key opened"
EVERY_S: Final = 3_600.0
_TICK_S: Final = 0.5
_WRITE: Final = f"""
INSERT INTO audit_auditentry
    (at, object_type, object_id, object_name, after, request_id, actor_name, action, before)
SELECT *, '{NOBODY}', '{ACTION}', '{{}}'::jsonb
FROM unnest(%s::timestamptz[], %s::text[], %s::text[], %s::text[], %s::jsonb[], %s::text[])
"""


class _Note(NamedTuple):
    """The variable columns of an entry."""

    at: datetime
    object_type: str
    object_id: str
    object_name: str
    after: str
    request_id: str


_noted_at: dict[tuple[str, str, str], float] = {}
_pending: deque[_Note] = deque()


def note(*, purpose: str, kind: str, owner: str, name: str) -> None:
    """Note that the key of this name and owner was opened, unless that was noted in the last hour."""
    key, now = (purpose, kind, name), monotonic()
    if now < _noted_at.get(key, float("-inf")) + EVERY_S:
        return
    _noted_at[key] = now
    facts = json.dumps({"purpose": purpose, "process": f"{socket.gethostname()}:{os.getpid()}"})
    request_id = current_request_id()[:128]
    _pending.append(_Note(datetime.now(UTC), kind, owner[:64], name[:200], facts, request_id))


async def write() -> None:
    """Write the notes of this process; keep them for the next time if that fails."""
    notes = [_pending.popleft() for _ in range(len(_pending))]
    if not notes:
        return
    try:
        await sql.change(_WRITE, [list(column) for column in zip(*notes, strict=True)])
    except BaseException:
        _pending.extendleft(reversed(notes))
        raise


async def write_for_ever() -> None:
    """Write every half second, and once more on cancellation; survive outages of the database."""
    try:
        while True:
            await asyncio.sleep(_TICK_S)
            try:
                await write()
            except Exception as error:  # keys are opened even if the database is unavailable
                log.warning("openings of keys wait", error=type(error).__name__)
    finally:
        with suppress(Exception):
            await write()
