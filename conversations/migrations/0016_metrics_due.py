"""When a round of adding up metrics is due: kept for all processes together."""

from typing import ClassVar

from django.db import migrations, models
from django.db.models.functions import Now


class Migration(migrations.Migration):
    dependencies: ClassVar = [("conversations", "0015_staff_lists_and_prompt_values")]

    operations: ClassVar = [
        migrations.AddField("metrics", "next_at", models.DateTimeField(db_default=Now())),
    ]
