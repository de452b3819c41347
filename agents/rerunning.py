"""Run again what was asked before, with another prompt version: in a thread of its own, marked.

The new run belongs to whoever asks for it and is told what the old one was told: the thread up to
there and its request. The old run and its thread stay as they are. The new thread is recorded as a copy
of the old one, and goes when that does, or whose it is (`conversations.retention`).
"""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID, uuid4

import msgspec
from django.conf import settings

from agents import context, requests
from agents.actions import Accepted, start_run
from agents.requests import RunRequest
from agents.trying import with_prompt
from config import database
from config.errors import NotFound, current_request_id

MARK: Final = "rerun_of"
_ASKED: Final = """
SELECT thread_id, thread_seq, request::text FROM conversations_run WHERE id = %s AND stored
"""


async def rerun(run_id: UUID, *, by: UUID, version_id: int | None) -> Accepted:
    """Start the run again for `by`, with this prompt version or those in use.

    NotFound for an unknown run or version; else as `start_run`. The caller has checked what `by` may.
    """
    async with database.connection() as held:
        row: Any = await (await held.execute(_ASKED, (run_id,))).fetchone()
    if row is None:
        raise NotFound("There is no such run.", code="run_not_found")
    thread_id, thread_seq, asked = row
    size = settings.CONTEXT_TOKENS
    earlier = await context.so_far(thread_id, before=thread_seq, run_id=run_id, budget=size)
    request = _anew(requests.load(asked), run_id, earlier)
    if version_id is not None:
        request = await with_prompt(request, version_id)
    return await start_run(request, owner_id=by, thread_id=uuid4(), copied_from=thread_id)


def _anew(asked: RunRequest, run_id: UUID, earlier: context.SoFar) -> RunRequest:
    return msgspec.structs.replace(
        asked,
        messages=(*earlier.leading, *earlier.messages, *asked.messages),
        metadata=asked.metadata | {MARK: run_id.hex},
        request_id=current_request_id() or asked.request_id,
        known="none",
        continues="",
        thread_id=None,
        session=None,
        client_run_id=None,
        parent_run_id=None,
        prompts=(),
        answers=(),
        state=earlier.state if asked.state is None else asked.state,
        on_busy="enqueue",
        on_disconnect="continue",
    )
