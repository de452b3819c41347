"""Plugin runtimes as staff enter them, and the last known state of their connections."""

from __future__ import annotations

from typing import ClassVar
from uuid import uuid4

from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from agents.models.fields import known_choice, optional_text, sealed_secret, text_list
from prompts.addresses import REFUSED, is_refused_url


class PluginTransport(models.TextChoices):
    """The transport to a runtime."""

    WEBSOCKET = "websocket", "WebSocket (a runtime that runs somewhere)"
    STDIO = "stdio", "stdio (a program on this machine)"


class PluginProfile(models.TextChoices):
    """The generation of the SDK that a runtime speaks (specs/runner-host.md)."""

    AUTO = "auto", "find out"
    RELEASED = "released", "released (langbot-plugin 0.7 and its like)"
    V1 = "v1", "v1 (the first generation of the runner protocol)"


class PluginStatus(models.TextChoices):
    """The state of a connection."""

    WAITING = "waiting", "not connected yet"
    CONNECTED = "connected", "connected"
    FAILED = "failed", "failed"


def websocket_address(value: str) -> None:
    """Raise ValidationError unless it is an allowed ws:// or wss:// address without a password."""
    RegexValidator(
        r"^wss?://[^\s/@?#]+(?:/[^\s@]*)?\Z", "Enter an address such as ws://127.0.0.1:5400/control/ws"
    )(value)
    if len(value) > 500:
        raise ValidationError("At most 500 characters.")
    if is_refused_url(value):
        raise ValidationError(REFUSED)


class PluginRuntime(models.Model):
    """A process that runs plugins; it knows this installation by `identity`, which never changes."""

    name = models.CharField(
        max_length=32,
        unique=True,
        validators=[
            RegexValidator(
                r"^[a-z0-9](?:[a-z0-9-])*\Z", "Use small letters, digits and -, for example main."
            )
        ],
    )
    identity = models.UUIDField(default=uuid4, editable=False, unique=True)
    transport = models.CharField(
        max_length=16, choices=PluginTransport, default=PluginTransport.WEBSOCKET
    )
    url = optional_text(
        "For example ws://127.0.0.1:5400/control/ws",
        longest=500,
        verbose_name="URL",
        validators=[websocket_address],
    )
    command = optional_text("For stdio; RUNNER_COMMANDS must allow it.", longest=500)
    args = text_list(longest=1000, verbose_name="arguments")
    directory = optional_text(
        "For stdio: where it works; its plugins are in data/plugins there.", longest=500
    )
    token = sealed_secret()
    profile = models.CharField(max_length=16, choices=PluginProfile, default=PluginProfile.AUTO)
    is_active = models.BooleanField(default=True)
    status = models.CharField(
        max_length=16, choices=PluginStatus, default=PluginStatus.WAITING, editable=False
    )
    problem = optional_text(longest=500, editable=False)
    spoken = optional_text(longest=16, editable=False)
    runners = models.JSONField(default=list, editable=False)
    passed_over = models.JSONField(
        default=list, db_default=models.Value([], models.JSONField()), editable=False
    )
    seen_at = models.DateTimeField(null=True, editable=False)
    held_by = optional_text(longest=200, editable=False)
    held_until = models.DateTimeField(null=True, editable=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        verbose_name = "plugin runtime"
        ordering: ClassVar = ["name"]
        constraints: ClassVar = [
            known_choice("transport", PluginTransport, name="pluginruntime_transport_known"),
            known_choice("profile", PluginProfile, name="pluginruntime_profile_known"),
            known_choice("status", PluginStatus, name="pluginruntime_status_known"),
            models.CheckConstraint(
                condition=(Q(transport="stdio") & ~Q(command=""))
                | (Q(transport="websocket") & ~Q(url="")),
                name="pluginruntime_has_address",
            ),
        ]

    def __str__(self) -> str:
        return self.name
