"""What staff write: prompts, endpoints with their sealed keys, model mappings, settings.

A prompt version never changes: a save makes a new one. A key is sealed before it reaches the
database and is only ever shown masked. Changes go through `prompts.actions`.
"""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from prompts.addresses import http_address


class PromptKind(models.TextChoices):
    """What a prompt is for; a run uses the active `agent_system` and `agent_tools`."""

    AGENT_SYSTEM = "agent_system"
    AGENT_TOOLS = "agent_tools"
    SYSTEM = "system"
    TOOLS = "tools"


class Prompt(models.Model):
    """A named text with versions; at most one prompt of a kind is active."""

    name = models.CharField(max_length=200, unique=True)
    kind = models.CharField(max_length=32, choices=PromptKind)
    category = models.CharField(max_length=100, blank=True, default="")
    description = models.TextField(blank=True, default="")
    active_version = models.ForeignKey(
        "PromptVersion",
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
        editable=False,
    )
    is_active = models.BooleanField(
        default=False, editable=False, help_text="The one in use for its kind."
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)

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
        ]

    def __str__(self) -> str:
        return self.name


class PromptVersion(models.Model):
    """One immutable wording of a prompt."""

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


class Secret(models.Model):
    """A sealed key with a mask; `prompts.secrets` seals, opens and rotates."""

    name = models.CharField(max_length=200, unique=True)
    sealed = models.TextField(editable=False)
    mask = models.CharField(max_length=64, editable=False)
    updated_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return f"{self.name} {self.mask}"


class ProviderDialect(models.TextChoices):
    """The wire that an endpoint speaks; `demo` is the built-in offline model."""

    CHAT_COMPLETIONS = "openai.chat_completions"
    RESPONSES = "openai.responses"
    ANTHROPIC = "anthropic.messages"
    GEMINI = "gemini.generate_content"
    DEMO = "demo"


class Endpoint(models.Model):
    """A model provider's address and key."""

    name = models.CharField(max_length=100, unique=True)
    provider = models.CharField(max_length=64, help_text="Shown to clients, for example openai or xai.")
    dialect = models.CharField(
        max_length=32, choices=ProviderDialect, default=ProviderDialect.CHAT_COMPLETIONS
    )
    base_url = models.CharField(
        "base URL",
        blank=True,
        default="",
        max_length=500,
        validators=[http_address],
        help_text="For example https://api.example.com/v1",
    )
    secret = models.ForeignKey(Secret, on_delete=models.SET_NULL, null=True, blank=True, editable=False)
    is_active = models.BooleanField(default=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(dialect__in=ProviderDialect.values), name="endpoint_dialect_known"
            ),
            models.CheckConstraint(
                condition=Q(dialect=ProviderDialect.DEMO) | ~Q(base_url=""), name="endpoint_has_address"
            ),
        ]

    def __str__(self) -> str:
        return self.name


class ModelMapping(models.Model):
    """A public model name and the candidates that may serve it, in order."""

    key = models.CharField(
        max_length=100,
        unique=True,
        validators=[
            RegexValidator(
                r"^[A-Za-z0-9][A-Za-z0-9._/-]*\Z",
                "Use letters, digits and . _ / - only, for example gpt-4.1.",
            )
        ],
        help_text="Clients ask for global:KEY or KEY.",
    )
    label = models.CharField(max_length=200, blank=True, default="")
    is_active = models.BooleanField(default=True)
    required_tier = models.CharField(max_length=32, blank=True, default="")
    updated_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return self.name

    @property
    def name(self) -> str:
        return f"global:{self.key}"


class ModelCandidate(models.Model):
    """One endpoint and model that may serve a mapping."""

    mapping = models.ForeignKey(ModelMapping, on_delete=models.CASCADE, related_name="candidates")
    position = models.PositiveIntegerField(default=1, help_text="Tried from low to high.")
    endpoint = models.ForeignKey(Endpoint, on_delete=models.CASCADE, related_name="candidates")
    model = models.CharField(
        max_length=200, help_text="The provider's own name, for example gpt-5-mini."
    )
    temperature = models.FloatField(
        null=True, blank=True, validators=[MinValueValidator(0), MaxValueValidator(2)]
    )
    max_tokens = models.PositiveIntegerField(null=True, blank=True)

    class Meta:
        ordering: ClassVar = ["position", "id"]

    def __str__(self) -> str:
        return f"{self.endpoint} · {self.model}"


class AppSetting(models.Model):
    """One setting that staff may change while Parley runs."""

    key = models.CharField(max_length=100, primary_key=True)
    value = models.JSONField()
    updated_at = models.DateTimeField(auto_now=True)
    updated_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )

    def __str__(self) -> str:
        return self.key
