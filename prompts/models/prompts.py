"""Prompts and their versions."""

from __future__ import annotations

from typing import Any, ClassVar

from django.conf import settings
from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now


class PromptKind(models.TextChoices):
    """The use of a prompt; runs use the active `agent_system` and `agent_tools` prompts."""

    AGENT_SYSTEM = "agent_system"
    AGENT_TOOLS = "agent_tools"
    SYSTEM = "system"
    TOOLS = "tools"


def _own_version(
    on_delete: Any, help_text: str = ""
) -> models.ForeignKey[PromptVersion | None, PromptVersion | None]:
    return models.ForeignKey(
        "PromptVersion",
        on_delete=on_delete,
        null=True,
        blank=True,
        related_name="+",
        editable=False,
        help_text=help_text,
    )


class Prompt(models.Model):
    """A named text with versions; at most one prompt of a kind is active."""

    name = models.CharField(max_length=200, unique=True)
    kind = models.CharField(max_length=32, choices=PromptKind)
    category = models.CharField(max_length=100, blank=True, default="")
    description = models.TextField(blank=True, default="")
    active_version = _own_version(models.PROTECT)
    is_active = models.BooleanField(
        default=False, editable=False, help_text="The one in use for its kind."
    )
    previous_version = _own_version(models.DO_NOTHING, "What was active before, to roll back to.")
    split_version = _own_version(
        models.DO_NOTHING, "The version that a part of the threads gets instead of the active one."
    )
    split_percent = models.PositiveSmallIntegerField(
        default=0, db_default=0, editable=False, help_text="How many of 100 threads get it."
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    deleted_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(kind__in=PromptKind.values), name="prompt_kind_known"),
            models.UniqueConstraint(
                fields=["kind"], condition=Q(is_active=True), name="one_active_prompt_per_kind"
            ),
            models.CheckConstraint(
                condition=Q(is_active=False) | Q(active_version__isnull=False),
                name="active_prompt_has_version",
            ),
            models.CheckConstraint(
                condition=Q(split_version__isnull=True, split_percent=0)
                | Q(split_version__isnull=False, split_percent__gte=1, split_percent__lte=99),
                name="prompt_split_whole_or_none",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class PromptVersion(models.Model):
    """An immutable version of a prompt's text."""

    prompt = models.ForeignKey(Prompt, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField(editable=False)
    content = models.TextField()
    tools_json = models.JSONField(null=True, blank=True)
    note = models.CharField(max_length=500, blank=True, default="")
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        ordering: ClassVar = ["-number"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["prompt", "number"], name="one_version_per_number"),
        ]

    def __str__(self) -> str:
        return f"{self.prompt.name} v{self.number}"


class PromptLabel(models.Model):
    """A movable name for a version of a prompt, such as production or staging."""

    prompt = models.ForeignKey(Prompt, on_delete=models.CASCADE, related_name="labels")
    name = models.CharField(
        max_length=32,
        validators=[
            RegexValidator(r"^[a-z0-9][a-z0-9_-]*\Z", "Use small letters, digits, _ and - only.")
        ],
    )
    version = models.ForeignKey(PromptVersion, on_delete=models.CASCADE, related_name="labels")
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering: ClassVar = ["name"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["prompt", "name"], name="one_version_per_label"),
        ]

    def __str__(self) -> str:
        return self.name
