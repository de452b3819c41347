"""State of the scope `binding` (seed 003 §7.7)."""

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [("agents", "0010_runners_passed_over")]

    operations: ClassVar = [
        migrations.RemoveConstraint("hoststate", "hoststate_scope_known"),
        migrations.AlterField(
            "hoststate",
            "scope",
            models.CharField(
                choices=[
                    ("conversation", "Conversation"),
                    ("actor", "Actor"),
                    ("subject", "Subject"),
                    ("runner", "Runner"),
                    ("binding", "Binding"),
                ],
                max_length=16,
            ),
        ),
        migrations.AddConstraint(
            "hoststate",
            models.CheckConstraint(
                condition=models.Q(scope__in=["conversation", "actor", "subject", "runner", "binding"]),
                name="hoststate_scope_known",
            ),
        ),
    ]
