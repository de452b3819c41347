"""The completion of a parsed request: its options, its place in a thread, the versions that it tries."""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from agents.dialects import responses
from agents.intake import approvals, prompt_override
from agents.intake.run_options import RunOptions
from agents.requests import OnDisconnect, RunRequest
from config.auth.bearer import Caller
from conversations.runs import client_queries, interrupts


async def complete_request(
    parsed: RunRequest, options: RunOptions, caller: Caller, *, runner: str = ""
) -> RunRequest:
    """Return the request as the caller means it, on the runner that staff name.

    Raise NotFound for a parent or an approval that is not the caller's; else as
    `prompt_override.find_versions`.
    """
    place = await _place(parsed, caller)
    return replace(
        parsed,
        on_busy=options.on_busy,
        on_disconnect=_on_disconnect(parsed, options),
        deadline_s=options.deadline_s,
        client_run_id=parsed.client_run_id or options.idempotency_key,
        prompts=await prompt_override.find_versions(options.prompt_version, caller),
        thread_id=place.thread_id,
        parent_run_id=place.parent_run_id,
        continues=place.continues,
        runner=runner,
    )


class _Place(NamedTuple):
    """The thread and the run where a run continues."""

    thread_id: str | None
    parent_run_id: str | None
    continues: str


async def _place(parsed: RunRequest, caller: Caller) -> _Place:
    """Return where the run continues: without a thread of its own, at its parent or its approval."""
    place = _Place(parsed.thread_id, parsed.parent_run_id, parsed.continues)
    if parsed.thread_id or parsed.session:
        return place
    if parsed.parent_run_id:
        parent = await client_queries.fetch_run(parsed.parent_run_id, user_id=caller.user_id)
        run_id = parent.run_id.hex
        return _Place(str(parent.thread_id), run_id, run_id)
    if parsed.answers and parsed.dialect == responses.NAME:  # its SDK repeats unnamed responses
        interrupt = await interrupts.find(approvals.parse_interrupt_id(parsed.answers[0].interrupt_id))
        if interrupt is None or interrupt.owner_id != caller.user_id:
            raise approvals.approval_not_found()
        return _Place(str(interrupt.thread_id), None, interrupt.run_id.hex)
    return place


def _on_disconnect(parsed: RunRequest, options: RunOptions) -> OnDisconnect:
    """Return the caller's choice; a run that only its key identifies continues, for a repeated POST."""
    if options.on_disconnect:
        return options.on_disconnect
    known_by_key = options.idempotency_key and not parsed.client_run_id
    return "continue" if known_by_key else parsed.on_disconnect
