"""What runs cost, by model; and what accounts have spent, by day."""

from typing import ClassVar

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("conversations", "0008_interrupts"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations: ClassVar = [
        migrations.AddField(
            model_name="run",
            name="cache_write_tokens",
            field=models.IntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name="run",
            name="cost_usd",
            field=models.DecimalField(
                blank=True, decimal_places=10, max_digits=24, null=True, verbose_name="cost (USD)"
            ),
        ),
        migrations.AddField(
            model_name="run",
            name="model_usage",
            field=models.JSONField(
                blank=True,
                db_default=[],
                default=list,
                help_text="Calls, tokens and cost of each model.",
            ),
        ),
        migrations.AddField(
            model_name="run",
            name="unpriced_tokens",
            field=models.IntegerField(
                db_default=0, default=0, help_text="Of input and output: those that the cost leaves out."
            ),
        ),
        migrations.CreateModel(
            name="Spend",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("day", models.DateField()),
                ("shard", models.SmallIntegerField()),
                ("runs", models.BigIntegerField(db_default=0, default=0)),
                ("input_tokens", models.BigIntegerField(db_default=0, default=0)),
                ("output_tokens", models.BigIntegerField(db_default=0, default=0)),
                ("unpriced_tokens", models.BigIntegerField(db_default=0, default=0)),
                (
                    "cost_usd",
                    models.DecimalField(
                        blank=True,
                        decimal_places=10,
                        max_digits=30,
                        null=True,
                        verbose_name="cost (USD)",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        blank=True,
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="spending",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("owner__isnull", False)),
                        fields=("owner", "day", "shard"),
                        name="one_spend_per_owner_day_shard",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("owner__isnull", True)),
                        fields=("day", "shard"),
                        name="one_spend_per_day_shard",
                    ),
                ],
            },
        ),
    ]
