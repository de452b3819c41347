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

from agents import rows
from agents.hostcalls.history import OWN_BRANCH, check_conversation
from agents.hostcalls.session import Scene, Session
from agents.hosting import asks, records
from agents.hosting.errors import invalid, not_found
from agents.requests import Happened
from conversations import events
from conversations.events import RunEvent

MOST: Final = 100
SUMMARY: Final = 1_000
RECEIVED: Final = "message.received"
_PIECES: Final = (events.MessageDelta, events.ReasoningDelta, events.UpstreamRaw)
_RUNS_AT_ONCE: Final = 10
_RUN: Final = """
SELECT thread_id, owner_id, thread_seq FROM conversations_run
WHERE id = %s AND (stored OR finished_at IS NULL)
"""
_BATCH: Final = """
SELECT first_seq, events::text FROM conversations_eventbatch
WHERE run_id = %s AND first_seq <= %s AND last_seq >= %s
"""
_ASKED: Final = """
SELECT request->'event', (SELECT left(content, 1000) FROM conversations_message
    WHERE run_id = run.id AND role = 'user' ORDER BY seq DESC LIMIT 1)
FROM conversations_run run WHERE id = %s
"""
_RUNS: Final = f"""
SELECT run.id, run.request->'event'->>'event_type' FROM conversations_run run
WHERE run.thread_id = %(thread_id)s AND run.owner_id = %(user_id)s
    AND (run.thread_seq, run.id) <= (%(seq)s, %(run_id)s) AND (run.stored OR run.id = %(run_id)s)
    AND {OWN_BRANCH}
ORDER BY run.thread_seq DESC, run.id DESC LIMIT %(limit)s
"""
_BATCHES: Final = """
SELECT first_seq, events::text FROM conversations_eventbatch
WHERE run_id = %s AND first_seq < %s ORDER BY first_seq DESC LIMIT 500
"""


async def get(session: Session, ask: asks.GetEvent) -> records.EventRecord:
    """One event of the run's conversation; another conversation's does not exist (promise P10)."""
    scene = session.scene
    run_id, seq = _parts(ask.event_id)
    found = await rows.one(_RUN, (run_id,))
    ours = found is not None and (found[0], found[1]) == (scene.thread_id, scene.user_id)
    batch = await rows.one(_BATCH, (run_id, seq, seq)) if ours else None
    held = events.decode(batch[0], batch[1]) if batch else []
    event = next((one for one in held if one.seq == seq), None)
    if event is None:
        raise not_found(f"Event {ask.event_id} not found")
    return await _record(scene, run_id, event)


async def page(session: Session, ask: asks.PageEvents) -> records.EventPage:
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
    return records.EventPage(items=tuple(items), next_cursor=last if more else None, has_more=more)


async def _runs_from(scene: Scene, run_id: UUID) -> list[tuple[UUID, str]]:
    """The conversation's runs from this one back, one more than are looked through, and what each was
    run for."""
    head = await rows.one(_RUN, (run_id,))
    if head is None or (head[0], head[1]) != (scene.thread_id, scene.user_id):
        raise invalid("A cursor must be one that this API gave.")
    asked = {
        "thread_id": scene.thread_id,
        "user_id": scene.user_id,
        "seq": min(head[2], scene.thread_seq),
        "run_id": run_id,
        "limit": _RUNS_AT_ONCE + 1,
    }
    return [(one, received or RECEIVED) for one, received in await rows.every(_RUNS, asked)]


async def _shown(run_id: UUID, before: int, wanted: frozenset[str], received: str) -> list[RunEvent]:
    """A run's events before that place, the newest first, without the pieces of messages."""
    batches = await rows.every(_BATCHES, (run_id, before))
    return [
        event
        for first_seq, body in batches
        for event in reversed(events.decode(first_seq, body))
        if event.seq < before
        and not isinstance(event.fact, _PIECES)
        and (not wanted or _type(event, received) in wanted)
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


async def _record(scene: Scene, run_id: UUID, event: RunEvent) -> records.EventRecord:
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
    return records.EventRecord(
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
    given, summary = await rows.one(_ASKED, (run_id,)) or (None, None)
    told = {"event_type": RECEIVED, "source": "api", "input_summary": summary}
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
