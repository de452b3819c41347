"""The table of attachments."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.db import models
from django.db.models.functions import Now


class Attachment(models.Model):
    """A stored file. Messages refer to it by bucket and path in `metadata.user_message_attachments`.

    The row is written before the file and deleted after it, so every file has a row. The owner is no
    foreign key: deleting an account in admin must leave the row, by which its files are found.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    owner_id = models.UUIDField()
    thread = models.CharField(max_length=128, help_text="As in the path: _ where none was given.")
    bucket = models.CharField(max_length=63)
    path = models.CharField(max_length=500, unique=True)
    created_at = models.DateTimeField(db_default=Now())
    check_at = models.DateTimeField(help_text="When upkeep looks whether a message names it.")

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["owner_id", "thread"], name="attachment_of_owner"),
            models.Index(fields=["check_at"], name="attachment_to_check"),
        ]

    def __str__(self) -> str:
        return self.path
