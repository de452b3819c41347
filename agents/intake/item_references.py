"""References of clients to items of earlier responses, by the ids of those in the client's dialect.

Such an id consists of a message's own and its run's, so that the index of its run finds a message.
Reasoning, lists of tools and requests for approval give a model nothing that it does not have anyway:
for those the only check is whether the account has them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final
from uuid import UUID

from msgspec.structs import replace

from agents.context.thread_history import find_messages
from agents.requests import InputMessage, Reference
from config.errors import InvalidRequest
from conversations.identifiers import call_message_id, find_hex_ids, tool_message_id, uuid_of
from conversations.runs.stored_requests import find_known_ids

_SILENT: Final = ("rs_", "mcpl_")


async def resolve_references(
    messages: tuple[InputMessage, ...], *, owner_id: UUID
) -> tuple[InputMessage, ...]:
    """Return the messages, each reference replaced by what it refers to.

    Raise InvalidRequest `invalid_input`, with the place, for an item that the owner does not have.
    """
    references = [message.refers for message in messages if message.refers is not None]
    if not references:
        return messages
    ids = {found for one in references for found in _ids(one.id)}
    names = {name for one in references for name in _names(one.id)}
    stored = await find_messages([*ids], [*names], owner_id=owner_id)
    known = await find_known_ids(ids, owner_id=owner_id)
    return tuple(
        meant
        for message in messages
        for meant in ((message,) if message.refers is None else _meant(message.refers, stored, known))
    )


def _meant(
    reference: Reference, stored: dict[str | UUID, InputMessage], known: set[UUID]
) -> Iterator[InputMessage]:
    ids = _ids(reference.id)
    keys: Sequence[str | UUID] = (*_names(reference.id), *ids)
    message = next((stored[key] for key in keys if key in stored), None)
    if message is not None:
        yield from _in_full(message)
    elif not (_is_silent(reference.id, ids) and known.intersection(ids)):
        raise InvalidRequest(
            f"{reference.place} refers to an item that is not there.",
            code="invalid_input",
            param=reference.place,
        )


def _in_full(message: InputMessage) -> Iterator[InputMessage]:
    """Yield the message; a tool's answer after the call that it contains."""
    if message.role == "tool" and message.tool_calls:
        yield InputMessage(
            "assistant",
            "",
            call_message_id(message.tool_calls[0].id),
            tool_calls=message.tool_calls,
            reasoning=message.reasoning,
        )
        message = replace(message, tool_calls=(), reasoning=(), repeats=True)
    yield message


def _is_silent(item_id: str, ids: Sequence[UUID]) -> bool:
    """Return whether an item of this id has no content: an answer without words, or an interrupt."""
    if item_id.startswith(_SILENT):
        return True
    return any(item_id in (f"msg_execution-{one.hex}", one.hex, str(one)) for one in ids)


def _ids(item_id: str) -> list[UUID]:
    """Return the ids of ours in an item's id; that of its run is the last."""
    plain = item_id.replace("-", "") if uuid_of(item_id) else item_id
    return [UUID(hex=found) for found in find_hex_ids(plain)]


def _names(item_id: str) -> list[str]:
    """Return the names under which an item's message may be stored."""
    kind, _, name = item_id.partition("_")
    runs = find_hex_ids(name)
    if not runs:
        return []
    run = runs[-1]
    plain = name.removesuffix(f"-{run}")
    match kind:
        case "msg":
            return [name, plain]
        case "fc" | "ctc":
            return [call_message_id(name), call_message_id(plain)]
        case "mcp":
            answers = [tool_message_id(run, plain.removesuffix(f"-{one}"), one) for one in runs[:-1]]
            return [tool_message_id(run, name), tool_message_id(run, plain), *answers]
    return []
