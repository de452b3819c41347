"""Plugin runtimes."""

import uuid
from typing import ClassVar

import django.contrib.postgres.fields
import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

import agents.models.plugins


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("agents", "0006_runner_host"),
        ("prompts", "0005_prompt_deleted"),
    ]

    operations: ClassVar = [
        migrations.CreateModel(
            name="PluginRuntime",
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
                        unique=True,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^[a-z0-9](?:[a-z0-9-])*\\Z",
                                "Use small letters, digits and -, for example main.",
                            )
                        ],
                    ),
                ),
                ("identity", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                (
                    "transport",
                    models.CharField(
                        choices=[
                            ("websocket", "WebSocket (a runtime that runs somewhere)"),
                            ("stdio", "stdio (a program on this machine)"),
                        ],
                        default="websocket",
                        max_length=16,
                    ),
                ),
                (
                    "url",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="For example ws://127.0.0.1:5400/control/ws",
                        max_length=500,
                        validators=[agents.models.plugins.websocket_address],
                        verbose_name="URL",
                    ),
                ),
                (
                    "command",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="For stdio; RUNNER_COMMANDS must allow it.",
                        max_length=500,
                    ),
                ),
                (
                    "args",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=1000),
                        blank=True,
                        default=list,
                        size=None,
                        verbose_name="arguments",
                    ),
                ),
                (
                    "directory",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="For stdio: where it works; its plugins are in data/plugins there.",
                        max_length=500,
                    ),
                ),
                (
                    "profile",
                    models.CharField(
                        choices=[
                            ("auto", "find out"),
                            ("released", "released (langbot-plugin 0.7 and its like)"),
                            ("v1", "v1 (the first generation of the runner protocol)"),
                        ],
                        default="auto",
                        max_length=16,
                    ),
                ),
                ("is_active", models.BooleanField(default=True)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("waiting", "not connected yet"),
                            ("connected", "connected"),
                            ("failed", "failed"),
                        ],
                        default="waiting",
                        editable=False,
                        max_length=16,
                    ),
                ),
                ("problem", models.CharField(blank=True, default="", editable=False, max_length=500)),
                ("spoken", models.CharField(blank=True, default="", editable=False, max_length=16)),
                ("runners", models.JSONField(default=list, editable=False)),
                ("seen_at", models.DateTimeField(editable=False, null=True)),
                ("held_by", models.CharField(blank=True, default="", editable=False, max_length=200)),
                ("held_until", models.DateTimeField(editable=False, null=True)),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                ("updated_at", models.DateTimeField(auto_now=True)),
                (
                    "token",
                    models.ForeignKey(
                        blank=True,
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="prompts.secret",
                    ),
                ),
            ],
            options={
                "verbose_name": "plugin runtime",
                "ordering": ["name"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("transport__in", ["websocket", "stdio"])),
                        name="pluginruntime_transport_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("profile__in", ["auto", "released", "v1"])),
                        name="pluginruntime_profile_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("status__in", ["waiting", "connected", "failed"])),
                        name="pluginruntime_status_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("transport", "stdio"), models.Q(("command", ""), _negated=True)),
                            models.Q(("transport", "websocket"), models.Q(("url", ""), _negated=True)),
                            _connector="OR",
                        ),
                        name="pluginruntime_has_address",
                    ),
                ],
            },
        ),
    ]
