"""The rows of the audit log; the database refuses to change or delete them (migration 0001)."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models.functions import Now


class AuditEntry(models.Model):
    """An action of an actor on an object; `before` and `after` contain only changes and no secrets.

    The actor's name stays when the account is deleted; the reference becomes null.
    """

    at = models.DateTimeField(db_default=Now(), editable=False)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        related_name="+",
        db_index=False,
        db_constraint=False,
    )
    actor_name = models.CharField("who", max_length=150)
    action = models.CharField(max_length=64)
    object_type = models.CharField("kind of object", max_length=100)
    object_id = models.CharField(max_length=64)
    object_name = models.CharField("object", max_length=200)
    before = models.JSONField(default=dict)
    after = models.JSONField(default=dict)
    request_id = models.CharField(max_length=128, blank=True, default="")

    class Meta:
        verbose_name = "audit entry"
        verbose_name_plural = "audit log"
        indexes: ClassVar = [
            models.Index(fields=["object_type", "object_id", "-id"], name="audit_of_object"),
            models.Index(fields=["actor_name", "-id"], name="audit_of_actor"),
            models.Index(fields=["action", "-id"], name="audit_of_action"),
            models.Index(fields=["-at"], name="audit_by_time"),
            models.Index(fields=["object_id"], name="audit_of_object_id"),
            models.Index(
                fields=["request_id"], condition=~models.Q(request_id=""), name="audit_of_request"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.actor_name}: {self.action} {self.object_name}"
