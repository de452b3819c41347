"""Endpoints without a key, and what a model can do."""

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("prompts", "0002_versions_never_change"),
    ]

    operations: ClassVar = [
        migrations.AddField(
            model_name="endpoint",
            name="needs_key",
            field=models.BooleanField(
                default=True,
                help_text="Off for a model server that asks for none, such as Ollama or vLLM at home.",
                verbose_name="needs a key",
            ),
        ),
        migrations.AddField(
            model_name="modelmapping",
            name="supports_tools",
            field=models.BooleanField(default=True, help_text="Every candidate can call tools."),
        ),
        migrations.AddField(
            model_name="modelmapping",
            name="supports_vision",
            field=models.BooleanField(
                default=False, help_text="Every candidate takes images beside text."
            ),
        ),
    ]
