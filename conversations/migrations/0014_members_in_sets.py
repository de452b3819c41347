"""Who took part in a day, as sets of bits; hours with dimensions added up.

Every hour is added up again by itself, the newest first.
"""

from typing import ClassVar

import django.contrib.postgres.fields
from django.db import migrations, models

import conversations.models.rollups

GRAINS = [
    ("hour", "Hour"),
    ("day", "Day"),
    ("dt", "day, all together"),
    ("dm", "day by model"),
    ("dp", "day by prompt versions"),
    ("dd", "day by dialect"),
    ("dr", "day by runner"),
    ("ht", "hour, all together"),
    ("hm", "hour by model"),
    ("hp", "hour by prompt versions"),
    ("hd", "hour by dialect"),
    ("hr", "hour by runner"),
]
ALL_ARE_STALE = """
INSERT INTO conversations_stalehour (at)
SELECT DISTINCT date_trunc('hour', bucket + late, 'UTC')
FROM conversations_runrollup, (VALUES (interval '0'), (interval '59 minutes')) later(late)
WHERE grain = 'hour' ORDER BY 1
ON CONFLICT (at) DO UPDATE SET marks = conversations_stalehour.marks + 1;
"""
FORGET = """
    DELETE FROM conversations_userordinal WHERE member IN (SELECT owner_id FROM gone)
        AND NOT EXISTS (SELECT FROM conversations_run WHERE owner_id = member);
    DELETE FROM conversations_threadordinal WHERE member IN (SELECT thread_id FROM gone)
        AND NOT EXISTS (SELECT FROM conversations_run WHERE thread_id = member);
"""


def mark_deleted(forget: str) -> str:
    return f"""
CREATE OR REPLACE FUNCTION conversations_mark_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM conversations_threadday WHERE (owner_id, thread_id) IN (
        SELECT owner_id, thread_id FROM gone);
    {forget}
    INSERT INTO conversations_stalehour (at)
    SELECT DISTINCT date_trunc('hour', created_at, 'UTC') FROM gone ORDER BY 1
    ON CONFLICT (at) DO UPDATE SET marks = conversations_stalehour.marks + 1;
    RETURN NULL;
END $$;
"""


def ordinal(name: str) -> migrations.CreateModel:
    return migrations.CreateModel(
        name=name,
        fields=[
            ("ordinal", models.BigAutoField(primary_key=True, serialize=False)),
            ("member", models.UUIDField(unique=True)),
        ],
        options={"db_table": f"conversations_{name.lower()}", "abstract": False},
    )


class Migration(migrations.Migration):
    dependencies: ClassVar = [("conversations", "0013_run_for_worker")]

    operations: ClassVar = [
        ordinal("UserOrdinal"),
        ordinal("ThreadOrdinal"),
        migrations.CreateModel(
            name="MemberSet",
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
                    "pk",
                    models.CompositePrimaryKey(
                        "grain",
                        "bucket",
                        "kind",
                        "model",
                        "prompt_versions",
                        "dialect",
                        "runner",
                        "block",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[("user", "user"), ("conversation", "conversation")], max_length=12
                    ),
                ),
                ("block", models.BigIntegerField(help_text="Which BLOCK ordinals.")),
                ("bits", conversations.models.rollups.BitsField()),
            ],
            options={"db_table": "conversations_memberset", "abstract": False},
        ),
        *(
            migrations.AlterField(name, "grain", models.CharField(choices=GRAINS, max_length=4))
            for name in ("RunRollup", "StepRollup")
        ),
        migrations.RunSQL(mark_deleted(FORGET), mark_deleted("")),
        migrations.RunSQL(ALL_ARE_STALE, migrations.RunSQL.noop),
    ]
