"""MCP servers."""

from typing import ClassVar

import django.contrib.postgres.fields
import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

import prompts.addresses


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("agents", "0004_tool_policy"),
        ("prompts", "0005_prompt_deleted"),
    ]

    operations: ClassVar = [
        migrations.CreateModel(
            name="McpServer",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "label",
                    models.CharField(
                        help_text="Stands before the names of its tools: LABEL__TOOL.",
                        max_length=32,
                        unique=True,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^[a-z0-9](?:_?[a-z0-9-])*\\Z",
                                "Use small letters, digits, - and single _, for example my-files.",
                            )
                        ],
                    ),
                ),
                (
                    "transport",
                    models.CharField(
                        choices=[
                            ("streamable_http", "streamable HTTP"),
                            ("sse", "SSE (older servers)"),
                            ("stdio", "stdio (a program on this machine)"),
                        ],
                        default="streamable_http",
                        max_length=32,
                    ),
                ),
                (
                    "url",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="For example https://mcp.example.com/mcp",
                        max_length=500,
                        validators=[prompts.addresses.http_address],
                        verbose_name="URL",
                    ),
                ),
                (
                    "command",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="For stdio; MCP_STDIO_COMMANDS must allow it.",
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
                    "all_tools",
                    models.BooleanField(
                        default=False,
                        help_text="Offer every tool of the server, also those it gets later.",
                    ),
                ),
                (
                    "allowed_tools",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=200),
                        blank=True,
                        default=list,
                        help_text="The server's own names. None here: none is offered.",
                        size=None,
                    ),
                ),
                (
                    "requires_approval",
                    models.BooleanField(
                        default=False,
                        help_text="Each call must be approved, unless a tool's policy says otherwise.",
                    ),
                ),
                (
                    "timeout_s",
                    models.PositiveIntegerField(
                        default=60,
                        help_text="Seconds.",
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(600),
                        ],
                        verbose_name="time-out of a call",
                    ),
                ),
                ("is_active", models.BooleanField(default=True)),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                ("updated_at", models.DateTimeField(auto_now=True)),
                (
                    "env",
                    models.ForeignKey(
                        blank=True,
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="prompts.secret",
                    ),
                ),
                (
                    "headers",
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
                "verbose_name": "MCP server",
                "ordering": ["label"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("transport__in", ["streamable_http", "sse", "stdio"])),
                        name="mcpserver_transport_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("transport", "stdio"), models.Q(("command", ""), _negated=True)),
                            models.Q(
                                models.Q(("transport", "stdio"), _negated=True),
                                models.Q(("url", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="mcpserver_has_address",
                    ),
                ],
            },
        ),
    ]
