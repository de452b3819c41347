"""The messages of a run's own request: the run's input, and those beside it.

A client that keeps the conversation itself sends all of it with each request. Its newest message is the
event's input; the others are history, as are the messages of the thread. If the run is not stored, they
are in the request alone.
"""

from __future__ import annotations

from uuid import UUID

import msgspec

from agents.requests import InputMessage
from agents.runners.base import RunContext
from conversations.threads.earlier_messages import LONGEST, LONGEST_ANSWER, SAID, MessageRow

_ROLES = ("user", "assistant", "tool")


def input_place(context: RunContext) -> int | None:
    """Return the place of the run's input in the request: the newest message of the user.

    Return None for a run that only continues: its conversation ends with a tool's answer.
    """
    if context.conversation and context.conversation[-1].role == "tool":
        return None
    messages = context.request.messages
    return next((at for at in reversed(range(len(messages))) if messages[at].role == "user"), None)


def input_message(context: RunContext) -> InputMessage | None:
    """Return the run's input message, or None."""
    place = input_place(context)
    return None if place is None else context.request.messages[place]


def input_seq(context: RunContext, thread_seq: int) -> int | None:
    """Return the place of the run's input message in the thread."""
    place = input_place(context)
    return None if place is None else thread_seq + place


def unstored_rows(context: RunContext, thread_seq: int) -> tuple[MessageRow, ...]:
    """Return the request's messages beside its input as rows, if the thread does not store them."""
    if context.request.stored:
        return ()
    own, at = context.request.messages, input_place(context)
    return tuple(
        _unstored_row(message, context.run_id, thread_seq, seq=thread_seq + place)
        for place, message in enumerate(own)
        if place != at and message.role in _ROLES
    )


def _unstored_row(message: InputMessage, run_id: UUID, run_seq: int, *, seq: int) -> MessageRow:
    return MessageRow(
        run_id,
        run_seq,
        seq,
        SAID,
        None,
        message.role,
        message.content[:LONGEST],
        None,
        attached=[msgspec.to_builtins(file) for file in message.attachments],
        calls=[msgspec.to_builtins(call) for call in message.tool_calls],
        tool_name=message.name,
        call_id=message.tool_call_id,
        answer=(message.error or message.content)[:LONGEST_ANSWER],
        own=True,
    )
