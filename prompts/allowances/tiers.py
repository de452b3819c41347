"""Tiers of accounts; a model may require one (specs/text-run.md §4, `required_tier`)."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from django.db.models import Q
from django.utils import timezone

from config import sql
from prompts.models import Entitlement, Tier

_HELD: Final = """
    SELECT tier_id FROM prompts_entitlement
    WHERE user_id = %s AND (expires_at IS NULL OR expires_at > now())
"""
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


async def get_tier(user_id: UUID) -> str:
    """Return the name of the account's present tier, or ""."""
    row = await sql.one(_HELD, (user_id,))
    return row[0] if row and row[0] else ""


async def has_tier(user_id: UUID, tier: str) -> bool:
    """Return whether the account has this tier or a higher one; always true for ""."""
    if not tier:
        return True
    row = await sql.one(_REACHES, {"tier": tier, "user": user_id})
    return bool(row and row[0])


async def list_reached(user_id: UUID) -> frozenset[str]:
    """Return the names of the account's tier and of all lower ones, including ""."""
    rows = await sql.every(_REACHED, (user_id,))
    return frozenset(("", *(name for (name,) in rows)))


def list_reached_sync(user_id: UUID) -> frozenset[str]:
    """Return the same as `list_reached`, through the ORM."""
    held = Entitlement.objects.filter(
        Q(expires_at=None) | Q(expires_at__gt=timezone.now()), user=user_id
    )
    ranks = held.values("tier__rank")
    return frozenset(("", *Tier.objects.filter(rank__lte=ranks[:1]).values_list("name", flat=True)))
