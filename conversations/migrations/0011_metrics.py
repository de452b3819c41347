"""Rollups, and triggers that mark the hours which a deletion or a judgement has changed."""

from typing import ClassVar

import django.contrib.postgres.fields
import django.db.models.fields.json
import django.db.models.functions.datetime
from django.db import migrations, models

from conversations.metrics import analytics_views

GRAINS = [
    ("hour", "Hour"),
    ("day", "Day"),
    ("dt", "day, all together"),
    ("dm", "day by model"),
    ("dp", "day by prompt versions"),
    ("dd", "day by dialect"),
    ("dr", "day by runner"),
]
MARKS = """
CREATE FUNCTION conversations_mark_judged() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO conversations_stalehour (at)
    SELECT date_trunc('hour', created_at, 'UTC') FROM conversations_run
    WHERE id = CASE WHEN TG_OP = 'DELETE' THEN OLD.run_id ELSE NEW.run_id END
    ON CONFLICT (at) DO UPDATE SET marks = conversations_stalehour.marks + 1;
    RETURN NULL;
END $$;
CREATE TRIGGER feedback_marks_its_hour AFTER INSERT OR UPDATE OR DELETE ON conversations_feedback
    FOR EACH ROW EXECUTE FUNCTION conversations_mark_judged();

CREATE FUNCTION conversations_mark_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM conversations_threadday WHERE (owner_id, thread_id) IN (
        SELECT owner_id, thread_id FROM gone);
    INSERT INTO conversations_stalehour (at)
    SELECT DISTINCT date_trunc('hour', created_at, 'UTC') FROM gone ORDER BY 1
    ON CONFLICT (at) DO UPDATE SET marks = conversations_stalehour.marks + 1;
    RETURN NULL;
END $$;
CREATE TRIGGER run_marks_its_hour_when_deleted AFTER DELETE ON conversations_run
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION conversations_mark_deleted();

ALTER TABLE conversations_reconnect ADD CONSTRAINT reconnect_goes_with_its_run
    FOREIGN KEY (run_id) REFERENCES conversations_run (id) ON DELETE CASCADE;
"""
NO_MARKS = """
ALTER TABLE conversations_reconnect DROP CONSTRAINT reconnect_goes_with_its_run;
DROP TRIGGER run_marks_its_hour_when_deleted ON conversations_run;
DROP TRIGGER feedback_marks_its_hour ON conversations_feedback;
DROP FUNCTION conversations_mark_deleted();
DROP FUNCTION conversations_mark_judged();
"""


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("conversations", "0010_feedback"),
    ]

    operations: ClassVar = [
        migrations.CreateModel(
            name="Reconnect",
            fields=[
                ("run_id", models.UUIDField(primary_key=True, serialize=False)),
                ("times", models.IntegerField()),
            ],
            options={
                "db_table": "conversations_reconnect",
            },
        ),
        migrations.CreateModel(
            name="RunRollup",
            fields=[
                ("grain", models.CharField(choices=GRAINS, max_length=4)),
                ("bucket", models.DateTimeField(help_text="When the hour or day begins, in TIME_ZONE.")),
                ("model", models.CharField(max_length=200)),
                (
                    "prompt_versions",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.IntegerField(), size=None
                    ),
                ),
                ("dialect", models.CharField(max_length=32)),
                ("runner", models.CharField(max_length=64)),
                (
                    "slots",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.IntegerField(), size=None
                    ),
                ),
                (
                    "counts",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.IntegerField(), size=None
                    ),
                ),
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "grain",
                        "bucket",
                        "model",
                        "prompt_versions",
                        "dialect",
                        "runner",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("runs", models.BigIntegerField(db_default=0)),
                ("queued", models.BigIntegerField(db_default=0)),
                ("running", models.BigIntegerField(db_default=0)),
                ("completed", models.BigIntegerField(db_default=0)),
                ("failed", models.BigIntegerField(db_default=0)),
                ("cancelled", models.BigIntegerField(db_default=0)),
                ("timed_out", models.BigIntegerField(db_default=0)),
                ("conversations_begun", models.BigIntegerField(db_default=0)),
                ("input_tokens", models.BigIntegerField(db_default=0)),
                ("output_tokens", models.BigIntegerField(db_default=0)),
                ("cached_tokens", models.BigIntegerField(db_default=0)),
                ("reasoning_tokens", models.BigIntegerField(db_default=0)),
                ("cost_usd", models.DecimalField(db_default=0, decimal_places=10, max_digits=24)),
                ("unpriced_tokens", models.BigIntegerField(db_default=0)),
                ("duration_ms", models.BigIntegerField(db_default=0)),
                ("queue_wait_ms", models.BigIntegerField(db_default=0)),
                ("first_token_ms", models.BigIntegerField(db_default=0)),
                ("speed", models.FloatField(db_default=0.0)),
                ("reconnects", models.BigIntegerField(db_default=0)),
                ("feedback", models.BigIntegerField(db_default=0)),
                ("feedback_good", models.BigIntegerField(db_default=0)),
                ("feedback_bad", models.BigIntegerField(db_default=0)),
                ("errors", models.JSONField(db_default={})),
            ],
            options={
                "db_table": "conversations_runrollup",
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="StaleHour",
            fields=[
                ("at", models.DateTimeField(primary_key=True, serialize=False)),
                ("marks", models.BigIntegerField(db_default=1)),
            ],
            options={
                "db_table": "conversations_stalehour",
            },
        ),
        migrations.CreateModel(
            name="StepRollup",
            fields=[
                ("grain", models.CharField(choices=GRAINS, max_length=4)),
                ("bucket", models.DateTimeField(help_text="When the hour or day begins, in TIME_ZONE.")),
                ("model", models.CharField(max_length=200)),
                (
                    "prompt_versions",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.IntegerField(), size=None
                    ),
                ),
                ("dialect", models.CharField(max_length=32)),
                ("runner", models.CharField(max_length=64)),
                (
                    "slots",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.IntegerField(), size=None
                    ),
                ),
                (
                    "counts",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.IntegerField(), size=None
                    ),
                ),
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "grain",
                        "bucket",
                        "kind",
                        "name",
                        "model",
                        "prompt_versions",
                        "dialect",
                        "runner",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("kind", models.CharField(choices=[("stage", "stage"), ("tool", "tool")], max_length=8)),
                ("name", models.TextField()),
                ("calls", models.BigIntegerField(db_default=0)),
                ("succeeded", models.BigIntegerField(db_default=0)),
                ("total_ms", models.BigIntegerField(db_default=0)),
            ],
            options={
                "db_table": "conversations_steprollup",
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="VersionName",
            fields=[
                ("version_id", models.IntegerField(primary_key=True, serialize=False)),
                ("kind", models.CharField(max_length=64)),
                ("name", models.CharField(max_length=200)),
                ("number", models.IntegerField()),
            ],
            options={
                "db_table": "conversations_versionname",
            },
        ),
        migrations.AddField(
            model_name="message",
            name="tool_ok",
            field=models.GeneratedField(
                db_persist=True,
                expression=django.db.models.fields.json.KeyTextTransform(
                    "ok", django.db.models.fields.json.KeyTextTransform("tool_agent_output", "metadata")
                ),
                output_field=models.TextField(),
            ),
        ),
        migrations.AddField(
            model_name="run",
            name="runner",
            field=models.CharField(blank=True, db_default="", default="", max_length=64),
        ),
        migrations.CreateModel(
            name="Metrics",
            fields=[
                ("id", models.SmallIntegerField(default=1, primary_key=True, serialize=False)),
                (
                    "rolled_until",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("time_zone", models.CharField(max_length=64)),
            ],
            options={
                "verbose_name_plural": "metrics",
                "default_permissions": ("view",),
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("id", 1)), name="metrics_in_one_row")
                ],
            },
        ),
        migrations.CreateModel(
            name="ThreadDay",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "day",
                        "owner_id",
                        "thread_id",
                        "model",
                        "prompt_versions",
                        "dialect",
                        "runner",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("day", models.DateTimeField()),
                ("owner_id", models.UUIDField()),
                ("thread_id", models.UUIDField()),
                ("model", models.CharField(max_length=200)),
                (
                    "prompt_versions",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.IntegerField(), size=None
                    ),
                ),
                ("dialect", models.CharField(max_length=32)),
                ("runner", models.CharField(max_length=64)),
                ("runs", models.BigIntegerField(db_default=0)),
                ("completed", models.BigIntegerField(db_default=0)),
                ("failed", models.BigIntegerField(db_default=0)),
                ("cancelled", models.BigIntegerField(db_default=0)),
                ("input_tokens", models.BigIntegerField(db_default=0)),
                ("output_tokens", models.BigIntegerField(db_default=0)),
                ("cached_tokens", models.BigIntegerField(db_default=0)),
                ("cost_usd", models.DecimalField(db_default=0, decimal_places=10, max_digits=24)),
            ],
            options={
                "db_table": "conversations_threadday",
                "indexes": [models.Index(fields=["owner_id", "thread_id"], name="threadday_of_owner")],
            },
        ),
        migrations.RunSQL(MARKS, NO_MARKS),
        migrations.RunSQL(analytics_views.create_sql(), analytics_views.drop_sql()),
    ]
