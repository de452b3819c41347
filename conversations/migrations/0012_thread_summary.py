"""What of a thread models no longer read, in short."""

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [("conversations", "0011_metrics")]

    operations: ClassVar = [
        migrations.AddField(
            "thread",
            "summary",
            models.JSONField(
                blank=True,
                editable=False,
                help_text="What models no longer read, in short.",
                null=True,
            ),
        ),
    ]
