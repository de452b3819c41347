"""How many workers were lost while they executed a run: after two it is quarantined."""

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [("conversations", "0018_thread_copies")]

    operations: ClassVar = [
        migrations.AddField(
            "run",
            "losses",
            models.SmallIntegerField(
                db_default=0,
                default=0,
                editable=False,
                help_text="How many workers it has lost.",
            ),
        ),
    ]
