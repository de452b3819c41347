"""The table of the event log."""

from __future__ import annotations

from django.db import models


class EventBatch(models.Model):
    """Consecutive events of one run as one row of the log (DESIGN §6).

    The table is partitioned by `run_id`, whose leading bits are the time (see `identifiers`), so SQL in
    the migration creates it. Only `conversations.log` and the statements of runs write rows.
    """

    pk = models.CompositePrimaryKey("run_id", "first_seq")
    run_id = models.UUIDField()
    first_seq = models.IntegerField()
    last_seq = models.IntegerField()
    events = models.TextField(help_text="A JSON array; see `events.encode`.")

    class Meta:
        managed = False
        db_table = "conversations_eventbatch"

    def __str__(self) -> str:
        return f"{self.run_id} {self.first_seq}–{self.last_seq}"
