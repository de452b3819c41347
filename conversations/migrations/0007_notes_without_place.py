"""A stage's note is a message without a place, so that what is said counts without gaps."""

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [("conversations", "0006_attachments")]
    operations: ClassVar = [
        migrations.AlterField(
            model_name="message",
            name="seq",
            field=models.IntegerField(
                null=True,
                help_text="Counts from 1 within the thread; a stage's note has no place in it.",
            ),
        ),
    ]
