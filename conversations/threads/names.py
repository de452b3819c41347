"""Threads that clients name: by a session's name, or by the id of the run that begins them.

Their ids derive from the account's secret namespace. Clients name threads by id too, and others know
an account's id: anyone who could compute such an id would take it before its owner does.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID, uuid5

from config import sql
from config.auth.bearer import Caller
from conversations.identifiers import uuid_of

_OWN: Final = "SELECT FROM conversations_thread WHERE id = %s AND owner_id = %s"


async def thread_of(name_or_id: str, *, caller: Caller) -> UUID:
    """Return the thread that the caller means: by its id, or by a session's name."""
    return uuid_of(name_or_id) or await thread_of_session(name_or_id, caller=caller)


async def thread_of_session(name: str, *, caller: Caller) -> UUID:
    """Return the id of the caller's thread of this name (no UUID); it need not exist yet."""
    return await _derive_id(f"session:{name}", caller)


async def thread_of_run(client_run_id: str, *, caller: Caller) -> UUID:
    """Return the thread that the caller's run of this id begins, the same one every time."""
    return await _derive_id(client_run_id, caller)


async def _derive_id(name: str, caller: Caller) -> UUID:
    """Return the id; for an account older than its namespace, that of the thread it has already."""
    if caller.named_by_id:
        older = uuid5(caller.user_id, name)
        found = await sql.one(_OWN, (older, caller.user_id))
        if found is not None:
            return older
    return uuid5(caller.namespace, name)
