"""Accounts found by how their name or address begins, or by their subject, however many there are."""

from typing import ClassVar

from django.contrib.postgres.indexes import OpClass
from django.db import migrations, models
from django.db.models.functions import Upper


class Migration(migrations.Migration):
    dependencies: ClassVar = [("accounts", "0001_initial")]

    operations: ClassVar = [
        migrations.AddIndex(
            "user",
            models.Index(OpClass(Upper("username"), "text_pattern_ops"), name="user_named_like"),
        ),
        migrations.AddIndex(
            "user",
            models.Index(OpClass(Upper("email"), "text_pattern_ops"), name="user_addressed_like"),
        ),
        migrations.AddIndex(
            "user",
            models.Index(
                fields=["subject"],
                condition=models.Q(subject__isnull=False),
                name="user_by_subject",
            ),
        ),
    ]
