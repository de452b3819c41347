"""Finding a message by the id under which clients know it, and a run by the client's own `runId`."""

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [("conversations", "0003_run_folded")]
    operations: ClassVar = [
        migrations.AddIndex(
            model_name="message",
            index=models.Index(
                fields=["thread", "client_id"],
                condition=models.Q(client_id__isnull=False),
                name="message_by_client_id",
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                fields=["owner", "client_run_id"],
                condition=models.Q(client_run_id__isnull=False),
                name="run_by_client_id",
            ),
        ),
    ]
