"""Staff see which runners of a plugin runtime are passed over, and why."""

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [("agents", "0009_exercise_dates")]

    operations: ClassVar = [
        migrations.AddField(
            "pluginruntime",
            "passed_over",
            models.JSONField(
                db_default=models.Value([], models.JSONField()), default=list, editable=False
            ),
        ),
    ]
