"""What clients name instead of sending it: items of earlier responses, by their ids on that wire.

Such an id is made of a message's own and its run's, so that a message is found by the index of its run.
Reasoning, lists of tools and requests for approval tell a model nothing that it is not told anyway: of
those it is only looked whether the account has them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final
from uuid import UUID

from msgspec.structs import replace

from agents.context import thread
from agents.requests import InputMessage, Reference
from config.errors import InvalidRequest
from conversations.events import call_message_id, tool_message_id
from conversations.identifiers import uuid_of
from conversations.runs.stored_requests import known_ids

_RUN: Final = re.compile(r"(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])")
_SILENT: Final = ("rs_", "mcpl_")


async def resolved(messages: tuple[InputMessage, ...], *, owner_id: UUID) -> tuple[InputMessage, ...]:
    """The messages with what they refer to in its place.

    InvalidRequest `invalid_input`, naming the place, for an item that the owner does not have.
    """
    wanted = [said.refers for said in messages if said.refers is not None]
    if not wanted:
        return messages
    ids = {found for one in wanted for found in _ids(one.id)}
    names = {name for one in wanted for name in _names(one.id)}
    held = await thread.named([*ids], [*names], owner_id=owner_id)
    known = await known_ids(ids, owner_id=owner_id)
    return tuple(
        meant
        for said in messages
        for meant in ((said,) if said.refers is None else _meant(said.refers, held, known))
    )


def _meant(
    reference: Reference, held: dict[str | UUID, InputMessage], known: set[UUID]
) -> Iterator[InputMessage]:
    ids = _ids(reference.id)
    keys: Sequence[str | UUID] = (*_names(reference.id), *ids)
    message = next((held[key] for key in keys if key in held), None)
    if message is not None:
        yield from _in_full(message)
    elif not (_is_silent(reference.id, ids) and known.intersection(ids)):
        raise InvalidRequest(
            f"{reference.place} refers to an item that is not there.",
            code="invalid_input",
            param=reference.place,
        )


def _in_full(message: InputMessage) -> Iterator[InputMessage]:
    """The message; a tool's answer after the call that it brings along."""
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


def _is_silent(given: str, ids: Sequence[UUID]) -> bool:
    """Whether an item of this id says nothing: an answer of no words and an interrupt do neither."""
    if given.startswith(_SILENT):
        return True
    return any(given in (f"msg_execution-{one.hex}", one.hex, str(one)) for one in ids)


def _ids(given: str) -> list[UUID]:
    """The ids of ours in an item's: its run's last."""
    plain = given.replace("-", "") if uuid_of(given) else given
    return [UUID(hex=found) for found in _RUN.findall(plain)]


def _names(given: str) -> list[str]:
    """What the message of an item may be called where it is stored."""
    kind, _, name = given.partition("_")
    runs = _RUN.findall(name)
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
            asked = [tool_message_id(run, plain.removesuffix(f"-{one}"), one) for one in runs[:-1]]
            return [tool_message_id(run, name), tool_message_id(run, plain), *asked]
    return []
