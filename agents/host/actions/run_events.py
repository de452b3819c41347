"""Events for runners: the log of the conversation's runs, as stable envelopes without large parts.

See seed §7.5. An event's id is `{run}-{seq}`. The first event of a run is its cause,
`message.received`. Pieces of a message are no events here; the whole message is, as
`message.completed`, with only the beginning of its text.
"""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

import msgspec

from agents.host.action_registry import action
from agents.host.actions.checks import checked_limit
from agents.host.actions.history import check_conversation
from agents.host.session import Scene, Session
from agents.host_protocol import parameters, replies
from agents.host_protocol.errors import invalid, not_found
from agents.requests import Happened
from conversations import events
from conversations.events import RunEvent
from conversations.threads import thread_events
from conversations.threads.thread_events import RunPlace

MAX_PAGE_SIZE: Final = 100
SUMMARY: Final = 1_000
RECEIVED: Final = "message.received"
_PIECES: Final = (events.MessageDelta, events.ReasoningDelta, events.UpstreamRaw)
_RUNS_AT_ONCE: Final = 10


@action("event_get", "events", "get", resource="event_id", seconds=15)
async def get(session: Session, params: parameters.GetEvent) -> replies.EventRecord:
    """Return one event of the run's conversation; events of others do not exist (promise P10)."""
    scene = session.scene
    run_id, seq = _parse_event_id(params.event_id)
    is_ours = _is_in(scene, await thread_events.fetch_run_place(run_id))
    event = await thread_events.fetch_event(run_id, seq) if is_ours else None
    if event is None:
        raise not_found(f"Event {params.event_id} not found")
    return await _record(scene, run_id, event)


@action("event_page", "events", "page", resource=lambda params: params.conversation_id or "")
async def page(session: Session, params: parameters.PageEvents) -> replies.EventPage:
    """Return the newest events first, from this run back through the conversation."""
    scene = session.scene
    check_conversation(scene, params.conversation_id, "Event page")
    limit = checked_limit(params.limit, MAX_PAGE_SIZE)
    types = frozenset(params.event_types or ())
    run_id, before = (
        _parse_event_id(params.before_cursor) if params.before_cursor else (scene.run_id, 2**31 - 1)
    )
    found: list[tuple[UUID, RunEvent]] = []
    runs = await _runs_from(scene, run_id)
    for one, cause_type in runs[:_RUNS_AT_ONCE]:
        found += [(one, event) for event in await _find_events(one, before, types, cause_type)]
        before = 2**31 - 1
        if len(found) > limit:
            break
    more = len(found) > limit or len(runs) > _RUNS_AT_ONCE
    items = [await _record(scene, one, event) for one, event in found[:limit]]
    last = items[-1].cursor if items else f"{runs[_RUNS_AT_ONCE - 1][0].hex}-1" if more else None
    return replies.EventPage(items=tuple(items), next_cursor=last if more else None, has_more=more)


async def _runs_from(scene: Scene, run_id: UUID) -> list[tuple[UUID, str]]:
    """Return the conversation's runs from this one back, with the type of the event that caused each.

    The list has one run more than a page reads.
    """
    place = await thread_events.fetch_run_place(run_id)
    if place is None or not _is_in(scene, place):
        raise invalid("A cursor must be one that this API gave.")
    place = place._replace(thread_seq=min(place.thread_seq, scene.thread_seq))
    found = await thread_events.list_runs_back_from(run_id, place, limit=_RUNS_AT_ONCE + 1)
    return [(one, cause_type or RECEIVED) for one, cause_type in found]


def _is_in(scene: Scene, place: RunPlace | None) -> bool:
    return place is not None and place[:2] == (scene.thread_id, scene.user_id)


async def _find_events(
    run_id: UUID, before: int, types: frozenset[str], cause_type: str
) -> list[RunEvent]:
    """Return a run's events before that place, newest first, without the pieces of messages."""
    return [
        event
        for event in await thread_events.fetch_events_before(run_id, before)
        if not isinstance(event.fact, _PIECES) and (not types or _type(event, cause_type) in types)
    ]


def _parse_event_id(event_id: str) -> tuple[UUID, int]:
    run, _, seq = event_id.partition("-")
    try:
        if not (seq.isdecimal() and len(seq) < 10):
            raise ValueError
        return UUID(hex=run), int(seq)
    except ValueError:
        raise not_found(f"Event {event_id} not found") from None


def _type(event: RunEvent, cause_type: str) -> str:
    return cause_type if isinstance(event.fact, events.RunQueued) else event.type


async def _record(scene: Scene, run_id: UUID, event: RunEvent) -> replies.EventRecord:
    event_id = f"{run_id.hex}-{event.seq}"
    if isinstance(event.fact, events.RunQueued):
        about_event = await _find_cause(scene, run_id)
    else:
        about_event = {
            "event_type": event.type,
            "source": "runner",
            "actor_type": "agent",
            "subject_type": "run",
            "subject_id": run_id.hex,
            "input_summary": _summary(event.fact),
        }
    return replies.EventRecord(
        **{"event_time": event.at // 1000, **about_event},
        event_id=event_id,
        conversation_id=scene.conversation_id,
        thread_id=scene.conversation_id,
        seq=event.seq,
        cursor=event_id,
        created_at=event.at // 1000,
        metadata={"run_id": run_id.hex},
    )


async def _find_cause(scene: Scene, run_id: UUID) -> dict[str, Any]:
    """Return the cause of a run: a message of its user, or an event of its caller."""
    event, summary = await thread_events.fetch_start(run_id)
    fields: dict[str, Any] = {"event_type": RECEIVED, "source": "api", "input_summary": summary}
    by = {"actor_type": "user", "actor_id": scene.user_id.hex}
    about = {"subject_type": "message", "subject_id": run_id.hex}
    if not event:
        return fields | by | about
    happened = msgspec.convert(event, Happened)
    fields |= {"event_type": happened.event_type, "source": happened.source}
    if happened.event_time is not None:
        fields["event_time"] = happened.event_time
    if happened.event_type == RECEIVED:
        return fields | by | about
    actor, subject = happened.actor, happened.subject
    if actor is not None:
        fields |= {"actor_type": actor.actor_type, "actor_id": actor.actor_id}
        fields["actor_name"] = actor.actor_name
    if subject is not None:
        fields |= {"subject_type": subject.subject_type, "subject_id": subject.subject_id}
    return fields


def _summary(fact: Any) -> str | None:
    """Return a short summary of the event; never a tool's arguments or a state's value."""
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
