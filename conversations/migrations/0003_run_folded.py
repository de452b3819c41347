"""Which ended runs are still to be folded, and an index that holds only those."""

from typing import ClassVar

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    dependencies: ClassVar = [("conversations", "0002_event_log")]
    operations: ClassVar = [
        migrations.AddField(
            "run", "folded", models.BooleanField(db_default=False, default=False, editable=False)
        ),
        AddIndexConcurrently(
            "run",
            models.Index(
                condition=models.Q(("finished_at__isnull", False), ("folded", False)),
                fields=["finished_at"],
                name="run_unfolded",
            ),
        ),
    ]
