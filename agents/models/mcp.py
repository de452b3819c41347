"""MCP servers as staff enter them; their headers and variables are sealed secrets."""

from __future__ import annotations

from typing import ClassVar

from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from agents.models.fields import known_choice, optional_text, sealed_secret, text_list
from prompts.addresses import http_address


class McpTransport(models.TextChoices):
    """The transport to a server."""

    STREAMABLE_HTTP = "streamable_http", "streamable HTTP"
    SSE = "sse", "SSE (older servers)"
    STDIO = "stdio", "stdio (a program on this machine)"


class McpServer(models.Model):
    """A server whose tools the models may call as `{label}__{tool}`."""

    label = models.CharField(
        max_length=32,
        unique=True,
        validators=[
            RegexValidator(
                r"^[a-z0-9](?:_?[a-z0-9-])*\Z",
                "Use small letters, digits, - and single _, for example my-files.",
            )
        ],
        help_text="Stands before the names of its tools: LABEL__TOOL.",
    )
    transport = models.CharField(
        max_length=32, choices=McpTransport, default=McpTransport.STREAMABLE_HTTP
    )
    url = optional_text(
        "For example https://mcp.example.com/mcp",
        longest=500,
        verbose_name="URL",
        validators=[http_address],
    )
    command = optional_text("For stdio; MCP_STDIO_COMMANDS must allow it.", longest=500)
    args = text_list(longest=1000, verbose_name="arguments")
    headers = sealed_secret()
    env = sealed_secret()
    all_tools = models.BooleanField(
        default=False, help_text="Offer every tool of the server, also those it gets later."
    )
    allowed_tools = text_list("The server's own names. None here: none is offered.")
    requires_approval = models.BooleanField(
        default=False,
        help_text="Each call must be approved, unless a tool's policy says otherwise.",
    )
    timeout_s = models.PositiveIntegerField(
        "time-out of a call",
        default=60,
        validators=[MinValueValidator(1), MaxValueValidator(600)],
        help_text="Seconds.",
    )
    is_active = models.BooleanField(default=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        verbose_name = "MCP server"
        ordering: ClassVar = ["label"]
        constraints: ClassVar = [
            known_choice("transport", McpTransport, name="mcpserver_transport_known"),
            models.CheckConstraint(
                condition=(Q(transport="stdio") & ~Q(command="")) | (~Q(transport="stdio") & ~Q(url="")),
                name="mcpserver_has_address",
            ),
        ]

    def __str__(self) -> str:
        return self.label
