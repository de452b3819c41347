"""What a client says, made ready for the thread: which messages are new, their files, their metadata.

An unmodified AG-UI client sends its whole history every turn (`branching` says where it goes on), and a
client that executed a tool sends its question again; what stands in the thread already is not said
twice, and ours wins over theirs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final
from uuid import UUID

import msgspec
from msgspec.structs import replace

from agents.intake import branching, request_files
from agents.intake.branching import Going
from agents.intake.item_references import resolved
from agents.requests import InputMessage, RunRequest
from config import database
from config.errors import InvalidRequest
from conversations.events import call_message_id, tool_message_id
from conversations.runs import interrupts
from conversations.threads import branches, earlier
from conversations.threads.branches import Held, Turn

_encode: Final = msgspec.json.Encoder().encode
_RUN: Final = re.compile(r"(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])")


async def settled(request: RunRequest, *, owner_id: UUID, thread_id: UUID) -> RunRequest:
    """The request with its new messages only, their files checked and stored.

    InvalidRequest for a file that is not the caller's (specs/run-agent-input.md §1, rule 11), or gone,
    or cannot be had or taken (`request_files`), for what refers to nothing of theirs, and
    `parent_run_not_found` for an AG-UI `parentRunId` that names no run of the thread.
    """
    if request.known in ("tail", "whole"):
        request = await _gone_on(request, owner_id, thread_id)
    messages = _named(await resolved(request.messages, owner_id=owner_id))
    if request.known in ("same", "id"):
        messages = await _new(request, messages, owner_id, thread_id)
    sender = request_files.Sender(owner_id, str(thread_id), request.client_run_id or "_")
    messages = await request_files.stored(messages, sender)
    return request if messages is request.messages else replace(request, messages=messages)


def _named(messages: tuple[InputMessage, ...]) -> tuple[InputMessage, ...]:
    """The messages, with each tool's answer under the name that its call says."""
    names = {call.id: call.name for said in messages for call in said.tool_calls}
    if not names:
        return messages
    return tuple(
        replace(said, name=names.get(said.tool_call_id, said.name)) if said.tool_call_id else said
        for said in messages
    )


async def _gone_on(request: RunRequest, owner_id: UUID, thread_id: UUID) -> RunRequest:
    """The request with where it goes on, and with those of the shown messages that are its own."""
    async with database.connection() as connection:
        thread = await branches.held(connection, thread_id, owner_id=owner_id)
    if request.parent_run_id and thread.turns:
        thread, parent = await _up_to(request.parent_run_id, thread, owner_id, thread_id)
        going = _going(thread.turns, request)
        if not going.told:  # nothing but what is new
            going = branching.go_on(thread.turns, request.shown, complete=False)
            going = replace(going, continues=going.continues or parent)
    else:
        going = await _on_branch(request, thread, owner_id, thread_id)
    leading = request.shown[: branching.leading_count(request.shown)]
    continues = going.continues.hex if going.continues else ""
    return replace(request, messages=going.messages, continues=continues, leading=leading, shown=())


def _going(turns: Sequence[Turn], request: RunRequest) -> Going:
    return branching.go_on(turns, request.shown, complete=request.known == "whole")


async def _up_to(given: str, thread: Held, owner_id: UUID, thread_id: UUID) -> tuple[Held, UUID]:
    """The thread up to the run that a client names as the one to go on from, and that run."""
    named = given.replace("-", "").lower()
    for place, turn in enumerate(thread.turns, 1):
        if given == turn.client_run_id or named == turn.run_id.hex:
            if not thread.branched:
                return replace(thread, turns=thread.turns[:place]), turn.run_id
            return await _branch(turn.run_id, owner_id, thread_id), turn.run_id
    raise InvalidRequest("parentRunId names no run of this conversation.", code="parent_run_not_found")


async def _on_branch(request: RunRequest, thread: Held, owner_id: UUID, thread_id: UUID) -> Going:
    """How it goes on in the branch last continued, or in the one that the client shows more of."""
    if not thread.branched or thread.head is None:
        return _going(thread.turns, request)
    last = await _branch(thread.head, owner_id, thread_id)
    going = _going(last.turns, request)
    other = branching.newest_run(request.shown) or await _asking(request)
    if other is None or last.holds(other) or not thread.holds(other):
        return going
    shown = _going((await _branch(other, owner_id, thread_id)).turns, request)
    if not request.shown:
        return replace(shown, continues=other)
    return shown if shown.told > going.told else going


