"""Bindings may hold for the runs of one prompt."""

from typing import ClassVar

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("agents", "0007_plugin_runtime"),
        ("prompts", "0005_prompt_deleted"),
    ]

    operations: ClassVar = [
        migrations.AddField(
            "runnerbinding",
            "prompt",
            models.ForeignKey(
                blank=True,
                help_text="Only runs that are told this prompt.",
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="prompts.prompt",
            ),
        ),
    ]
