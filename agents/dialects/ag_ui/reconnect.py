"""The encoder for a client that comes back (specs/ag-ui.md §4, §7).

An unmodified AG-UI client cannot name the place where it stopped; it sends the same run again, or opens
the thread. In both cases it gets everything as snapshots, and then the new events.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from agents.dialects.ag_ui.encoder import AgUiEncoder
from agents.dialects.ag_ui.message_types import AgUiMessage, AgUiStreamedMessage
from agents.dialects.ag_ui.messages import to_messages, with_reasoning
from agents.dialects.base import Frame, RunHead, Sign, StoredRow
from agents.dialects.wire import Wire


class KnownMessage(AgUiMessage):
    """A message of which only this is known: the client has it."""

    role: str


class ReturningAgUiEncoder(AgUiEncoder):
    """An encoder that takes in the events that the client has missed, then brings it up to date."""

    def __init__(self, head: RunHead, body: Wire) -> None:
        super().__init__(head, silent=True)
        self._known = _known_messages(body)

    def catch_up(self, before: Iterable[StoredRow], *, state: Any, sign: Sign) -> Sequence[Frame]:
        """Return the snapshots of all events fed so far; from then on `feed` returns frames.

        `before` are the thread's messages up to the run's own input, `state` the thread's state.
        """
        reasoned = [message for message in self._known if self._run not in message.id]
        earlier = with_reasoning(to_messages(before, sign=sign), reasoned)
        return self.prelude(earlier, known=[message.id for message in self._known], state=state)


def _known_messages(body: Wire) -> list[AgUiMessage]:
    """Return the client's messages: reasoning as a whole, of the others the id and the role."""
    messages = body.get("messages")
    known: list[AgUiMessage] = []
    for message in messages if isinstance(messages, list) else ():
        match message:
            case {"id": str(message_id), "role": "reasoning", "content": str(content)}:
                known.append(AgUiStreamedMessage(message_id, "reasoning", content))
            case {"id": str(message_id), "role": str(role)}:
                known.append(KnownMessage(message_id, role))
    return known
