"""A client's messages, prepared for the thread: the new ones, with their files and their metadata.

An unmodified AG-UI client sends its whole history every turn (`branching` finds where it continues), and
a client that executed a tool sends its question again. A message that the thread holds already is not
stored twice, and the thread's version wins over the client's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final
from uuid import UUID

import msgspec
from msgspec.structs import replace

from agents.intake import branching, request_files
from agents.intake.branching import Continuation
from agents.intake.item_references import resolve_references
from agents.requests import InputMessage, RunRequest
from config import database
from config.errors import InvalidRequest
from conversations.identifiers import call_message_id, find_hex_ids, tool_message_id, uuid_of
from conversations.runs import interrupts
from conversations.threads import branches, model_messages
from conversations.threads.branches import ThreadTurns, Turn

_encode: Final = msgspec.json.Encoder().encode


async def with_new_messages(request: RunRequest, *, owner_id: UUID, thread_id: UUID) -> RunRequest:
    """Return the request with its new messages only, their files checked and stored.

    Raise InvalidRequest for a file that is not the caller's (specs/run-agent-input.md §1, rule 11), or
    is gone, or cannot be fetched or accepted (`request_files`), for a reference to an item that is not
    the caller's, and `parent_run_not_found` for an AG-UI `parentRunId` that names no run of the thread.
    """
    if request.known in ("tail", "whole"):
        request = await _gone_on(request, owner_id, thread_id)
    messages = _named(await resolve_references(request.messages, owner_id=owner_id))
    if request.known in ("same", "id"):
        messages = await _new(request, messages, owner_id, thread_id)
    sender = request_files.Sender(owner_id, str(thread_id), request.client_run_id or "_")
    messages = await request_files.store_uploads(messages, sender)
    return request if messages is request.messages else replace(request, messages=messages)


def _named(messages: tuple[InputMessage, ...]) -> tuple[InputMessage, ...]:
    """Return the messages, each tool's answer with the name in its call."""
    names = {call.id: call.name for message in messages for call in message.tool_calls}
    if not names:
        return messages
    return tuple(
        replace(message, name=names.get(message.tool_call_id, message.name))
        if message.tool_call_id
        else message
        for message in messages
    )


async def _gone_on(request: RunRequest, owner_id: UUID, thread_id: UUID) -> RunRequest:
    """Return the request with the run that it continues, and with its own of the shown messages."""
    thread = await _turns(owner_id, thread_id)
    if request.parent_run_id and thread.turns:
        thread, parent = await _up_to(request.parent_run_id, thread, owner_id, thread_id)
        going = _going(thread.turns, request)
        if not going.known_count:  # the client shows new messages only
            going = branching.find_continuation(thread.turns, request.shown, complete=False)
            going = replace(going, continues=going.continues or parent)
    else:
        going = await _on_branch(request, thread, owner_id, thread_id)
    leading = request.shown[: branching.leading_count(request.shown)]
    continues = going.continues.hex if going.continues else ""
    return replace(request, messages=going.messages, continues=continues, leading=leading, shown=())


def _going(turns: Sequence[Turn], request: RunRequest) -> Continuation:
    return branching.find_continuation(turns, request.shown, complete=request.known == "whole")


async def _up_to(
    parent_run_id: str, thread: ThreadTurns, owner_id: UUID, thread_id: UUID
) -> tuple[ThreadTurns, UUID]:
    """Return the thread up to the run that a client names as the one to continue, and that run."""
    named = parent_run_id.replace("-", "").lower()
    for place, turn in enumerate(thread.turns, 1):
        if parent_run_id == turn.client_run_id or named == turn.run_id.hex:
            if not thread.branched:
                return replace(thread, turns=thread.turns[:place]), turn.run_id
            return await _turns(owner_id, thread_id, turn.run_id), turn.run_id
    raise InvalidRequest("parentRunId names no run of this conversation.", code="parent_run_not_found")


async def _on_branch(
    request: RunRequest, thread: ThreadTurns, owner_id: UUID, thread_id: UUID
) -> Continuation:
    """Return how it continues: in the branch last continued, or in one that the client shows more of."""
    if not thread.branched or thread.head is None:
        return _going(thread.turns, request)
    last = await _turns(owner_id, thread_id, thread.head)
    going = _going(last.turns, request)
    other = branching.newest_run(request.shown) or await _asking(request)
    if other is None or last.holds(other) or not thread.holds(other):
        return going
    shown = _going((await _turns(owner_id, thread_id, other)).turns, request)
    if not request.shown:
        return replace(shown, continues=other)
    return shown if shown.known_count > going.known_count else going


