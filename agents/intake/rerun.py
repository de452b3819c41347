"""The repetition of a run with another prompt version, in a thread of its own, with a mark.

The new run belongs to the person who starts it, and has the input of the old one: the thread up to there
and its request. The old run and its thread stay as they are. The new thread is recorded as a copy of the
old one, and is deleted with that or with its owner (`conversations.upkeep.retention`).
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

import msgspec
from django.conf import settings

from agents import requests
from agents.context.thread_history import ThreadHistory, read_history
from agents.intake.prompt_override import with_prompt
from agents.intake.submit import AcceptedRun, start_run
from agents.requests import RunRequest
from config.errors import current_request_id
from conversations.runs.client_queries import run_not_found
from conversations.runs.stored_requests import fetch_request

MARK: Final = "rerun_of"


async def rerun(run_id: UUID, *, by: UUID, version_id: int | None) -> AcceptedRun:
    """Start the run again for `by`, with this prompt version or those in use.

    Raise NotFound for an unknown run or version; else as `start_run`. The caller has checked what `by`
    may do.
    """
    old = await fetch_request(run_id)
    if old is None or not old.stored:
        raise run_not_found()
    size = settings.CONTEXT_TOKENS
    earlier = await read_history(old.thread_id, before=old.thread_seq, run_id=run_id, budget=size)
    request = _anew(requests.load(old.request), run_id, earlier)
    if version_id is not None:
        request = await with_prompt(request, version_id)
    return await start_run(request, owner_id=by, thread_id=None, copied_from=old.thread_id)


def _anew(request: RunRequest, run_id: UUID, earlier: ThreadHistory) -> RunRequest:
    return msgspec.structs.replace(
        request,
        messages=(*earlier.leading, *earlier.messages, *request.messages),
        metadata=request.metadata | {MARK: run_id.hex},
        request_id=current_request_id() or request.request_id,
        known="none",
        continues="",
        thread_id=None,
        session=None,
        client_run_id=None,
        parent_run_id=None,
        prompts=(),
        answers=(),
        state=earlier.state if request.state is None else request.state,
        on_busy="enqueue",
        on_disconnect="continue",
    )
