"""A run takes its messages along in the database itself: erasing them first costs a third more."""

from typing import ClassVar

from django.db import migrations, models
from django.db.models.deletion import CASCADE


class Migration(migrations.Migration):
    dependencies: ClassVar = [("conversations", "0016_metrics_due")]

    operations: ClassVar = [
        migrations.AlterField(
            "message",
            "run",
            models.ForeignKey(
                blank=True,
                db_constraint=False,
                db_index=False,
                null=True,
                on_delete=CASCADE,
                related_name="messages",
                to="conversations.run",
            ),
        ),
        migrations.RunSQL(
            "ALTER TABLE conversations_message ADD CONSTRAINT message_goes_with_its_run "
            "FOREIGN KEY (run_id) REFERENCES conversations_run (id) ON DELETE CASCADE",
            "ALTER TABLE conversations_message DROP CONSTRAINT message_goes_with_its_run",
        ),
    ]