async def _turns(owner_id: UUID, thread_id: UUID, branch: UUID | None = None) -> ThreadTurns:
    """Return the turns of the thread, or of its branch that ends with this run."""
    async with database.connection() as connection:
        return await branches.fetch_turns(connection, thread_id, owner_id=owner_id, branch=branch)


async def _asking(request: RunRequest) -> UUID | None:
    """Return the run whose interrupt a client answers, if the client shows nothing else."""
    if request.shown or not request.answers:
        return None
    interrupt_id = uuid_of(request.answers[0].interrupt_id)
    found = await interrupts.find(interrupt_id) if interrupt_id else None
    return found.run_id if found else None


async def _new(
    request: RunRequest, messages: tuple[InputMessage, ...], owner_id: UUID, thread_id: UUID
) -> tuple[InputMessage, ...]:
    """Return the messages that the thread's branch does not hold; by id, all after the last held one."""
    stored_ids = [_stored_ids(message) for message in messages]
    ids = [one for some_ids in stored_ids for one in some_ids]
    continues = UUID(request.continues) if request.continues else None
    rows = await model_messages.find_client_messages(
        ids, thread_id=thread_id, owner_id=owner_id, continues=continues
    )
    known = {client_id for client_id, _, _ in rows}
    if request.known == "id":
        places = [place for place, some_ids in enumerate(stored_ids) if not known.isdisjoint(some_ids)]
        return messages[places[-1] + 1 :] if places else messages
    same = set(rows)
    return tuple(
        message
        for message in messages
        if (message.client_id, message.role, message.content) not in same
        and not _repeats_calls(message, known)
    )


def _stored_ids(message: InputMessage) -> set[str]:
    """Return the ids under which the thread may hold a message: the client's, or our own for it.

    Dialects of items name our calls after their run, and show one row, a call with its answer, as two.
    """
    ids = {message.client_id} if message.client_id else set()
    for call in message.tool_calls:
        ids |= {call_message_id(call.id), call_message_id(_without_run(call.id)), *_rows(call.id)}
    return ids | (set(_rows(message.tool_call_id)) if message.tool_call_id else set())


def _rows(call_id: str) -> Iterator[str]:
    """Yield the ids of the row of a tool of ours that has answered."""
    if found := find_hex_ids(call_id):
        yield tool_message_id(found[0], call_id)
        yield tool_message_id(found[0], _without_run(call_id))


def _without_run(call_id: str) -> str:
    found = find_hex_ids(call_id)
    return call_id.removesuffix(f"-{found[0]}") if found else call_id


def _repeats_calls(message: InputMessage, known: set[str]) -> bool:
    """Return whether it only repeats calls that the thread holds, under any id of the client's."""
    calls = [call_message_id(call.id) for call in message.tool_calls]
    return bool(calls) and not message.content and known.issuperset(calls)


def message_metadata(request: RunRequest, run_id: UUID) -> list[str]:
    """Return the `metadata` of each message's row, as JSON (specs/run-agent-input.md §3)."""
    plain = f'{{"run_id": "{run_id.hex}"}}'
    return [
        plain if _is_plain(message) else _encode(_metadata(message, run_id)).decode()
        for message in request.messages
    ]


def _is_plain(message: InputMessage) -> bool:
    return message.role == "user" and not (
        message.attachments
        or message.layout
        or message.name
        or message.encrypted_value
        or message.metadata
    )


def _metadata(message: InputMessage, run_id: UUID) -> dict[str, Any]:
    found: dict[str, Any] = dict(message.metadata) | {"run_id": run_id.hex}
    optional = {
        "name": message.name,
        "encrypted_value": message.encrypted_value,
        "activity_type": message.activity_type,
        "tool_call_id": message.tool_call_id,
    }
    found |= {key: value for key, value in optional.items() if value}
    if message.attachments:
        files = [msgspec.to_builtins(file) for file in message.attachments]
        found["user_message_attachments"] = files[0] if len(files) == 1 else files
    if message.layout:
        found["content_layout"] = list(message.layout)
    if message.tool_calls:
        found["tool_calls"] = [msgspec.to_builtins(call) for call in message.tool_calls]
    if message.role == "tool":
        found |= _tool_output(message)
    return found


def _tool_output(message: InputMessage) -> dict[str, Any]:
    """Return the answer of a client's own tool, in the form of our tools' answers.

    A message that only repeats an answer of ours has no stage and no `ok`: metrics do not count it as a
    call.
    """
    named = {"tool_name": message.name} if message.name else {}
    output: dict[str, Any] = named | {"tool_call_id": message.tool_call_id, "ok": message.error is None}
    if message.error is None:
        output["result"] = message.content
    else:
        output["error"] = {"code": "client_tool_error", "message": message.error}
    if message.repeats:
        del output["ok"]
        return named | {"tool_agent_output": output}
    return named | {"stage": "tool_execution", "tool_agent_output": output}
