"""Runs found by a value of their `metadata`, which clients send to find them again."""

from typing import ClassVar

import django.contrib.postgres.indexes
from django.db import migrations, models
from django.db.models.fields.json import KeyTransform


class Migration(migrations.Migration):
    dependencies: ClassVar = [("conversations", "0019_run_losses")]

    operations: ClassVar = [
        migrations.AddIndex(
            "run",
            django.contrib.postgres.indexes.GinIndex(
                KeyTransform("metadata", "request"),
                condition=models.Q(("request__has_key", "metadata")),
                name="run_by_metadata",
            ),
        ),
    ]
