"""Every account has a secret of its own, of which the ids of the threads it names are made.

The default is the database's, so each account that is there gets one of its own, and a process of the
release before can still make accounts. Those that are there have named threads by their own id.
"""

from typing import ClassVar

from django.contrib.postgres.functions import RandomUUID
from django.db import migrations, models

_NAMESPACE = "What the ids of the threads it names are made of; a secret, unlike its own id."
_NAMED = "Threads that it named are made of its own id: it is older than its namespace."


class Migration(migrations.Migration):
    dependencies: ClassVar = [("accounts", "0002_users_found_by_beginning")]

    operations: ClassVar = [
        migrations.AddField(
            "user",
            "namespace",
            models.UUIDField(db_default=RandomUUID(), editable=False, help_text=_NAMESPACE),
        ),
        migrations.AddField(
            "user",
            "named_by_id",
            models.BooleanField(db_default=True, editable=False, help_text=_NAMED),
        ),
        migrations.AlterField(
            "user",
            "named_by_id",
            models.BooleanField(db_default=False, editable=False, help_text=_NAMED),
        ),
    ]
