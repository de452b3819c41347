"""Which tier an account has reached: models may need one (specs/text-run.md §4, `required_tier`)."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from django.db.models import Q
from django.utils import timezone

from config.database import connection
from prompts.models import Entitlement, Tier

_REACHES: Final = """
    SELECT EXISTS (
        SELECT FROM prompts_entitlement held
        JOIN prompts_tier has ON has.name = held.tier_id
        JOIN prompts_tier needed ON needed.name = %(tier)s AND has.rank >= needed.rank
        WHERE held.user_id = %(user)s AND (held.expires_at IS NULL OR held.expires_at > now()))
"""

_REACHED: Final = """
    SELECT needed.name FROM prompts_entitlement held
    JOIN prompts_tier has ON has.name = held.tier_id
    JOIN prompts_tier needed ON has.rank >= needed.rank
    WHERE held.user_id = %s AND (held.expires_at IS NULL OR held.expires_at > now())
"""


async def reaches(user_id: UUID, tier: str) -> bool:
    """Whether the account has this tier or a higher one; "" is everybody's and asks no database."""
    if not tier:
        return True
    async with connection() as held:
        row = await (await held.execute(_REACHES, {"tier": tier, "user": user_id})).fetchone()
    return bool(row and row[0])


async def all_reached(user_id: UUID) -> frozenset[str]:
    """The names of all tiers that the account has reached, with "" among them."""
    async with connection() as held:
        rows = await (await held.execute(_REACHED, (user_id,))).fetchall()
    return frozenset(("", *(name for (name,) in rows)))


def reached(user_id: UUID) -> frozenset[str]:
    """The same through the ORM."""
    held = Entitlement.objects.filter(
        Q(expires_at=None) | Q(expires_at__gt=timezone.now()), user=user_id
    )
    ranks = held.values("tier__rank")
    return frozenset(("", *Tier.objects.filter(rank__lte=ranks[:1]).values_list("name", flat=True)))
