"""Feedback on runs; its run takes it along when it is deleted."""

from typing import ClassVar

import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

import conversations.identifiers


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("conversations", "0009_usage_and_spending"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations: ClassVar = [
        migrations.CreateModel(
            name="Feedback",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=conversations.identifiers.uuid7, primary_key=True, serialize=False
                    ),
                ),
                (
                    "score",
                    models.SmallIntegerField(help_text="-1 is bad, 0 is neither, 1 is good."),
                ),
                ("comment", models.TextField(blank=True, db_default="", default="")),
                (
                    "tags",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=50), blank=True, default=list, size=None
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "updated_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "run",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="feedback",
                        to="conversations.run",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="feedback",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "feedback",
                "indexes": [
                    models.Index(fields=["user"], name="feedback_of_user"),
                    models.Index(fields=["updated_at"], name="feedback_by_time"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("run", "user"), name="one_feedback_per_user_and_run"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("score__in", (-1, 0, 1))), name="feedback_score_known"
                    ),
                ],
            },
        ),
        migrations.RunSQL(
            "ALTER TABLE conversations_feedback ADD CONSTRAINT feedback_goes_with_its_run "
            "FOREIGN KEY (run_id) REFERENCES conversations_run (id) ON DELETE CASCADE",
            "ALTER TABLE conversations_feedback DROP CONSTRAINT feedback_goes_with_its_run",
        ),
    ]
