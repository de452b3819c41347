"""The table of interrupts: tool calls that wait for approval."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from conversations.identifiers import uuid7
from conversations.models.keys import unchecked_key


class InterruptStatus(models.TextChoices):
    """The outcome of an interrupt; it is decided once."""

    PENDING = "pending"
    APPROVED = "approved"
    REFUSED = "refused"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


class Interrupt(models.Model):
    """A tool call that waits for approval; the run that made it ended with it.

    The run's last statement writes it; `conversations.runs.interrupts` decides it. A later run of the
    thread (`told_run_id`) passes the outcome to the model, and calls the tool if it was approved. It is
    deleted with its run (ON DELETE CASCADE).
    """

    id = models.UUIDField(primary_key=True, default=uuid7)
    owner = unchecked_key(  # the thread's, whose own constraint keeps it
        settings.AUTH_USER_MODEL, "interrupts", on_delete=models.CASCADE
    )
    thread = unchecked_key("conversations.Thread", "interrupts")
    run = unchecked_key("conversations.Run", "interrupts")
    place = models.SmallIntegerField(help_text="Among those of its run, from 1.")
    tool_call_id = models.CharField(max_length=200)
    tool_name = models.CharField(max_length=200)
    arguments = models.JSONField()
    message = models.TextField(blank=True, default="")
    status = models.CharField(max_length=16, choices=InterruptStatus, db_default=InterruptStatus.PENDING)
    created_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField()
    decided_at = models.DateTimeField(null=True, blank=True)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        db_constraint=False,
    )
    decision_reason = models.TextField(blank=True, default="", db_default="")
    edited_arguments = models.JSONField(null=True, blank=True)
    told_run_id = models.UUIDField(null=True, blank=True)
    begun_fence = models.IntegerField(
        null=True, blank=True, help_text="The fence under which the tool was called."
    )

    class Meta:
        verbose_name = "approval"  # staff's word; clients say interrupt
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(status__in=InterruptStatus.values), name="interrupt_status_known"
            )
        ]
        indexes: ClassVar = [
            models.Index(fields=["run"], name="interrupt_of_run"),
            models.Index(fields=["thread"], name="interrupt_of_thread"),
            models.Index(fields=["owner", "-id"], name="interrupt_of_owner"),
            models.Index(
                fields=["expires_at"],
                condition=Q(status=InterruptStatus.PENDING),
                name="interrupt_pending",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.tool_name} ({self.status})"
