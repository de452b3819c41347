"""Messages as the snapshot events that bring a client up to date (specs/ag-ui.md §3.3)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from agents.dialects.base import Frame
from agents.dialects.wire import Wire, encode_json

_SHAPE: Final = ("activityType", "content", "metadata")
_BLANK: Final = {"id": "reset", "role": "reasoning", "content": ""}  # only reasoning replaces reasoning
_MOST_PLACES: Final = 8  # each sends all messages before it once more


def snapshots(messages: list[Wire], known: list[str]) -> Iterable[Wire]:
    """Yield the events that give a client exactly these messages in exactly this order.

    A snapshot replaces known messages at their places and appends the rest; so if that would give
    another order, the client is first made to forget its messages. An activity inside a snapshot would
    drop those of earlier runs, which only the client has: it is sent as an event of its own, between a
    snapshot of the messages before it and one of the whole.
    """
    spoken = [message for message in messages if message["role"] != "activity"]
    ids = [message["id"] for message in spoken]
    here = set(ids)
    kept = [message_id for message_id in known if message_id in here]
    reasoned = _any_reasoning(spoken)
    if ids[: len(kept)] != kept:
        yield {"type": "MESSAGES_SNAPSHOT", "messages": [_BLANK] if reasoned else []}
    for count, activity in _placed(messages):
        if count is not None:
            some = spoken[:count]
            forget = [_BLANK] if reasoned and not _any_reasoning(some) else []
            yield {"type": "MESSAGES_SNAPSHOT", "messages": [*some, *forget]}
        if activity is not None:
            shape = {key: activity[key] for key in _SHAPE if key in activity}
            yield {"type": "ACTIVITY_SNAPSHOT", "messageId": activity["id"]} | shape


def _any_reasoning(messages: list[Wire]) -> bool:
    return any(message["role"] == "reasoning" for message in messages)


def _placed(messages: list[Wire]) -> Iterator[tuple[int | None, Wire | None]]:
    """Yield the activities, each with the number of messages to send before it; the whole at last.

    None if no more messages must be sent. Activities past the first few come after everything.
    """
    sent, spoken, places = -1, 0, 0
    late: list[Wire] = []
    for message in messages:
        if message["role"] != "activity":
            spoken += 1
        elif sent == spoken:
            yield None, message
        elif places == _MOST_PLACES:
            late.append(message)
        else:
            sent, places = spoken, places + 1
            yield spoken, message
    if sent != spoken:
        yield spoken, None
    for message in late:
        yield None, message


def idle_thread_frames(thread_id: str, messages: list[Wire], state: Any) -> list[Frame]:
    """Return a thread without a running run, as a run of its own that is over at once."""
    ids = {"threadId": thread_id, "runId": f"replay-{thread_id}"}
    wire_events: list[Wire] = [
        {"type": "RUN_STARTED"} | ids,
        *snapshots(messages, []),
        *([{"type": "STATE_SNAPSHOT", "snapshot": state}] if state else []),
        {"type": "RUN_FINISHED"} | ids | {"outcome": {"type": "success"}},
    ]
    return [Frame("", encode_json(event)) for event in wire_events]
