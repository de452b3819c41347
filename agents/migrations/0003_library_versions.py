"""Published versions of the exercise library."""

from typing import ClassVar

import django.contrib.postgres.fields
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("agents", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations: ClassVar = [
        migrations.CreateModel(
            name="LibraryVersion",
            fields=[
                (
                    "number",
                    models.PositiveIntegerField(editable=False, primary_key=True, serialize=False),
                ),
                ("published_at", models.DateTimeField(editable=False)),
                ("note", models.CharField(blank=True, default="", max_length=500)),
                ("total", models.PositiveIntegerField(editable=False)),
                ("checksum", models.CharField(editable=False, max_length=71)),
                ("content", models.BinaryField()),
                (
                    "added",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=64),
                        default=list,
                        editable=False,
                        size=None,
                    ),
                ),
                (
                    "updated",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=64),
                        default=list,
                        editable=False,
                        size=None,
                    ),
                ),
                (
                    "deleted",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=64),
                        default=list,
                        editable=False,
                        size=None,
                    ),
                ),
                (
                    "published_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["-number"],
            },
        ),
    ]
