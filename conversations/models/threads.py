"""The tables of threads, and of those that contain text of other threads."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from conversations.models.keys import unchecked_key


class Thread(models.Model):
    """An ordered conversation of one owner."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="threads", db_index=False
    )
    title = models.CharField(max_length=200, blank=True, default="")
    last_seq = models.IntegerField(default=0, db_default=0, editable=False)
    state = models.JSONField(default=dict, db_default={}, blank=True)
    summary = models.JSONField(
        null=True, blank=True, editable=False, help_text="What models no longer read, in short."
    )
    head_run_id = models.UUIDField(null=True, blank=True, editable=False, help_text="Its newest run.")
    fork_run_id = models.UUIDField(
        null=True, blank=True, editable=False,
        help_text="The newest run that began a branch; none while there is one branch only.",
    )  # fmt: skip
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    updated_at = models.DateTimeField(db_default=Now(), editable=False)
    archived_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = "conversation"  # staff's word; clients say thread
        indexes: ClassVar = [
            models.Index(fields=["owner", "-updated_at"], name="thread_of_owner"),
            models.Index(fields=["-updated_at", "-id"], name="thread_by_time"),
        ]

    def __str__(self) -> str:
        return self.title or str(self.pk)


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
