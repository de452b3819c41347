"""The start of a completed request for its caller: in its thread, and with a place for its reader.

A client may leave at any moment. A run that ends with its client must then end too, even if the client
leaves while the run is being written, or before the first byte of its stream.
"""

from __future__ import annotations

import asyncio
import functools
from typing import NamedTuple
from uuid import UUID

from agents.intake import stream_slots, submit
from agents.intake.stream_slots import StreamSlot
from agents.intake.submit import AcceptedRun
from agents.requests import RunRequest
from config.auth.bearer import Caller
from config.errors import NotFound
from config.http.slow_readers import Leaving
from config.process import cancellation
from conversations.runs import client_queries, recent_starts
from conversations.runs.client_queries import RunRow
from conversations.threads import names


class StartedRun(NamedTuple):
    """A run, the place that its reader holds, and the call to make when the reader leaves.

    It is not `created` if the same request had started it before.
    """

    slot: StreamSlot
    row: RunRow
    created: bool
    on_leaving: Leaving | None


async def start_for_reader(caller: Caller, request: RunRequest, *, resumed: bool = False) -> StartedRun:
    """Start the run for a reader; without a place for the reader no run is started."""
    thread_id = UUID(request.thread_id) if request.thread_id else None
    slot = await stream_slots.admit(caller.user_id, thread_id, resumed=resumed)
    with slot.release_on_error():
        accepted = await start(caller, request)
        cancel = functools.partial(submit.cancel_run, accepted.run_id)
        on_leaving = cancel if request.on_disconnect == "cancel" else None
        if on_leaving is not None:
            slot.if_unused(on_leaving)
        reference = accepted.run_id.hex
        try:
            row = recent_starts.recall(reference, user_id=caller.user_id)
            row = row or await client_queries.fetch_started_run(reference, user_id=caller.user_id)
        except NotFound:
            raise NotFound(
                "The conversation was deleted while the run was being started.", code="thread_not_found"
            ) from None
        if not accepted.created:
            await client_queries.check_events_kept(row)
        return StartedRun(slot, row, accepted.created, on_leaving)


async def start(caller: Caller, request: RunRequest) -> AcceptedRun:
    """Start the run; a run that ends with its client ends even if the client leaves meanwhile."""
    if request.on_disconnect != "cancel":
        return await _start(caller, request)
    starting = asyncio.ensure_future(_start(caller, request))
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        cancellation.run_detached(_end(starting))
        raise


async def _start(caller: Caller, request: RunRequest) -> AcceptedRun:
    thread_id = await _thread_of(caller, request)
    return await submit.start_run(request, owner_id=caller.user_id, thread_id=thread_id)


async def _end(starting: asyncio.Future[AcceptedRun]) -> None:
    """Cancel the run once it is written, if it is."""
    await asyncio.wait({starting})
    if not starting.cancelled() and starting.exception() is None:
        await submit.cancel_run(starting.result().run_id)


async def _thread_of(caller: Caller, request: RunRequest) -> UUID | None:
    """Return the requested thread, or None for a new one; for a repeatable request always the same."""
    if request.thread_id:
        return UUID(request.thread_id)
    if request.session:
        return await names.thread_of_session(request.session, caller=caller)
    if request.client_run_id:
        return await names.thread_of_run(request.client_run_id, caller=caller)
    return None
