"""Spending limits per day and month, of an account and of the whole installation.

An account's own budget takes precedence over its tier's, and that over the budget of every account.
An empty limit is no limit; inactive budgets are ignored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from psycopg import AsyncConnection

from config import sql
from config.cache import CachedValue


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a budget; None means no limit."""

    usd_per_day: Decimal | None = None
    usd_per_month: Decimal | None = None
    tokens_per_day: int | None = None
    tokens_per_month: int | None = None


NONE: Final = Limits()


@dataclass(frozen=True, slots=True)
class Budgets:
    """The limits of one account, and those of all accounts together."""

    account: Limits = NONE
    installation: Limits = NONE


_ANY: Final = "SELECT EXISTS (SELECT FROM prompts_budget WHERE is_active)"
_COLUMNS: Final = "b.usd_per_day, b.usd_per_month, b.tokens_per_day, b.tokens_per_month"
_OF_ACCOUNT: Final = f"""
    SELECT false, {_COLUMNS} FROM prompts_budget b
    LEFT JOIN prompts_entitlement held ON held.tier_id = b.tier_id AND held.user_id = {{user}}
        AND (held.expires_at IS NULL OR held.expires_at > now())
    WHERE b.is_active AND NOT b.is_total
        AND (b.user_id = {{user}} OR b.user_id IS NULL)
        AND (b.tier_id IS NULL OR held.user_id IS NOT NULL)
    ORDER BY b.user_id IS NULL, b.tier_id IS NULL LIMIT 1
"""
_OF_ALL: Final = f"SELECT true, {_COLUMNS} FROM prompts_budget b WHERE b.is_active AND b.is_total"
_APPLYING: Final = f"({_OF_ACCOUNT.format(user='%(user)s')}) UNION ALL {_OF_ALL}"
_APPLYING_TO: Final = f"""
    SELECT named.id, found.* FROM unnest(%s::uuid[]) named(id)
    CROSS JOIN LATERAL ({_OF_ACCOUNT.format(user="named.id")}) found
"""


async def any_exist() -> bool:
    """Return whether any budget is active; cached for a second."""
    return await _exist.get()


async def find_budgets(connection: AsyncConnection[Any], user_id: UUID) -> Budgets:
    """Return the budgets that apply to the account, as this transaction sees them."""
    rows = await (await connection.execute(_APPLYING, {"user": user_id})).fetchall()
    found = {is_total: Limits(*limits) for is_total, *limits in rows}
    return Budgets(found.get(False, NONE), found.get(True, NONE))


async def find_limits(connection: AsyncConnection[Any], user_ids: Sequence[UUID]) -> dict[UUID, Limits]:
    """Return the limits of those of the accounts that have any."""
    rows = await (await connection.execute(_APPLYING_TO, (list(user_ids),))).fetchall()
    return {user_id: Limits(*limits) for user_id, _, *limits in rows}


async def find_installation_limits(connection: AsyncConnection[Any]) -> Limits:
    """Return the limits of all accounts together."""
    row = await (await connection.execute(_OF_ALL)).fetchone()
    return Limits(*row[1:]) if row else NONE


async def _read() -> bool:
    row = await sql.one(_ANY)
    return bool(row and row[0])


_exist: Final = CachedValue(_read, seconds=1.0)
clear_cache: Final = _exist.clear
