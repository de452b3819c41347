"""What stood for the variables of a run's prompts; conversations and spending found by their time."""

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [("conversations", "0014_members_in_sets")]

    operations: ClassVar = [
        migrations.AlterModelOptions(
            "spend", options={"verbose_name": "spending", "verbose_name_plural": "spending"}
        ),
        migrations.AlterModelOptions("thread", options={"verbose_name": "conversation"}),
        migrations.AlterModelOptions("interrupt", options={"verbose_name": "approval"}),
        migrations.AddField(
            "run",
            "prompt_values",
            models.JSONField(
                blank=True,
                editable=False,
                help_text="What stood for the prompts' variables.",
                null=True,
            ),
        ),
        migrations.AddIndex("spend", models.Index(fields=["day"], name="spend_by_day")),
        migrations.AddIndex(
            "thread", models.Index(fields=["-updated_at", "-id"], name="thread_by_time")
        ),
    ]
