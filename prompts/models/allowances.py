"""Tiers of accounts, quotas (runs per day and model family) and budgets.

`prompts.allowances.quotas` enforces quotas; `prompts.allowances.budgets` reads budgets.
"""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from django.conf import settings
from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q

from prompts.models.endpoints import usd_field


class Tier(models.Model):
    """A level of accounts, such as pro; a higher rank includes the lower ones."""

    name = models.CharField(
        max_length=32,
        primary_key=True,
        validators=[RegexValidator(r"^[a-z0-9_-]+\Z", "Use small letters, digits, _ and - only.")],
    )
    rank = models.PositiveIntegerField(unique=True, help_text="From low to high.")

    class Meta:
        ordering: ClassVar = ["rank"]

    def __str__(self) -> str:
        return self.name


class Entitlement(models.Model):
    """The tier of one account; an account without a tier is below all tiers."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, primary_key=True, related_name="+"
    )
    tier = models.ForeignKey(Tier, on_delete=models.PROTECT, related_name="+")
    expires_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.user}: {self.tier_id}"


class Quota(models.Model):
    """The number of runs per day that an account may start on a model family.

    An account's own quota takes precedence over its tier's, and that over the one for all accounts.
    """

    family = models.CharField(max_length=100, help_text="A model's key, or its family.")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, blank=True, related_name="+"
    )
    tier = models.ForeignKey(Tier, on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    runs_per_day = models.PositiveIntegerField(help_text="0 refuses every run.")

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(user__isnull=True) | Q(tier__isnull=True), name="quota_for_user_or_tier"
            ),
            models.UniqueConstraint(
                fields=["family"],
                condition=Q(user__isnull=True, tier__isnull=True),
                name="one_quota_for_everybody",
            ),
            models.UniqueConstraint(fields=["family", "user"], name="one_quota_per_user"),
            models.UniqueConstraint(fields=["family", "tier"], name="one_quota_per_tier"),
        ]

    def __str__(self) -> str:
        return f"{self.family}, {self.user or self.tier or 'everybody'}: {self.runs_per_day} a day"


class QuotaUse(models.Model):
    """An account's use of a model family on the last day of use; one row serves all days."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    family = models.CharField(max_length=100)
    day = models.DateField()
    used = models.PositiveIntegerField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["user", "family"], name="one_use_per_user_and_family"),
        ]

    def __str__(self) -> str:
        return f"{self.user}, {self.family}: {self.used} on {self.day}"


_usd_limit = partial(usd_field, max_digits=14, decimal_places=4)


class Budget(models.Model):
    """Limits per day and month: for an account, each account of a tier, each account, or all together.

    An account's own budget takes precedence over its tier's, and that over the one for every account.
    The budget of the whole installation applies in addition. Days are those of TIME_ZONE.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, blank=True, related_name="+"
    )
    tier = models.ForeignKey(Tier, on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    is_total = models.BooleanField(
        "for all accounts together",
        default=False,
        help_text="The whole installation's. Off, without user and tier: every one's.",
    )
    usd_per_day = _usd_limit("US dollars. Empty: no limit; 0 refuses every run.")
    usd_per_month = _usd_limit("US dollars in a calendar month.")
    tokens_per_day = models.PositiveBigIntegerField(
        null=True,
        blank=True,
        help_text="Input and output together, whether their price is known or not.",
    )
    tokens_per_month = models.PositiveBigIntegerField(null=True, blank=True)
    is_active = models.BooleanField(
        default=True, help_text="Off: as if it did not exist; the next one that applies counts."
    )

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(user__isnull=True, tier__isnull=True)
                | Q(user__isnull=False, tier__isnull=True, is_total=False)
                | Q(user__isnull=True, tier__isnull=False, is_total=False),
                name="budget_for_one_kind",
                violation_error_message="Choose an account, or a tier, or all together: one of them.",
            ),
            models.UniqueConstraint(
                fields=["is_total"],
                condition=Q(user__isnull=True, tier__isnull=True),
                name="one_budget_for_everybody",
                violation_error_message="There is such a budget already: change that one.",
            ),
            models.UniqueConstraint(
                fields=["user"],
                name="one_budget_per_user",
                violation_error_message="This account has a budget already: change that one.",
            ),
            models.UniqueConstraint(
                fields=["tier"],
                name="one_budget_per_tier",
                violation_error_message="This tier has a budget already: change that one.",
            ),
        ]

    def __str__(self) -> str:
        return f"Budget of {self.subject}"

    @property
    def subject(self) -> str:
        """The accounts that the budget limits, for people."""
        if self.is_total:
            return "the whole installation"
        if self.user_id:
            return str(self.user)
        return f"each account of tier {self.tier_id}" if self.tier_id else "every account"
