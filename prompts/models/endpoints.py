"""Endpoints, the models that they serve, and their keys."""

from __future__ import annotations

from decimal import Decimal
from typing import ClassVar, Final

from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from prompts.addresses import http_address


class Secret(models.Model):
    """A sealed (encrypted) key and its mask; `prompts.endpoints.secrets` seals, opens and rotates."""

    name = models.CharField(max_length=200, unique=True)
    sealed = models.TextField(editable=False)
    mask = models.CharField(max_length=64, editable=False)
    updated_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return f"{self.name} {self.mask}"


class ProviderDialect(models.TextChoices):
    """The protocol of an endpoint; `demo` is the built-in offline model."""

    CHAT_COMPLETIONS = "openai.chat_completions"
    RESPONSES = "openai.responses"
    ANTHROPIC = "anthropic.messages"
    GEMINI = "gemini.generate_content"
    DEMO = "demo"


class Endpoint(models.Model):
    """The address and key of a model provider."""

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
    images_by_url = models.BooleanField(
        "images by URL",
        default=False,
        help_text="The provider fetches images by signed URL, so PUBLIC_URL must reach here from there. "
        "Off: they are sent inside the request.",
    )
    needs_key = models.BooleanField(
        "needs a key",
        default=True,
        help_text="Off for a model server that asks for none, such as Ollama or vLLM at home.",
    )
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
    """A public model name and its candidates, which are tried in order."""

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
    required_tier = models.CharField(
        max_length=32, blank=True, default="", help_text="Who is below it neither sees nor uses it."
    )
    family = models.CharField(
        max_length=100,
        blank=True,
        default="",
        help_text="Models of one family share a daily quota; empty: the model alone.",
    )
    supports_vision = models.BooleanField(
        default=False, help_text="Every candidate takes images beside text."
    )
    supports_tools = models.BooleanField(default=True, help_text="Every candidate can call tools.")
    context_tokens = models.PositiveIntegerField(
        "context size",
        null=True,
        blank=True,
        validators=[MinValueValidator(1_000), MaxValueValidator(100_000_000)],
        help_text="Tokens that the smallest candidate takes, answer included; empty: CONTEXT_TOKENS.",
    )
    updated_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return self.name

    @property
    def name(self) -> str:
        return f"global:{self.key}"


OWN_PRICE = ("input_price", "output_price", "cached_input_price", "cache_write_price")


def usd_field(
    help_text: str, *, max_digits: int = 12, decimal_places: int = 6
) -> models.DecimalField[Decimal | None, Decimal | None]:
    """Return an optional amount of US dollars, 0 or more."""
    return models.DecimalField(
        null=True,
        blank=True,
        max_digits=max_digits,
        decimal_places=decimal_places,
        validators=[MinValueValidator(0)],
        help_text=help_text,
    )


_SHARE: Final = [MinValueValidator(0.001), MaxValueValidator(1)]
_PENALTY: Final = [MinValueValidator(-2), MaxValueValidator(2)]


class ReasoningEffort(models.TextChoices):
    """How much a model should reason before it answers."""

    MINIMAL = "minimal"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class ModelCandidate(models.Model):
    """An endpoint and model that may serve a mapping, with default parameters for requests."""

    mapping = models.ForeignKey(ModelMapping, on_delete=models.CASCADE, related_name="candidates")
    position = models.PositiveIntegerField(default=1, help_text="Tried from low to high.")
    endpoint = models.ForeignKey(Endpoint, on_delete=models.CASCADE, related_name="candidates")
    model = models.CharField(
        max_length=200, help_text="The provider's own name, for example gpt-5-mini."
    )
    temperature = models.FloatField(
        null=True, blank=True, validators=[MinValueValidator(0), MaxValueValidator(2)]
    )
    max_tokens = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text="The most that any request gets; empty: as the provider likes.",
    )
    top_p = models.FloatField("top p", null=True, blank=True, validators=_SHARE)
    frequency_penalty = models.FloatField(null=True, blank=True, validators=_PENALTY)
    presence_penalty = models.FloatField(null=True, blank=True, validators=_PENALTY)
    stop = ArrayField(
        models.CharField(max_length=256),
        default=list,
        blank=True,
        size=16,
        help_text="Texts at which the answer ends, comma-separated.",
    )
    seed = models.IntegerField(null=True, blank=True)
    reasoning_effort = models.CharField(max_length=16, choices=ReasoningEffort, blank=True, default="")
    reasoning_budget = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(1_000_000)],
        help_text="Tokens it may think; the wires of OpenAI know efforts only.",
    )
    input_price = usd_field("Own price: USD for a million input tokens. Empty: the published one.")
    output_price = usd_field("Own price: USD for a million output tokens, reasoning among them.")
    cached_input_price = usd_field("Of input read from the provider's cache. Empty: as other input.")
    cache_write_price = usd_field("Of input written to the provider's cache. Empty: as other input.")

    class Meta:
        ordering: ClassVar = ["position", "id"]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(input_price=None, output_price=None)
                | Q(input_price__gte=0, output_price__gte=0),
                name="own_price_for_input_and_output",
            ),
            models.CheckConstraint(
                condition=Q(cached_input_price=None, cache_write_price=None)
                | Q(input_price__isnull=False),
                name="own_cache_price_needs_input_price",
            ),
            models.CheckConstraint(
                condition=Q(reasoning_effort="") | Q(reasoning_effort__in=ReasoningEffort.values),
                name="candidate_effort_known",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.endpoint} · {self.model}"

    def clean(self) -> None:
        """Require both input and output in an own price: a partial price has no fallback."""
        super().clean()
        prices = {name: getattr(self, name) for name in OWN_PRICE}
        if all(price is None for price in prices.values()):
            return
        missing = [name for name in ("input_price", "output_price") if prices[name] is None]
        if missing:
            raise ValidationError(
                dict.fromkeys(
                    missing,
                    "Enter both the input and the output price (0 if free), or leave all four empty.",
                )
            )