async def _branch(run_id: UUID, owner_id: UUID, thread_id: UUID) -> Held:
    async with database.connection() as connection:
        return await branches.held(connection, thread_id, owner_id=owner_id, branch=run_id)


async def _asking(request: RunRequest) -> UUID | None:
    """The run that asked for what a client answers that shows nothing else."""
    if request.shown or not request.answers:
        return None
    try:
        found = await interrupts.find(UUID(request.answers[0].interrupt_id))
    except ValueError:
        return None
    return found.run_id if found else None


async def _new(
    request: RunRequest, messages: tuple[InputMessage, ...], owner_id: UUID, thread_id: UUID
) -> tuple[InputMessage, ...]:
    """The messages that its branch of the thread does not hold; by id, those after the last it does."""
    held_as = [_held_as(said) for said in messages]
    ids = [held for some in held_as for held in some]
    continues = UUID(request.continues) if request.continues else None
    rows = await earlier.of_client(ids, thread_id=thread_id, owner_id=owner_id, continues=continues)
    known = {client_id for client_id, _, _ in rows}
    if request.known == "id":
        places = [place for place, held in enumerate(held_as) if not known.isdisjoint(held)]
        return messages[places[-1] + 1 :] if places else messages
    same = set(rows)
    return tuple(
        said
        for said in messages
        if (said.client_id, said.role, said.content) not in same and not _retells_calls(said, known)
    )


def _held_as(said: InputMessage) -> set[str]:
    """The ids under which the thread holds a message, if it does: the client's, or our own for it.

    Wires of items name our calls after their run, and show one row, a call with its answer, as two.
    """
    ids = {said.client_id} if said.client_id else set()
    for call in said.tool_calls:
        ids |= {call_message_id(call.id), call_message_id(_without_run(call.id)), *_rows(call.id)}
    return ids | (set(_rows(said.tool_call_id)) if said.tool_call_id else set())


def _rows(call_id: str) -> Iterator[str]:
    """The ids of the row of a tool of ours that has answered."""
    if found := _RUN.search(call_id):
        yield tool_message_id(found[0], call_id)
        yield tool_message_id(found[0], _without_run(call_id))


def _without_run(call_id: str) -> str:
    found = _RUN.search(call_id)
    return call_id.removesuffix(f"-{found[0]}") if found else call_id


def _retells_calls(said: InputMessage, known: set[str]) -> bool:
    """Whether it only repeats calls that the thread holds, under whatever id of the client's."""
    calls = [call_message_id(call.id) for call in said.tool_calls]
    return bool(calls) and not said.content and known.issuperset(calls)


def metadata(request: RunRequest, run_id: UUID) -> list[str]:
    """The `metadata` of each message's row, as JSON (specs/run-agent-input.md §3)."""
    plain = f'{{"run_id": "{run_id.hex}"}}'
    return [
        plain if _is_plain(said) else _encode(_metadata(said, run_id)).decode()
        for said in request.messages
    ]


def _is_plain(said: InputMessage) -> bool:
    return said.role == "user" and not (
        said.attachments or said.layout or said.name or said.encrypted_value or said.metadata
    )


def _metadata(said: InputMessage, run_id: UUID) -> dict[str, Any]:
    found: dict[str, Any] = dict(said.metadata) | {"run_id": run_id.hex}
    optional = {
        "name": said.name,
        "encrypted_value": said.encrypted_value,
        "activity_type": said.activity_type,
        "tool_call_id": said.tool_call_id,
    }
    found |= {key: value for key, value in optional.items() if value}
    if said.attachments:
        files = [msgspec.to_builtins(file) for file in said.attachments]
        found["user_message_attachments"] = files[0] if len(files) == 1 else files
    if said.layout:
        found["content_layout"] = list(said.layout)
    if said.tool_calls:
        found["tool_calls"] = [msgspec.to_builtins(call) for call in said.tool_calls]
    if said.role == "tool":
        found |= _tool_output(said)
    return found


def _tool_output(said: InputMessage) -> dict[str, Any]:
    """What a client's own tool answered, in the shape that our tools' answers have.

    One that only repeats an answer of ours has no stage and is not said to be ok: as metrics read it,
    it is no call.
    """
    named = {"tool_name": said.name} if said.name else {}
    output: dict[str, Any] = named | {"tool_call_id": said.tool_call_id, "ok": said.error is None}
    if said.error is None:
        output["result"] = said.content
    else:
        output["error"] = {"code": "client_tool_error", "message": said.error}
    if said.repeats:
        del output["ok"]
        return named | {"tool_agent_output": output}
    return named | {"stage": "tool_execution", "tool_agent_output": output}
