"""Messages as the snapshot events that bring a client up to date (specs/ag-ui.md §3.3)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from msgspec import UNSET, UnsetType

from agents.dialects.ag_ui.event_types import (
    AgUiActivitySnapshot,
    AgUiMessagesSnapshot,
    AgUiRunFinished,
    AgUiRunStarted,
    AgUiStateSnapshot,
    AgUiSuccess,
    RestingActivity,
)
from agents.dialects.ag_ui.message_types import (
    AgUiActivityMessage,
    AgUiMessage,
    AgUiMetadata,
    AgUiStreamedMessage,
)
from agents.dialects.base import Frame
from agents.dialects.wire import encode_json

_BLANK: Final = AgUiStreamedMessage("reset", "reasoning", "")  # only reasoning replaces reasoning
_MOST_PLACES: Final = 8  # each sends all messages before it once more


def snapshots(
    messages: list[AgUiMessage], known: list[str], metadata: AgUiMetadata | UnsetType = UNSET
) -> Iterable[AgUiMessagesSnapshot | AgUiActivitySnapshot]:
    """Yield the events that give a client exactly these messages in exactly this order.

    A snapshot replaces known messages at their places and appends the rest; so if that would give
    another order, the client is first made to forget its messages. An activity inside a snapshot would
    drop those of earlier runs, which only the client has: it is sent as an event of its own, between a
    snapshot of the messages before it and one of the whole.
    """
    spoken = [message for message in messages if not isinstance(message, AgUiActivityMessage)]
    ids = [message.id for message in spoken]
    here = set(ids)
    kept = [message_id for message_id in known if message_id in here]
    reasoned = _any_reasoning(spoken)
    if ids[: len(kept)] != kept:
        yield AgUiMessagesSnapshot(metadata, [_BLANK] if reasoned else [])
    for count, activity in _placed(messages):
        if count is not None:
            some = spoken[:count]
            forget = [_BLANK] if reasoned and not _any_reasoning(some) else []
            yield AgUiMessagesSnapshot(metadata, [*some, *forget])
        if activity is not None:
            facts = activity.metadata or metadata
            yield AgUiActivitySnapshot(facts, activity.id, activity.activity_type, activity.content)


def _any_reasoning(messages: list[AgUiMessage]) -> bool:
    return any(message.role == "reasoning" for message in messages)


def _placed(messages: list[AgUiMessage]) -> Iterator[tuple[int | None, AgUiActivityMessage | None]]:
    """Yield the activities, each with the number of messages to send before it; the whole at last.

    None if no more messages must be sent. Activities past the first few come after everything.
    """
    sent, spoken, places = -1, 0, 0
    late: list[AgUiActivityMessage] = []
    for message in messages:
        if not isinstance(message, AgUiActivityMessage):
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


def idle_thread_frames(thread_id: str, messages: list[AgUiMessage], state: Any) -> list[Frame]:
    """Return a thread without a running run, as a run of its own that is over at once."""
    run_id = f"replay-{thread_id}"
    events = [
        AgUiRunStarted(UNSET, thread_id, run_id),
        *map(_at_rest, snapshots(messages, [])),
        *([AgUiStateSnapshot(UNSET, state)] if state else []),
        AgUiRunFinished(UNSET, thread_id, run_id, AgUiSuccess()),
    ]
    return [Frame("", encode_json(event)) for event in events]


def _at_rest(
    event: AgUiMessagesSnapshot | AgUiActivitySnapshot,
) -> AgUiMessagesSnapshot | RestingActivity:
    if isinstance(event, AgUiMessagesSnapshot):
        return event
    return RestingActivity(event.message_id, event.activity_type, event.content, event.metadata)
