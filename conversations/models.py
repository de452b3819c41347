"""The rows of what happened.

Runs and events are written by SQL in `log` and `agents.execution`; these models define the tables,
their constraints and what admin and history read. Nobody saves a run or an event through them.
"""

from __future__ import annotations

import uuid
from typing import Any, ClassVar

from django.conf import settings
from django.contrib.postgres.indexes import GinIndex, OpClass
from django.db import models
from django.db.models import Case, IntegerField, Q, TextField, When
from django.db.models.fields.json import KT, KeyTransform
from django.db.models.functions import Cast, Now

from conversations import rollup_models as rollup_models
from conversations.copy_models import ThreadCopy as ThreadCopy
from conversations.feedback_models import Feedback as Feedback
from conversations.identifiers import uuid7
from conversations.interrupt_models import Interrupt as Interrupt
from conversations.interrupt_models import InterruptStatus as InterruptStatus
from conversations.spend_models import Spend as Spend


class Owned(models.QuerySet[Any]):
    """Rows that belong to somebody; the only door for a client's request (promise P10)."""

    def visible_to(self, user_id: uuid.UUID) -> Owned:
        """The rows this user may see; a foreign row does not exist for them."""
        return self.filter(owner_id=user_id)


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

    objects = Owned.as_manager()

    class Meta:
        verbose_name = "conversation"  # staff's word; clients say thread
        indexes: ClassVar = [
            models.Index(fields=["owner", "-updated_at"], name="thread_of_owner"),
            models.Index(fields=["-updated_at", "-id"], name="thread_by_time"),
        ]

    def __str__(self) -> str:
        return self.title or str(self.pk)


class RunStatus(models.TextChoices):
    """Where a run stands; the last three are terminal and agree with its last event."""

    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


LIVE = (RunStatus.QUEUED, RunStatus.RUNNING)
ENDED = (RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED)


class Run(models.Model):
    """One execution on a thread. The row is the truth about who runs it and how it ended."""

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
    model_usage = models.JSONField(  # as `usage.by_model` gives it
        default=list, db_default=[], blank=True, help_text="Calls, tokens and cost of each model."
    )

    created_at = models.DateTimeField(db_default=Now())
    started_at = models.DateTimeField(null=True, blank=True)
    first_token_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    objects = Owned.as_manager()

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


class Role(models.TextChoices):
    """Who speaks in a message."""

    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"
    DEVELOPER = "developer"
    TOOL = "tool"
    REASONING = "reasoning"
    ACTIVITY = "activity"


SEARCHED = (Role.USER, Role.ASSISTANT)


class Message(models.Model):
    """One finished entry of a thread, with an open `metadata` (specs/run-agent-input.md §3).

    `stage`, `latency_ms`, `tool_name`, `tool_ok` and `run_ref` are generated from `metadata`; metrics
    read those columns.
    """

    id = models.UUIDField(primary_key=True, default=uuid7)
    owner = models.ForeignKey(  # the thread's, whose own constraint keeps it
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        related_name="messages",
        db_index=False,
        db_constraint=False,
    )
    thread = models.ForeignKey(Thread, on_delete=models.CASCADE, related_name="messages", db_index=False)
    run = models.ForeignKey(  # takes it along when it is deleted (ON DELETE CASCADE, migration 0017)
        Run,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="messages",
        db_index=False,
        db_constraint=False,
    )
    seq = models.IntegerField(
        null=True, help_text="Counts from 1 within the thread; a stage's note has no place in it."
    )
    role = models.CharField(max_length=16, choices=Role)
    content = models.TextField(blank=True)
    client_id = models.CharField(max_length=200, null=True, blank=True)
    metadata = models.JSONField(default=dict, db_default={}, blank=True)
    created_at = models.DateTimeField(db_default=Now())

    run_ref = models.GeneratedField(
        expression=KT("metadata__run_id"), output_field=TextField(), db_persist=True
    )
    stage = models.GeneratedField(
        expression=KT("metadata__stage"), output_field=TextField(), db_persist=True
    )
    tool_name = models.GeneratedField(
        expression=KT("metadata__tool_name"), output_field=TextField(), db_persist=True
    )
    tool_ok = models.GeneratedField(
        expression=KT("metadata__tool_agent_output__ok"), output_field=TextField(), db_persist=True
    )
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


class Attachment(models.Model):
    """A stored file. Messages name it by bucket and path in `metadata.user_message_attachments`.

    The row is written before the file and deleted after it, so no file is without one. The owner is
    no foreign key: an account deleted in admin must leave the row by which its files are found.
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


class EventBatch(models.Model):
    """Consecutive events of one run as one row of the log (DESIGN §6).

    The table is partitioned by `run_id`, whose leading bits are the time (see `identifiers`), so it
    is made by SQL in the migration. Rows are written by `conversations.log` alone.
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
