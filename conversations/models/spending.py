"""The table of spending: counters per account and day."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q

from conversations.models.keys import unchecked_key


class Spend(models.Model):
    """The usage and cost of an account's runs on one day; without an owner, of all accounts.

    The statement that ends a run writes it. The day is the one of TIME_ZONE on which the run ended. A
    day has several rows (`shard`), so that runs that end together do not wait for each other; an erased
    account's spending stays in the rows without an owner.
    """

    owner = unchecked_key(settings.AUTH_USER_MODEL, "spending", on_delete=models.CASCADE, null=True)
    day = models.DateField()
    shard = models.SmallIntegerField()
    runs = models.BigIntegerField(default=0, db_default=0)
    input_tokens = models.BigIntegerField(default=0, db_default=0)
    output_tokens = models.BigIntegerField(default=0, db_default=0)
    unpriced_tokens = models.BigIntegerField(default=0, db_default=0)
    cost_usd = models.DecimalField("cost (USD)", max_digits=30, decimal_places=10, null=True, blank=True)

    class Meta:
        verbose_name = verbose_name_plural = "spending"
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["owner", "day", "shard"],
                condition=Q(owner__isnull=False),
                name="one_spend_per_owner_day_shard",
            ),
            models.UniqueConstraint(
                fields=["day", "shard"],
                condition=Q(owner__isnull=True),
                name="one_spend_per_day_shard",
            ),
        ]
        indexes: ClassVar = [models.Index(fields=["day"], name="spend_by_day")]

    def __str__(self) -> str:
        return f"{self.owner_id or 'everybody'} on {self.day}"
