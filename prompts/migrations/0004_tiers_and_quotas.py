"""Tiers of accounts, and runs a day on a model family."""

from typing import ClassVar

import django.core.validators
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("accounts", "0001_initial"),
        ("prompts", "0003_abilities_and_keyless"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations: ClassVar = [
        migrations.CreateModel(
            name="Tier",
            fields=[
                (
                    "name",
                    models.CharField(
                        max_length=32,
                        primary_key=True,
                        serialize=False,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^[a-z0-9_-]+\\Z", "Use small letters, digits, _ and - only."
                            )
                        ],
                    ),
                ),
                ("rank", models.PositiveIntegerField(help_text="From low to high.", unique=True)),
            ],
            options={
                "ordering": ["rank"],
            },
        ),
        migrations.AddField(
            model_name="modelmapping",
            name="family",
            field=models.CharField(
                blank=True,
                default="",
                help_text="Models of one family share a daily quota; empty: the model alone.",
                max_length=100,
            ),
        ),
        migrations.AlterField(
            model_name="modelmapping",
            name="required_tier",
            field=models.CharField(
                blank=True,
                default="",
                help_text="Who is below it neither sees nor uses it.",
                max_length=32,
            ),
        ),
        migrations.CreateModel(
            name="Entitlement",
            fields=[
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("expires_at", models.DateTimeField(blank=True, null=True)),
                (
                    "tier",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="prompts.tier"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="QuotaUse",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("family", models.CharField(max_length=100)),
                ("day", models.DateField()),
                ("used", models.PositiveIntegerField()),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("user", "family"), name="one_use_per_user_and_family"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Quota",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("family", models.CharField(help_text="A model's key, or its family.", max_length=100)),
                ("runs_per_day", models.PositiveIntegerField(help_text="0 refuses every run.")),
                (
                    "user",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "tier",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="prompts.tier",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("user__isnull", True), ("tier__isnull", True), _connector="OR"
                        ),
                        name="quota_for_user_or_tier",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("tier__isnull", True), ("user__isnull", True)),
                        fields=("family",),
                        name="one_quota_for_everybody",
                    ),
                    models.UniqueConstraint(fields=("family", "user"), name="one_quota_per_user"),
                    models.UniqueConstraint(fields=("family", "tier"), name="one_quota_per_tier"),
                ],
            },
        ),
    ]
