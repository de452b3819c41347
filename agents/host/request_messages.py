"""What a run's own request says: the message that the run is for, and what it tells beside it.

A client that keeps the conversation itself sends all of it with each request. Its newest message is the
event's input; the others were said before, and are history as what the thread holds. Of a run that is
not stored they stand in the request alone.
"""

from __future__ import annotations

from msgspec import Struct

from agents.requests import InputMessage
from agents.runners.base import RunContext

_TOLD = ("user", "assistant", "tool")


class OwnMessage(Struct, frozen=True):
    """A message of the request, and its place in the thread."""

    seq: int
    message: InputMessage


def input_place(context: RunContext) -> int | None:
    """Which of the request's messages the run is for: the newest of the user's.

    None in a run that only goes on: its conversation ends with what a tool answered.
    """
    if context.conversation and context.conversation[-1].role == "tool":
        return None
    said = context.request.messages
    return next((at for at in reversed(range(len(said))) if said[at].role == "user"), None)


def input_message(context: RunContext) -> InputMessage | None:
    """The message that the run is for, if there is one."""
    place = input_place(context)
    return None if place is None else context.request.messages[place]


def input_seq(context: RunContext, thread_seq: int) -> int | None:
    """The place in the thread of the message that the run is for."""
    place = input_place(context)
    return None if place is None else thread_seq + place


def unstored(context: RunContext, thread_seq: int) -> tuple[OwnMessage, ...]:
    """What the request says beside its input, where the thread does not hold it."""
    if context.request.stored:
        return ()
    own, at = context.request.messages, input_place(context)
    return tuple(
        OwnMessage(thread_seq + place, said)
        for place, said in enumerate(own)
        if place != at and said.role in _TOLD
    )
