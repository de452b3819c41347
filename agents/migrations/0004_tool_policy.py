"""What staff decide about tools: on or off, for whom, and whether calls need approval."""

from typing import ClassVar

import django.core.validators
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("agents", "0003_library_versions"),
        ("prompts", "0005_prompt_deleted"),
    ]

    operations: ClassVar = [
        migrations.CreateModel(
            name="ToolPolicy",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "tool",
                    models.CharField(
                        help_text="Its name, as runs show it.", max_length=200, unique=True
                    ),
                ),
                ("enabled", models.BooleanField(default=True)),
                (
                    "requires_approval",
                    models.BooleanField(
                        blank=True,
                        help_text="Whether each call must be approved. Unknown: as its maker has it.",
                        null=True,
                    ),
                ),
                (
                    "allowed_to",
                    models.CharField(
                        choices=[
                            ("everyone", "everyone"),
                            ("staff", "staff"),
                            ("tier", "a tier and those above it"),
                        ],
                        default="everyone",
                        max_length=16,
                    ),
                ),
                (
                    "expires_after_s",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Seconds in which a call can be approved. Empty: APPROVAL_TTL_S.",
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(31536000),
                        ],
                        verbose_name="approval expires after",
                    ),
                ),
                (
                    "tier",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="prompts.tier",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "tool policies",
                "ordering": ["tool"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("allowed_to__in", ["everyone", "staff", "tier"])),
                        name="toolpolicy_audience_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("tier__isnull", False),
                            models.Q(("allowed_to", "tier"), _negated=True),
                            _connector="OR",
                        ),
                        name="toolpolicy_tier_named",
                        violation_error_message="Name the tier.",
                    ),
                ],
            },
        ),
    ]
