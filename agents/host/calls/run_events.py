"""Events for runners: the log of the conversation's runs, as stable envelopes without large parts (seed
§7.5).

An event's id is `{run}-{seq}`. What started a run is its first event, `message.received`. The pieces
of a message are not events here: its whole text is, as `message.completed`, and only its beginning is
told.
"""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

import msgspec

from agents.host.actions import action
from agents.host.calls.history import check_conversation
from agents.host.session import Scene, Session
from agents.host_protocol import parameters, replies
from agents.host_protocol.errors import invalid, not_found
from agents.requests import Happened
from conversations import events
from conversations.events import RunEvent
from conversations.threads import thread_events
from conversations.threads.thread_events import RunPlace

MOST: Final = 100
SUMMARY: Final = 1_000
RECEIVED: Final = "message.received"
_PIECES: Final = (events.MessageDelta, events.ReasoningDelta, events.UpstreamRaw)
_RUNS_AT_ONCE: Final = 10


@action("event_get", "events", "get", resource="event_id", seconds=15)
async def get(session: Session, ask: parameters.GetEvent) -> replies.EventRecord:
    """One event of the run's conversation; another conversation's does not exist (promise P10)."""
    scene = session.scene
    run_id, seq = _parts(ask.event_id)
    is_ours = _is_in(scene, await thread_events.place_of(run_id))
    event = await thread_events.event_at(run_id, seq) if is_ours else None
    if event is None:
        raise not_found(f"Event {ask.event_id} not found")
    return await _record(scene, run_id, event)


@action("event_page", "events", "page", resource=lambda ask: ask.conversation_id or "")
async def page(session: Session, ask: parameters.PageEvents) -> replies.EventPage:
    """The newest events first, from this run back through the conversation."""
    scene = session.scene
    check_conversation(scene, ask.conversation_id, "Event page")
    if ask.limit < 1:
        raise invalid("limit must be > 0")
    limit, wanted = min(ask.limit, MOST), frozenset(ask.event_types or ())
    run_id, before = _parts(ask.before_cursor) if ask.before_cursor else (scene.run_id, 2**31 - 1)
    found: list[tuple[UUID, RunEvent]] = []
    runs = await _runs_from(scene, run_id)
    for one, received in runs[:_RUNS_AT_ONCE]:
        found += [(one, event) for event in await _shown(one, before, wanted, received)]
        before = 2**31 - 1
        if len(found) > limit:
            break
    more = len(found) > limit or len(runs) > _RUNS_AT_ONCE
    items = [await _record(scene, one, event) for one, event in found[:limit]]
    last = items[-1].cursor if items else f"{runs[_RUNS_AT_ONCE - 1][0].hex}-1" if more else None
    return replies.EventPage(items=tuple(items), next_cursor=last if more else None, has_more=more)


async def _runs_from(scene: Scene, run_id: UUID) -> list[tuple[UUID, str]]:
    """The conversation's runs from this one back, one more than are looked through, and what each was
    run for."""
    place = await thread_events.place_of(run_id)
    if place is None or not _is_in(scene, place):
        raise invalid("A cursor must be one that this API gave.")
    place = place._replace(thread_seq=min(place.thread_seq, scene.thread_seq))
    found = await thread_events.runs_back_from(run_id, place, limit=_RUNS_AT_ONCE + 1)
    return [(one, received or RECEIVED) for one, received in found]


def _is_in(scene: Scene, place: RunPlace | None) -> bool:
    return place is not None and place[:2] == (scene.thread_id, scene.user_id)


async def _shown(run_id: UUID, before: int, wanted: frozenset[str], received: str) -> list[RunEvent]:
    """A run's events before that place, the newest first, without the pieces of messages."""
    return [
        event
        for event in await thread_events.events_before(run_id, before)
        if not isinstance(event.fact, _PIECES) and (not wanted or _type(event, received) in wanted)
    ]


def _parts(event_id: str) -> tuple[UUID, int]:
    run, _, seq = event_id.partition("-")
    try:
        if not (seq.isdecimal() and len(seq) < 10):
            raise ValueError
        return UUID(hex=run), int(seq)
    except ValueError:
        raise not_found(f"Event {event_id} not found") from None


def _type(event: RunEvent, received: str) -> str:
    return received if isinstance(event.fact, events.RunQueued) else event.type


async def _record(scene: Scene, run_id: UUID, event: RunEvent) -> replies.EventRecord:
    conversation = scene.thread_id.hex if scene.thread_id else None
    event_id = f"{run_id.hex}-{event.seq}"
    if isinstance(event.fact, events.RunQueued):
        told = await _received(scene, run_id)
    else:
        told = {
            "event_type": event.type,
            "source": "runner",
            "actor_type": "agent",
            "subject_type": "run",
            "subject_id": run_id.hex,
            "input_summary": _summary(event.fact),
        }
    return replies.EventRecord(
        **{"event_time": event.at // 1000, **told},
        event_id=event_id,
        conversation_id=conversation,
        thread_id=conversation,
        seq=event.seq,
        cursor=event_id,
        created_at=event.at // 1000,
        metadata={"run_id": run_id.hex},
    )


async def _received(scene: Scene, run_id: UUID) -> dict[str, Any]:
    """What started a run: a message of its user, or an event as its caller told it."""
    given, summary = await thread_events.started_by(run_id)
    told: dict[str, Any] = {"event_type": RECEIVED, "source": "api", "input_summary": summary}
    by = {"actor_type": "user", "actor_id": scene.user_id.hex}
    about = {"subject_type": "message", "subject_id": run_id.hex}
    if not given:
        return told | by | about
    happened = msgspec.convert(given, Happened)
    told |= {"event_type": happened.event_type, "source": happened.source}
    if happened.event_time is not None:
        told["event_time"] = happened.event_time
    if happened.event_type == RECEIVED:
        return told | by | about
    actor, subject = happened.actor, happened.subject
    if actor is not None:
        told |= {"actor_type": actor.actor_type, "actor_id": actor.actor_id}
        told["actor_name"] = actor.actor_name
    if subject is not None:
        told |= {"subject_type": subject.subject_type, "subject_id": subject.subject_id}
    return told


def _summary(fact: Any) -> str | None:
    """A few words of what happened; never a tool's arguments or a state's value."""
    match fact:
        case events.MessageCompleted(body):
            return body.content[:SUMMARY]
        case events.ToolCallStarted(_, name) | events.ToolCallCompleted(_, name):
            return name
        case events.RunFailed(code):
            return code
        case events.RunCompleted(reason):
            return reason
        case events.ArtifactCreated() as made:
            return made.name
    return None
