"""Which files are stored, and an index by which a message that names a file is found."""

import uuid
from typing import ClassVar

from django.contrib.postgres.indexes import GinIndex, OpClass
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models
from django.db.models.fields.json import KeyTransform
from django.db.models.functions import Now


class Migration(migrations.Migration):
    atomic = False
    dependencies: ClassVar = [("conversations", "0005_search")]
    operations: ClassVar = [
        migrations.CreateModel(
            "Attachment",
            [
                ("id", models.UUIDField(default=uuid.uuid4, primary_key=True, serialize=False)),
                ("owner_id", models.UUIDField()),
                (
                    "thread",
                    models.CharField(
                        help_text="As in the path: _ where none was given.", max_length=128
                    ),
                ),
                ("bucket", models.CharField(max_length=63)),
                ("path", models.CharField(max_length=500, unique=True)),
                ("created_at", models.DateTimeField(db_default=Now())),
                (
                    "check_at",
                    models.DateTimeField(help_text="When upkeep looks whether a message names it."),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["owner_id", "thread"], name="attachment_of_owner"),
                    models.Index(fields=["check_at"], name="attachment_to_check"),
                ]
            },
        ),
        AddIndexConcurrently(
            "message",
            GinIndex(
                OpClass(KeyTransform("user_message_attachments", "metadata"), "jsonb_path_ops"),
                condition=models.Q(("metadata__has_key", "user_message_attachments")),
                name="message_by_attachment",
            ),
        ),
    ]
