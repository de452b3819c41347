"""The table of messages."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.contrib.postgres.indexes import GinIndex, OpClass
from django.db import models
from django.db.models import Case, IntegerField, Q, TextField, When
from django.db.models.fields.json import KT, KeyTransform
from django.db.models.functions import Cast, Now

from conversations.identifiers import uuid7
from conversations.models.keys import unchecked_key
from conversations.models.threads import Thread


class Role(models.TextChoices):
    """The author of a message."""

    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"
    DEVELOPER = "developer"
    TOOL = "tool"
    REASONING = "reasoning"
    ACTIVITY = "activity"


SEARCHED = (Role.USER, Role.ASSISTANT)


def _text_at(path: str) -> models.GeneratedField:
    return models.GeneratedField(expression=KT(path), output_field=TextField(), db_persist=True)


class Message(models.Model):
    """One finished entry of a thread, with an open `metadata` (specs/run-agent-input.md §3).

    `stage`, `latency_ms`, `tool_name`, `tool_ok` and `run_ref` are generated from `metadata`; metrics
    read those columns.
    """

    id = models.UUIDField(primary_key=True, default=uuid7)
    owner = unchecked_key(  # the thread's, whose own constraint keeps it
        settings.AUTH_USER_MODEL, "messages", on_delete=models.CASCADE
    )
    thread = models.ForeignKey(Thread, on_delete=models.CASCADE, related_name="messages", db_index=False)
    # takes it along when it is deleted (ON DELETE CASCADE, migration 0017)
    run = unchecked_key("conversations.Run", "messages", on_delete=models.CASCADE, null=True)
    seq = models.IntegerField(
        null=True, help_text="Counts from 1 within the thread; a stage's note has no place in it."
    )
    role = models.CharField(max_length=16, choices=Role)
    content = models.TextField(blank=True)
    client_id = models.CharField(max_length=200, null=True, blank=True)
    metadata = models.JSONField(default=dict, db_default={}, blank=True)
    created_at = models.DateTimeField(db_default=Now())

    run_ref = _text_at("metadata__run_id")
    stage = _text_at("metadata__stage")
    tool_name = _text_at("metadata__tool_name")
    tool_ok = _text_at("metadata__tool_agent_output__ok")
    latency_ms = models.GeneratedField(
        expression=Case(
            When(
                metadata__latency_ms__regex=r"^\d{1,9}$",
                then=Cast(KT("metadata__latency_ms"), IntegerField()),
            )
        ),
        output_field=IntegerField(),
        db_persist=True,
    )

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["thread", "seq"], name="one_message_per_place"),
            models.CheckConstraint(condition=Q(role__in=Role.values), name="message_role_known"),
            models.CheckConstraint(condition=Q(seq__gte=1), name="message_seq_from_one"),
        ]
        indexes: ClassVar = [
            models.Index(fields=["run"], name="message_of_run"),
            models.Index(
                fields=["thread", "client_id"],
                condition=Q(client_id__isnull=False),
                name="message_by_client_id",
            ),
            models.Index(fields=["thread", "created_at"], name="message_by_day"),
            models.Index(
                fields=["owner", "created_at"], condition=Q(role__in=SEARCHED), name="message_searched"
            ),
            models.Index(
                fields=["tool_name", "created_at"],
                condition=Q(tool_name__isnull=False),
                name="message_by_tool",
            ),
            models.Index(
                fields=["stage", "created_at"], condition=Q(stage__isnull=False), name="message_by_stage"
            ),
            GinIndex(
                OpClass(KeyTransform("user_message_attachments", "metadata"), "jsonb_path_ops"),
                condition=Q(metadata__has_key="user_message_attachments"),
                name="message_by_attachment",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.role} {self.seq}"
