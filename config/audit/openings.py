"""Which sealed keys were opened: noted where a key is opened, written to the audit log by a chore.

Whoever opens a key waits for no statement, and a run opens keys each time. So each process notes a key
once an hour, and writes its notes within a second; one that is killed before has lost them.
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

from config import database
from config.audit.recording import NOBODY

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
    """The columns of an entry that differ from one opening to the next."""

    at: datetime
    object_type: str
    object_id: str
    object_name: str
    after: str
    request_id: str


_noted_at: dict[tuple[str, str, str], float] = {}
_waiting: deque[_Note] = deque()


def note(*, purpose: str, kind: str, owner: str, name: str) -> None:
    """Have it written that the key of this name and owner was opened, unless it was lately."""
    key, now = (purpose, kind, name), monotonic()
    if now < _noted_at.get(key, float("-inf")) + EVERY_S:
        return
    _noted_at[key] = now
    facts = json.dumps({"purpose": purpose, "process": f"{socket.gethostname()}:{os.getpid()}"})
    request_id = str(structlog.contextvars.get_contextvars().get("request_id", ""))
    _waiting.append(_Note(datetime.now(UTC), kind, owner[:64], name[:200], facts, request_id[:128]))


async def write() -> None:
    """Write what this process has noted; what could not be written is kept for the next time."""
    some = [_waiting.popleft() for _ in range(len(_waiting))]
    if not some:
        return
    try:
        async with database.connection() as held:
            await held.execute(_WRITE, [list(column) for column in zip(*some, strict=True)])
    except BaseException:
        _waiting.extendleft(reversed(some))
        raise


async def write_for_ever() -> None:
    """Write every half second, and once more when cancelled; an outage of the database is waited out."""
    try:
        while True:
            await asyncio.sleep(_TICK_S)
            try:
                await write()
            except Exception as error:  # whatever keeps the database away, a key is opened nevertheless
                log.warning("openings of keys wait", error=type(error).__name__)
    finally:
        with suppress(Exception):
            await write()
