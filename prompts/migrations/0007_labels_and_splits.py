"""Labels that point at versions, a split between two versions, and what to roll back to."""

from typing import ClassVar

import django.core.validators
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("prompts", "0006_prices_and_budgets"),
    ]

    operations: ClassVar = [
        migrations.AddField(
            model_name="prompt",
            name="previous_version",
            field=models.ForeignKey(
                blank=True,
                editable=False,
                help_text="What was active before, to roll back to.",
                null=True,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="+",
                to="prompts.promptversion",
            ),
        ),
        migrations.AddField(
            model_name="prompt",
            name="split_version",
            field=models.ForeignKey(
                blank=True,
                editable=False,
                help_text="The version that a part of the threads gets instead of the active one.",
                null=True,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="+",
                to="prompts.promptversion",
            ),
        ),
        migrations.AddField(
            model_name="prompt",
            name="split_percent",
            field=models.PositiveSmallIntegerField(
                db_default=0, default=0, editable=False, help_text="How many of 100 threads get it."
            ),
        ),
        migrations.AddConstraint(
            model_name="prompt",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("split_percent", 0), ("split_version__isnull", True)),
                    models.Q(
                        ("split_percent__gte", 1),
                        ("split_percent__lte", 99),
                        ("split_version__isnull", False),
                    ),
                    _connector="OR",
                ),
                name="prompt_split_whole_or_none",
            ),
        ),
        migrations.CreateModel(
            name="PromptLabel",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "name",
                    models.CharField(
                        max_length=32,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^[a-z0-9][a-z0-9_-]*\\Z", "Use small letters, digits, _ and - only."
                            )
                        ],
                    ),
                ),
                ("updated_at", models.DateTimeField(auto_now=True)),
                (
                    "prompt",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="labels",
                        to="prompts.prompt",
                    ),
                ),
                (
                    "version",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="labels",
                        to="prompts.promptversion",
                    ),
                ),
            ],
            options={
                "ordering": ["name"],
                "constraints": [
                    models.UniqueConstraint(fields=("prompt", "name"), name="one_version_per_label")
                ],
            },
        ),
    ]
