"""The options of a run in the query and the headers of its POST, in addition to its body.

They are read from the POST alone. They are applied to the parsed request where its caller is known; with
them it gets its place in a thread and the prompt versions that it tries.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple, cast, get_args

from msgspec.structs import replace

from agents.dialects.openai_responses import dialect as responses
from agents.intake import approvals, prompt_override
from agents.requests import OnBusy, OnDisconnect, RunRequest
from config.auth.bearer import Caller
from config.errors import InvalidRequest
from conversations.runs import client_queries, interrupts

_KEY: Final = re.compile(r"[\x21-\x7e]{1,128}")


class RunOptions(NamedTuple):
    """The options of one POST; None leaves an option to the body.

    `prompt_version` names a version by its id or as `label:staging`; the permission is checked later.
    """

    on_busy: OnBusy = "enqueue"
    on_disconnect: OnDisconnect | None = None
    deadline_s: int | None = None
    prompt_version: str | None = None
    idempotency_key: str | None = None


def read_run_options(query: Mapping[str, str], headers: Mapping[str, str]) -> RunOptions:
    """Return the options of a query and of headers; raise InvalidRequest for a value that is none."""
    return RunOptions(
        on_busy=_on_busy(query.get("on_busy")),
        on_disconnect=_on_disconnect(query.get("on_disconnect") or headers.get("X-On-Disconnect")),
        deadline_s=_deadline(headers.get("X-Run-Deadline")),
        prompt_version=headers.get("X-Prompt-Version"),
        idempotency_key=_idempotency_key(headers.get("Idempotency-Key")),
    )


def _on_busy(value: str | None) -> OnBusy:
    """Return what to do while the conversation has a live run; by default wait behind it."""
    if value and value not in get_args(OnBusy):
        raise InvalidRequest("on_busy must be enqueue, reject or interrupt.", code="invalid_on_busy")
    return cast("OnBusy", value or "enqueue")


def _on_disconnect(value: str | None) -> OnDisconnect | None:
    """Return whether a POST whose stream breaks off ends its run."""
    if value and value not in get_args(OnDisconnect):
        raise InvalidRequest("on_disconnect must be continue or cancel.", code="invalid_on_disconnect")
    return cast("OnDisconnect | None", value or None)


def _deadline(value: str | None) -> int | None:
    """Return whole seconds from the run's start; more than RUN_DEADLINE_S is cut to that later."""
    if value is None:
        return None
    if not (value.isascii() and value.isdigit() and len(value) <= 9 and int(value) > 0):
        raise InvalidRequest(
            "X-Run-Deadline must be a whole number of seconds, 1 or more.", code="invalid_deadline"
        )
    return int(value)


def _idempotency_key(value: str | None) -> str | None:
    """Return the caller's key: the same key and body start one run (promise P5)."""
    if value is not None and not _KEY.fullmatch(value):
        raise InvalidRequest(
            "Idempotency-Key must be 1 to 128 visible ASCII characters.", code="invalid_idempotency_key"
        )
    return value


async def apply_run_options(
    parsed: RunRequest, options: RunOptions, caller: Caller, *, runner: str = ""
) -> RunRequest:
    """Return the request as the caller means it, on the runner that staff name.

    Raise NotFound for a parent or an approval that is not the caller's; else as
    `prompt_override.find_versions`.
    """
    placed = await _placed(parsed, caller)
    return replace(
        placed,
        on_busy=options.on_busy,
        on_disconnect=options.on_disconnect or _default_on_disconnect(parsed, options),
        deadline_s=options.deadline_s,
        client_run_id=parsed.client_run_id or options.idempotency_key,
        prompts=await prompt_override.find_versions(options.prompt_version, caller),
        runner=runner,
    )


async def _placed(parsed: RunRequest, caller: Caller) -> RunRequest:
    """Return the request with its thread: without one of its own, that of its parent or approval."""
    if parsed.thread_id or parsed.session:
        return parsed
    if parsed.parent_run_id:
        parent = await client_queries.fetch_run(parsed.parent_run_id, user_id=caller.user_id)
        run_id, thread_id = parent.run_id.hex, str(parent.thread_id)
        return replace(parsed, thread_id=thread_id, parent_run_id=run_id, continues=run_id)
    if parsed.answers and parsed.dialect == responses.NAME:  # its SDK repeats unnamed responses
        interrupt = await interrupts.find(approvals.parse_interrupt_id(parsed.answers[0].interrupt_id))
        if interrupt is None or interrupt.owner_id != caller.user_id:
            raise approvals.approval_not_found()
        thread_id, continues = str(interrupt.thread_id), interrupt.run_id.hex
        return replace(parsed, thread_id=thread_id, parent_run_id=None, continues=continues)
    return parsed


def _default_on_disconnect(parsed: RunRequest, options: RunOptions) -> OnDisconnect:
    """Return the body's choice; a run that only its key identifies continues, for a repeated POST."""
    known_by_key = options.idempotency_key and not parsed.client_run_id
    return "continue" if known_by_key else parsed.on_disconnect
