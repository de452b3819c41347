"""Which worker alone may take a run: the one that holds its runner's connection."""

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [("conversations", "0012_thread_summary")]

    operations: ClassVar = [
        migrations.AddField(
            "run",
            "for_worker",
            models.CharField(
                blank=True,
                db_default="",
                default="",
                editable=False,
                help_text="The worker that holds the connection of its runner: then no other takes the "
                "run.",
                max_length=200,
            ),
        ),
    ]
