"""No exercise was changed before it was made: the database's clock told one time, ours the other."""

from typing import ClassVar

from django.db import migrations, models
from django.db.models.functions import Now
from django.utils import timezone


class Migration(migrations.Migration):
    dependencies: ClassVar = [("agents", "0008_binding_prompt")]

    operations: ClassVar = [
        migrations.AlterField(
            "exercise",
            "created_at",
            models.DateTimeField(db_default=Now(), default=timezone.now, editable=False),
        ),
        migrations.RunSQL(
            "UPDATE agents_exercise SET updated_at = created_at WHERE updated_at < created_at",
            migrations.RunSQL.noop,
        ),
    ]
