"""Tiers of accounts; a model may require one (specs/text-run.md §4, `required_tier`)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final
from uuid import UUID

from config import sql

_HELD: Final = """
    SELECT tier_id FROM prompts_entitlement
    WHERE user_id = %s AND (expires_at IS NULL OR expires_at > now())
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
    return not tier or tier in await list_reached(user_id)


async def list_reached(user_id: UUID) -> frozenset[str]:
    """Return the names of the account's tier and of all lower ones, including ""."""
    return _names(await sql.every(_REACHED, (user_id,)))


def list_reached_sync(user_id: UUID) -> frozenset[str]:
    """Do the same as `list_reached`, for synchronous code."""
    return _names(sql.fetch(_REACHED, (user_id,)))


def _names(rows: Iterable[tuple[str]]) -> frozenset[str]:
    return frozenset(("", *(name for (name,) in rows)))
