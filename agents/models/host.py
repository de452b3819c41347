"""The rows that the Host keeps for runners (state, bytes, artifacts), written by SQL in `agents.host`.

The database deletes them together with their conversation or user (ON DELETE CASCADE, migration 0006).
"""

from __future__ import annotations

import uuid
from typing import Any, ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from agents.models.fields import known_choice, optional_key


def _with_it(to: str) -> models.ForeignKey[Any, Any]:
    """Return a foreign key; the database deletes the row together with the one that it refers to."""
    return optional_key(to, on_delete=models.DO_NOTHING, db_constraint=False)


class StateScope(models.TextChoices):
    """The kinds of owner that a runner's state may have (seed 003 §4.11)."""

    CONVERSATION = "conversation"
    ACTOR = "actor"
    SUBJECT = "subject"
    RUNNER = "runner"
    BINDING = "binding"


class HostState(models.Model):
    """A small JSON value that a runner keeps from run to run, separately per binding."""

    runner_id = models.CharField(max_length=320)
    binding_id = models.IntegerField(help_text="0 for runs without a binding.")
    scope = models.CharField(max_length=16, choices=StateScope)
    scope_key = models.CharField(max_length=100, help_text="The conversation, actor or subject.")
    key = models.CharField(max_length=200)
    value = models.JSONField(null=True)
    owner = _with_it(settings.AUTH_USER_MODEL)
    thread = _with_it("conversations.Thread")
    updated_at = models.DateTimeField(db_default=Now())

    class Meta:
        verbose_name = "runner state"
        verbose_name_plural = "runner states"
        constraints: ClassVar = [
            known_choice("scope", StateScope, name="hoststate_scope_known"),
            models.UniqueConstraint(
                fields=["runner_id", "binding_id", "scope", "scope_key", "key"],
                name="one_value_per_state_key",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.scope} {self.key}"


class StorageArea(models.TextChoices):
    """The runners that share stored bytes: those of a plugin, of the installation, or of one binding."""

    PLUGIN = "plugin"
    WORKSPACE = "workspace"
    BINDING = "binding"


class HostBlob(models.Model):
    """Bytes that a runner keeps."""

    area = models.CharField(max_length=16, choices=StorageArea)
    holder = models.CharField(max_length=320, help_text="author/name, default, or the binding's id.")
    key = models.CharField(max_length=500)
    content = models.BinaryField()
    size = models.IntegerField()
    updated_at = models.DateTimeField(db_default=Now())

    class Meta:
        verbose_name = "runner storage"
        verbose_name_plural = "runner storage"
        constraints: ClassVar = [
            known_choice("area", StorageArea, name="hostblob_area_known"),
            models.UniqueConstraint(fields=["area", "holder", "key"], name="one_blob_per_key"),
        ]

    def __str__(self) -> str:
        return f"{self.area} {self.key}"


class HostArtifact(models.Model):
    """A file that a runner made; it has at most 1 MiB, so the row holds its bytes."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    owner = _with_it(settings.AUTH_USER_MODEL)
    thread = _with_it("conversations.Thread")
    run_id = models.UUIDField()
    runner_id = models.CharField(max_length=320)
    artifact_type = models.CharField(max_length=64)
    mime_type = models.CharField(max_length=127)
    name = models.CharField(max_length=200)
    size = models.IntegerField()
    sha256 = models.CharField(max_length=64)
    content = models.BinaryField()
    metadata = models.JSONField(default=dict)
    created_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = "artifact"
        indexes: ClassVar = [
            models.Index(
                fields=["expires_at"], condition=Q(expires_at__isnull=False), name="artifact_expiring"
            )
        ]

    def __str__(self) -> str:
        return self.name or str(self.pk)
