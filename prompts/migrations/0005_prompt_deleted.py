"""Deleted prompts stay for the runs that used them."""

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("prompts", "0004_tiers_and_quotas"),
    ]

    operations: ClassVar = [
        migrations.AddField(
            model_name="prompt",
            name="deleted_at",
            field=models.DateTimeField(blank=True, editable=False, null=True),
        ),
    ]
