"""How a candidate is asked, how much its models read, and how images reach them."""

from typing import ClassVar

import django.contrib.postgres.fields
import django.core.validators
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [("prompts", "0007_labels_and_splits")]

    operations: ClassVar = [
        migrations.AddField(
            "endpoint",
            "images_by_url",
            models.BooleanField(
                default=False,
                help_text="The provider fetches images by signed URL, so PUBLIC_URL must reach here "
                "from there. Off: they are sent inside the request.",
                verbose_name="images by URL",
            ),
        ),
        migrations.AddField(
            "modelmapping",
            "context_tokens",
            models.PositiveIntegerField(
                blank=True,
                help_text="Tokens that the smallest candidate takes, answer included; empty: "
                "CONTEXT_TOKENS.",
                null=True,
                validators=[
                    django.core.validators.MinValueValidator(1000),
                    django.core.validators.MaxValueValidator(100000000),
                ],
                verbose_name="context size",
            ),
        ),
        migrations.AlterField(
            "modelcandidate",
            "max_tokens",
            models.PositiveIntegerField(
                blank=True,
                help_text="The most that any request gets; empty: as the provider likes.",
                null=True,
                validators=[django.core.validators.MinValueValidator(1)],
            ),
        ),
        migrations.AddField(
            "modelcandidate",
            "top_p",
            models.FloatField(
                blank=True,
                null=True,
                validators=[
                    django.core.validators.MinValueValidator(0.001),
                    django.core.validators.MaxValueValidator(1),
                ],
                verbose_name="top p",
            ),
        ),
        *(
            migrations.AddField(
                "modelcandidate",
                name,
                models.FloatField(
                    blank=True,
                    null=True,
                    validators=[
                        django.core.validators.MinValueValidator(-2),
                        django.core.validators.MaxValueValidator(2),
                    ],
                ),
            )
            for name in ("frequency_penalty", "presence_penalty")
        ),
        migrations.AddField(
            "modelcandidate",
            "stop",
            django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(max_length=256),
                blank=True,
                default=list,
                help_text="Texts at which the answer ends, comma-separated.",
                size=16,
            ),
        ),
        migrations.AddField("modelcandidate", "seed", models.IntegerField(blank=True, null=True)),
        migrations.AddField(
            "modelcandidate",
            "reasoning_effort",
            models.CharField(
                blank=True,
                choices=[
                    ("minimal", "Minimal"),
                    ("low", "Low"),
                    ("medium", "Medium"),
                    ("high", "High"),
                ],
                default="",
                max_length=16,
            ),
        ),
        migrations.AddField(
            "modelcandidate",
            "reasoning_budget",
            models.PositiveIntegerField(
                blank=True,
                help_text="Tokens it may think; the wires of OpenAI know efforts only.",
                null=True,
                validators=[
                    django.core.validators.MinValueValidator(1),
                    django.core.validators.MaxValueValidator(1000000),
                ],
            ),
        ),
        migrations.AddConstraint(
            "modelcandidate",
            models.CheckConstraint(
                condition=models.Q(
                    ("reasoning_effort", ""),
                    ("reasoning_effort__in", ["minimal", "low", "medium", "high"]),
                    _connector="OR",
                ),
                name="candidate_effort_known",
            ),
        ),
    ]
