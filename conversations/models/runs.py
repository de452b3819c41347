"""The table of runs."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import Q
from django.db.models.fields.json import KeyTransform
from django.db.models.functions import Now

from conversations.identifiers import uuid7
from conversations.models.threads import Thread


class RunStatus(models.TextChoices):
    """The status of a run; the last three are terminal and agree with its last event."""

    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


LIVE = (RunStatus.QUEUED, RunStatus.RUNNING)
ENDED = (RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED)


class Run(models.Model):
    """One execution on a thread. The row decides who holds the run and how it ended."""

    id = models.UUIDField(primary_key=True, default=uuid7)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="runs", db_index=False
    )
    thread = models.ForeignKey(Thread, on_delete=models.CASCADE, related_name="runs", db_index=False)
    thread_seq = models.IntegerField(help_text="Place in the thread: the seq of its first message.")
    continues_run_id = models.UUIDField(  # no foreign key: a thread's runs are deleted in any order
        null=True, blank=True, editable=False,
        help_text="The run that it goes on from, where that is not the one before it in the "
        "thread; zeros where it begins the conversation anew.",
    )  # fmt: skip
    client_run_id = models.CharField(max_length=128, null=True, blank=True)
    request_digest = models.CharField(max_length=64, blank=True, default="", db_default="")
    request_id = models.CharField(max_length=128)
    dialect = models.CharField(max_length=32)
    model = models.CharField(max_length=200)
    request = models.JSONField()
    status = models.CharField(max_length=16, choices=RunStatus, db_default=RunStatus.QUEUED)

    # claim: who runs it, until when, and the token without which nothing can be written
    attempt = models.IntegerField(default=0, db_default=0)
    losses = models.SmallIntegerField(
        default=0,
        db_default=0,
        editable=False,
        help_text="How many workers it has lost.",
    )
    worker = models.CharField(max_length=100, blank=True, default="", db_default="")
    for_worker = models.CharField(
        max_length=200, blank=True, default="", db_default="", editable=False,
        help_text="The worker that holds the connection of its runner: then no other takes the run.",
    )  # fmt: skip
    fence = models.IntegerField(default=0, db_default=0)
    lease_until = models.DateTimeField(null=True, blank=True)
    deadline_at = models.DateTimeField()
    deadline_s = models.IntegerField()
    cancel_requested_at = models.DateTimeField(null=True, blank=True)
    last_seq = models.IntegerField(default=1, db_default=1, help_text="Final once the run has ended.")
    folded = models.BooleanField(default=False, db_default=False, editable=False)
    stored = models.BooleanField(
        default=True,
        db_default=True,
        editable=False,
        help_text="Else nothing that was said stays once it has ended: its numbers alone.",
    )

    # what it became
    provider = models.CharField(max_length=64, blank=True, default="", db_default="")
    resolved_model = models.CharField(max_length=200, blank=True, default="", db_default="")
    runner = models.CharField(max_length=64, blank=True, default="", db_default="")
    endpoint_id = models.IntegerField(null=True, blank=True)
    prompt_versions = models.JSONField(default=list, db_default=[])
    prompt_values = models.JSONField(
        null=True, blank=True, editable=False, help_text="What stood for the prompts' variables."
    )
    state = models.JSONField(
        null=True, blank=True, editable=False, help_text="The thread's state after it."
    )
    finish_reason = models.CharField(max_length=64, blank=True, default="", db_default="")
    error_code = models.CharField(max_length=64, blank=True, default="", db_default="")
    error_message = models.TextField(blank=True, default="", db_default="")
    input_tokens = models.IntegerField(default=0, db_default=0)
    output_tokens = models.IntegerField(default=0, db_default=0)
    cached_tokens = models.IntegerField(default=0, db_default=0)
    reasoning_tokens = models.IntegerField(default=0, db_default=0)
    cache_write_tokens = models.IntegerField(default=0, db_default=0)
    unpriced_tokens = models.IntegerField(
        default=0, db_default=0, help_text="Of input and output: those that the cost leaves out."
    )
    cost_usd = models.DecimalField(  # what is known of it; null where no price is known
        "cost (USD)", max_digits=24, decimal_places=10, null=True, blank=True
    )
    model_usage = models.JSONField(  # as `usage.sum_by_model` gives it
        default=list, db_default=[], blank=True, help_text="Calls, tokens and cost of each model."
    )

    created_at = models.DateTimeField(db_default=Now())
    started_at = models.DateTimeField(null=True, blank=True)
    first_token_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(status__in=RunStatus.values), name="run_status_known"),
            models.CheckConstraint(
                condition=Q(status__in=LIVE, finished_at__isnull=True)
                | Q(status__in=ENDED, finished_at__isnull=False),
                name="run_ended_has_finished_at",
            ),
            models.CheckConstraint(
                condition=~Q(status=RunStatus.FAILED) | ~Q(error_code=""), name="run_failed_has_code"
            ),
            models.UniqueConstraint(
                fields=["thread"],
                condition=Q(status=RunStatus.RUNNING),
                name="one_running_run_per_thread",
            ),
            models.UniqueConstraint(
                fields=["owner", "thread", "client_run_id"],
                condition=Q(client_run_id__isnull=False),
                name="one_run_per_client_run_id",
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["created_at"], condition=Q(status=RunStatus.QUEUED), name="run_queued"),
            models.Index(
                fields=["lease_until"], condition=Q(status=RunStatus.RUNNING), name="run_running"
            ),
            models.Index(fields=["thread", "thread_seq"], name="run_of_thread"),
            models.Index(fields=["owner", "-created_at"], name="run_of_owner"),
            models.Index(
                fields=["owner", "client_run_id"],
                condition=Q(client_run_id__isnull=False),
                name="run_by_client_id",
            ),
            models.Index(fields=["-created_at"], name="run_by_time"),
            models.Index(
                fields=["finished_at"],
                condition=Q(folded=False, finished_at__isnull=False),
                name="run_unfolded",
            ),
            models.Index(
                fields=["thread", "thread_seq"],
                condition=Q(continues_run_id__isnull=False),
                name="run_that_forks",
            ),
            models.Index(
                fields=["continues_run_id"],
                condition=Q(continues_run_id__isnull=False),
                name="run_that_continues",
            ),
            GinIndex(  # most runs have none, and then no entry
                KeyTransform("metadata", "request"),
                condition=Q(request__has_key="metadata"),
                name="run_by_metadata",
            ),
        ]

    def __str__(self) -> str:
        return self.id.hex
