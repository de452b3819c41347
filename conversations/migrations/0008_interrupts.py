"""Tool calls that wait for approval; their run takes them along when it is deleted."""

from typing import ClassVar

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

import conversations.identifiers


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("conversations", "0007_notes_without_place"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations: ClassVar = [
        migrations.CreateModel(
            name="Interrupt",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=conversations.identifiers.uuid7, primary_key=True, serialize=False
                    ),
                ),
                ("place", models.SmallIntegerField(help_text="Among those of its run, from 1.")),
                ("tool_call_id", models.CharField(max_length=200)),
                ("tool_name", models.CharField(max_length=200)),
                ("arguments", models.JSONField()),
                ("message", models.TextField(blank=True, default="")),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("pending", "Pending"),
                            ("approved", "Approved"),
                            ("refused", "Refused"),
                            ("expired", "Expired"),
                            ("cancelled", "Cancelled"),
                        ],
                        db_default="pending",
                        max_length=16,
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("expires_at", models.DateTimeField()),
                ("decided_at", models.DateTimeField(blank=True, null=True)),
                ("decision_reason", models.TextField(blank=True, db_default="", default="")),
                ("edited_arguments", models.JSONField(blank=True, null=True)),
                ("told_run_id", models.UUIDField(blank=True, null=True)),
                (
                    "begun_fence",
                    models.IntegerField(
                        blank=True, help_text="The fence under which the tool was called.", null=True
                    ),
                ),
                (
                    "decided_by",
                    models.ForeignKey(
                        blank=True,
                        db_constraint=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="interrupts",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="interrupts",
                        to="conversations.run",
                    ),
                ),
                (
                    "thread",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="interrupts",
                        to="conversations.thread",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["run"], name="interrupt_of_run"),
                    models.Index(fields=["thread"], name="interrupt_of_thread"),
                    models.Index(fields=["owner", "-id"], name="interrupt_of_owner"),
                    models.Index(
                        condition=models.Q(("status", "pending")),
                        fields=["expires_at"],
                        name="interrupt_pending",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("status__in", ["pending", "approved", "refused", "expired", "cancelled"])
                        ),
                        name="interrupt_status_known",
                    )
                ],
            },
        ),
        migrations.RunSQL(
            "ALTER TABLE conversations_interrupt ADD CONSTRAINT interrupt_goes_with_its_run "
            "FOREIGN KEY (run_id) REFERENCES conversations_run (id) ON DELETE CASCADE",
            "ALTER TABLE conversations_interrupt DROP CONSTRAINT interrupt_goes_with_its_run",
        ),
    ]
