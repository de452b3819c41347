"""Which conversations hold what was said in others, so that erasing a user follows the copies.

Re-runs that are there already are found by their mark, once through all runs: those of staff who have
left are among them. A mark is a client's word too, so only what is an id counts.
"""

from typing import ClassVar

from django.db import migrations, models
from django.db.models.deletion import DO_NOTHING

_FIND = """
WITH RECURSIVE marked AS MATERIALIZED (
    SELECT thread_id, request->'metadata'->>'rerun_of' AS original FROM conversations_run
    WHERE request->'metadata' ? 'rerun_of'
), copied AS (
    SELECT DISTINCT marked.thread_id, source.id AS source_id, source.owner_id
    FROM marked
    JOIN conversations_run run ON run.id = CASE WHEN original ~ '^[0-9a-f]{32}$' THEN original::uuid END
    JOIN conversations_thread source ON source.id = run.thread_id
    WHERE source.id <> marked.thread_id
), lineage AS (
    SELECT * FROM copied
    UNION
    SELECT lineage.thread_id, further.source_id, further.owner_id
    FROM lineage JOIN copied further ON further.thread_id = lineage.source_id
)
INSERT INTO conversations_threadcopy (thread_id, source_id, owner_id)
SELECT thread_id, source_id, owner_id FROM lineage WHERE source_id <> thread_id
"""


class Migration(migrations.Migration):
    dependencies: ClassVar = [("conversations", "0017_messages_go_with_their_run")]

    operations: ClassVar = [
        migrations.CreateModel(
            name="ThreadCopy",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "source_id",
                    models.UUIDField(help_text="The conversation that it was copied from."),
                ),
                ("owner_id", models.UUIDField(help_text="Whose that one is.")),
                (
                    "thread",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=DO_NOTHING,
                        related_name="+",
                        to="conversations.thread",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["source_id"], name="copy_of_thread"),
                    models.Index(fields=["owner_id"], name="copy_of_owner"),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("thread", "source_id"), name="one_copy_per_source")
                ],
            },
        ),
        migrations.RunSQL(
            "ALTER TABLE conversations_threadcopy ADD CONSTRAINT copy_goes_with_its_thread "
            "FOREIGN KEY (thread_id) REFERENCES conversations_thread (id) ON DELETE CASCADE",
            migrations.RunSQL.noop,
        ),
        migrations.RunSQL(_FIND, migrations.RunSQL.noop),
    ]
