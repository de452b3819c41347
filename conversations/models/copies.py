"""The table of threads that contain text of other threads."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from conversations.models.keys import unchecked_key


class ThreadCopy(models.Model):
    """A thread with text of another one, of which staff ran a run again (`agents.intake.rerun`).

    The source is no foreign key: its later erasure must still find the copy. A copy of a copy has a row
    for each of its sources.
    """

    # takes it along when it is deleted (ON DELETE CASCADE, migration 0018)
    thread = unchecked_key("conversations.Thread", "+")
    source_id = models.UUIDField(help_text="The conversation that it was copied from.")
    owner_id = models.UUIDField(help_text="Whose that one is.")

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["thread", "source_id"], name="one_copy_per_source")
        ]
        indexes: ClassVar = [
            models.Index(fields=["source_id"], name="copy_of_thread"),
            models.Index(fields=["owner_id"], name="copy_of_owner"),
        ]

    def __str__(self) -> str:
        return f"{self.thread_id} of {self.source_id}"
