"""The table of users' feedback on runs, which metrics read."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from conversations.identifiers import uuid7
from conversations.models.keys import unchecked_key

SCORES = (-1, 0, 1)


class Feedback(models.Model):
    """One user's judgement of one run; a new one replaces it.

    It is deleted with its run (ON DELETE CASCADE). `conversations.threads.feedback` writes it.
    """

    id = models.UUIDField(primary_key=True, default=uuid7)
    run = unchecked_key("conversations.Run", "feedback")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="feedback", db_index=False
    )
    score = models.SmallIntegerField(help_text="-1 is bad, 0 is neither, 1 is good.")
    comment = models.TextField(blank=True, default="", db_default="")
    tags = ArrayField(models.CharField(max_length=50), default=list, blank=True)
    created_at = models.DateTimeField(db_default=Now())
    updated_at = models.DateTimeField(db_default=Now())

    class Meta:
        verbose_name_plural = "feedback"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["run", "user"], name="one_feedback_per_user_and_run"),
            models.CheckConstraint(condition=Q(score__in=SCORES), name="feedback_score_known"),
        ]
        indexes: ClassVar = [
            models.Index(fields=["user"], name="feedback_of_user"),
            models.Index(fields=["updated_at"], name="feedback_by_time"),
        ]

    def __str__(self) -> str:
        return f"{self.score:+d}"
