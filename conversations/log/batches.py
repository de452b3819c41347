"""A batch: consecutive events of one run, as a row of the log and as a notification."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.utils.functional import cached_property  # functools' takes a lock in Python 3.11

from conversations import events
from conversations.events import RunEvent


@dataclass(frozen=True)
class Batch:
    """Consecutive events of one run, decoded on first need and then shared by all readers."""

    run_id: UUID
    first_seq: int
    last_seq: int
    body: bytes | str

    @cached_property
    def events(self) -> list[RunEvent]:
        return events.decode(self.first_seq, self.body)

    @property
    def text(self) -> str:
        """Return the JSON as PostgreSQL takes it."""
        return self.body.decode() if isinstance(self.body, bytes) else self.body

    @property
    def is_last(self) -> bool:
        """Return whether the batch contains the run's last event."""
        return isinstance(self.events[-1].fact, events.TERMINAL)

    def after(self, seq: int) -> list[RunEvent]:
        """Return the events past `seq`."""
        return self.events[max(0, seq + 1 - self.first_seq) :]


def make_batch(run_id: UUID, run_events: Sequence[RunEvent]) -> Batch:
    """Return a batch of events that are about to be written."""
    return Batch(run_id, run_events[0].seq, run_events[-1].seq, events.encode(run_events))
