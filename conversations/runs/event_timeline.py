"""Show a run's events in admin: consecutive deltas as one row, long texts cut."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Any, Final
from uuid import UUID

import msgspec
from django.db.models import QuerySet, TextField
from django.db.models.functions import Cast
from msgspec import Struct

from conversations import events
from conversations.events import RunEvent
from conversations.models import EventBatch

_BATCHES: Final = 400
_STATES: Final = 5  # it is told before anything is said
_SHOWN_TEXT: Final = 600


class TimelineRow(Struct, frozen=True):
    """An event's kind, time and text; consecutive deltas are one row."""

    seqs: str
    type: str
    at_ms: int
    text: str


def fetch_events(run_id: UUID) -> list[RunEvent]:
    """Return the run's events, cut off past a limit of batches."""
    stored = _batches(run_id).values_list("first_seq", "body")[:_BATCHES]
    return [event for first_seq, body in stored for event in events.decode(first_seq, body)]


def fetch_state_read(run_id: UUID) -> Any:
    """Return the thread's state as the run's model read it; None where none is known."""
    batches = _batches(run_id).filter(body__contains='"state.updated"')
    for first_seq, body in batches.values_list("first_seq", "body")[:_STATES]:
        for event in events.decode(first_seq, body):
            match event.fact:
                case events.StateUpdated("thread", "", value):
                    return value
    return None


def _batches(run_id: UUID) -> QuerySet[Any]:
    batches: QuerySet[Any] = EventBatch.objects.filter(run_id=run_id)
    batches = batches.annotate(body=Cast("events", TextField()))
    return batches.order_by("first_seq")


def make_rows(run_events: list[RunEvent]) -> Iterable[TimelineRow]:
    """Return the events as rows."""
    begun = run_events[0].at if run_events else 0
    for _, joined in groupby(run_events, key=_group_key):
        yield _row(list(joined), begun)


def _group_key(event: RunEvent) -> str | int:
    return event.type if isinstance(event.fact, events.DELTAS) else event.seq


def _row(joined: list[RunEvent], begun: int) -> TimelineRow:
    first, last = joined[0], joined[-1]
    seqs = str(first.seq) if first.seq == last.seq else f"{first.seq}–{last.seq}"
    text = "".join(event.fact.text for event in joined if hasattr(event.fact, "text"))
    if not text:
        facts = _members(first.fact)
        text = msgspec.json.encode({name: facts[name] for name in facts if name != "type"}).decode()
    return TimelineRow(seqs, first.type, first.at - begun, text[:_SHOWN_TEXT])


def _members(fact: events.Fact | events.LaterFact) -> dict[str, Any]:
    if isinstance(fact, events.LaterFact):
        return dict(msgspec.json.decode(fact.stored))
    return dict(msgspec.to_builtins(fact))
