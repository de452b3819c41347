"""Own prices of models, and budgets."""

from typing import ClassVar

import django.core.validators
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("prompts", "0005_prompt_deleted"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations: ClassVar = [
        migrations.CreateModel(
            name="Budget",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "is_total",
                    models.BooleanField(
                        default=False,
                        help_text="The whole installation's. Off, without user and tier: every one's.",
                        verbose_name="for all accounts together",
                    ),
                ),
                (
                    "usd_per_day",
                    models.DecimalField(
                        blank=True,
                        decimal_places=4,
                        help_text="US dollars. Empty: no limit; 0 refuses every run.",
                        max_digits=14,
                        null=True,
                        validators=[django.core.validators.MinValueValidator(0)],
                    ),
                ),
                (
                    "usd_per_month",
                    models.DecimalField(
                        blank=True,
                        decimal_places=4,
                        help_text="US dollars in a calendar month.",
                        max_digits=14,
                        null=True,
                        validators=[django.core.validators.MinValueValidator(0)],
                    ),
                ),
                (
                    "tokens_per_day",
                    models.PositiveBigIntegerField(
                        blank=True,
                        help_text="Input and output together, whether their price is known or not.",
                        null=True,
                    ),
                ),
                ("tokens_per_month", models.PositiveBigIntegerField(blank=True, null=True)),
                (
                    "is_active",
                    models.BooleanField(
                        default=True,
                        help_text="Off: as if it did not exist; the next one that applies counts.",
                    ),
                ),
            ],
        ),
        migrations.AddField(
            model_name="modelcandidate",
            name="cache_write_price",
            field=models.DecimalField(
                blank=True,
                decimal_places=6,
                help_text="Of input written to the provider's cache. Empty: as other input.",
                max_digits=12,
                null=True,
                validators=[django.core.validators.MinValueValidator(0)],
            ),
        ),
        migrations.AddField(
            model_name="modelcandidate",
            name="cached_input_price",
            field=models.DecimalField(
                blank=True,
                decimal_places=6,
                help_text="Of input read from the provider's cache. Empty: as other input.",
                max_digits=12,
                null=True,
                validators=[django.core.validators.MinValueValidator(0)],
            ),
        ),
        migrations.AddField(
            model_name="modelcandidate",
            name="input_price",
            field=models.DecimalField(
                blank=True,
                decimal_places=6,
                help_text="Own price: USD for a million input tokens. Empty: the published one.",
                max_digits=12,
                null=True,
                validators=[django.core.validators.MinValueValidator(0)],
            ),
        ),
        migrations.AddField(
            model_name="modelcandidate",
            name="output_price",
            field=models.DecimalField(
                blank=True,
                decimal_places=6,
                help_text="Own price: USD for a million output tokens, reasoning among them.",
                max_digits=12,
                null=True,
                validators=[django.core.validators.MinValueValidator(0)],
            ),
        ),
        migrations.AddConstraint(
            model_name="modelcandidate",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("input_price", None), ("output_price", None)),
                    models.Q(("input_price__gte", 0), ("output_price__gte", 0)),
                    _connector="OR",
                ),
                name="own_price_for_input_and_output",
            ),
        ),
        migrations.AddConstraint(
            model_name="modelcandidate",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("cache_write_price", None), ("cached_input_price", None)),
                    ("input_price__isnull", False),
                    _connector="OR",
                ),
                name="own_cache_price_needs_input_price",
            ),
        ),
        migrations.AddField(
            model_name="budget",
            name="tier",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="prompts.tier",
            ),
        ),
        migrations.AddField(
            model_name="budget",
            name="user",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddConstraint(
            model_name="budget",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("tier__isnull", True), ("user__isnull", True)),
                    models.Q(("is_total", False), ("tier__isnull", True), ("user__isnull", False)),
                    models.Q(("is_total", False), ("tier__isnull", False), ("user__isnull", True)),
                    _connector="OR",
                ),
                name="budget_for_one_kind",
                violation_error_message="Choose an account, or a tier, or all together: one of them.",
            ),
        ),
        migrations.AddConstraint(
            model_name="budget",
            constraint=models.UniqueConstraint(
                condition=models.Q(("tier__isnull", True), ("user__isnull", True)),
                fields=("is_total",),
                name="one_budget_for_everybody",
                violation_error_message="There is such a budget already: change that one.",
            ),
        ),
        migrations.AddConstraint(
            model_name="budget",
            constraint=models.UniqueConstraint(
                fields=("user",),
                name="one_budget_per_user",
                violation_error_message="This account has a budget already: change that one.",
            ),
        ),
        migrations.AddConstraint(
            model_name="budget",
            constraint=models.UniqueConstraint(
                fields=("tier",),
                name="one_budget_per_tier",
                violation_error_message="This tier has a budget already: change that one.",
            ),
        ),
    ]
