"""Runs of which nothing that was said is kept once they have ended."""

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [("conversations", "0021_branches")]

    operations: ClassVar = [
        migrations.AddField(
            "run",
            "stored",
            models.BooleanField(
                db_default=True,
                default=True,
                editable=False,
                help_text="Else nothing that was said stays once it has ended: its numbers alone.",
            ),
        ),
    ]
