"""The messages of a run's own request: the run's input, and those beside it.

A client that keeps the conversation itself sends all of it with each request. Its newest message is the
event's input; the others are history, as are the messages of the thread. If the run is not stored, they
are in the request alone.
"""

from __future__ import annotations

from msgspec import Struct

from agents.requests import InputMessage
from agents.runners.base import RunContext

_ROLES = ("user", "assistant", "tool")


class OwnMessage(Struct, frozen=True):
    """A message of the request, and its place in the thread."""

    seq: int
    message: InputMessage


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


def unstored_messages(context: RunContext, thread_seq: int) -> tuple[OwnMessage, ...]:
    """Return the request's messages beside its input, if the thread does not store them."""
    if context.request.stored:
        return ()
    own, at = context.request.messages, input_place(context)
    return tuple(
        OwnMessage(thread_seq + place, message)
        for place, message in enumerate(own)
        if place != at and message.role in _ROLES
    )
