"""The policies of staff for tools."""

from __future__ import annotations

from typing import ClassVar

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q

from agents.models.fields import known_choice, optional_key


class Audience(models.TextChoices):
    """The accounts whose runs are offered a tool."""

    EVERYONE = "everyone", "everyone"
    STAFF = "staff", "staff"
    TIER = "tier", "a tier and those above it"


class ToolPolicy(models.Model):
    """The policy of staff for one tool; a tool without a row keeps its maker's settings."""

    tool = models.CharField(max_length=200, unique=True, help_text="Its name, as runs show it.")
    enabled = models.BooleanField(default=True)
    requires_approval = models.BooleanField(
        null=True,
        blank=True,
        help_text="Whether each call must be approved. Unknown: as its maker has it.",
    )
    allowed_to = models.CharField(max_length=16, choices=Audience, default=Audience.EVERYONE)
    tier = optional_key("prompts.Tier", on_delete=models.PROTECT)
    expires_after_s = models.PositiveIntegerField(
        "approval expires after",
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(31_536_000)],
        help_text="Seconds in which a call can be approved. Empty: APPROVAL_TTL_S.",
    )

    class Meta:
        verbose_name_plural = "tool policies"
        ordering: ClassVar = ["tool"]
        constraints: ClassVar = [
            known_choice("allowed_to", Audience, name="toolpolicy_audience_known"),
            models.CheckConstraint(
                condition=Q(tier__isnull=False) | ~Q(allowed_to="tier"),
                name="toolpolicy_tier_named",
                violation_error_message="Name the tier.",
            ),
        ]

    def __str__(self) -> str:
        return self.tool
