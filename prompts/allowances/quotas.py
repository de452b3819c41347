"""Runs per day of an account on a model family (specs/text-run.md §4).

A run is counted in the transaction that accepts it, after its insert. Therefore repeated and refused
requests are not counted, and concurrent requests cannot exceed the limit.
"""

from __future__ import annotations

from datetime import datetime, time, timedelta
from typing import Any, Final
from uuid import UUID

from django.utils import timezone
from psycopg import AsyncConnection

from config import sql
from config.cache import CachedValue
from config.errors import TooManyRequests

_FAMILIES: Final = "SELECT DISTINCT family FROM prompts_quota"

# The account's own quota takes precedence over its tier's, and that over the one for all accounts.
_LIMIT: Final = """
    SELECT q.runs_per_day FROM prompts_quota q
    LEFT JOIN prompts_entitlement held ON held.tier_id = q.tier_id AND held.user_id = %(user)s
        AND (held.expires_at IS NULL OR held.expires_at > now())
    WHERE q.family = %(family)s
        AND (q.user_id = %(user)s OR q.user_id IS NULL)
        AND (q.tier_id IS NULL OR held.user_id IS NOT NULL)
    ORDER BY q.user_id IS NULL, q.tier_id IS NULL LIMIT 1
"""
_TAKE: Final = """
    INSERT INTO prompts_quotause AS spent (user_id, family, day, used)
    VALUES (%(user)s, %(family)s, %(day)s, 1)
    ON CONFLICT (user_id, family) DO UPDATE SET
        used = CASE WHEN spent.day < excluded.day THEN 1 ELSE spent.used + 1 END,
        day = greatest(spent.day, excluded.day)
    WHERE spent.day < excluded.day OR spent.used < %(limit)s
    RETURNING used
"""
_USED: Final = "SELECT used FROM prompts_quotause WHERE user_id = %(user)s AND family = %(family)s"


async def is_limited(family: str) -> bool:
    """Return whether the family has any quota; cached for a second."""
    return family in await _families.get()


async def consume(connection: AsyncConnection[Any], user_id: UUID, family: str) -> None:
    """Count one run of today, in the caller's transaction.

    Raise `TooManyRequests` (`model_daily_quota_exceeded {model_key, limit, used}`) if none is left.
    """
    values: dict[str, Any] = {"user": user_id, "family": family, "day": timezone.localdate()}
    row = await (await connection.execute(_LIMIT, values)).fetchone()
    if row is None:
        return
    values["limit"] = row[0]
    if row[0] and await (await connection.execute(_TAKE, values)).fetchone():
        return
    used = await (await connection.execute(_USED, values)).fetchone() if row[0] else None
    raise TooManyRequests(
        "Today's runs on this model are used up.",
        code="model_daily_quota_exceeded",
        retry_after=_seconds_until_midnight(),
        model_key=family,
        limit=row[0],
        used=used[0] if used else 0,
    )


def _seconds_until_midnight() -> int:
    """Return the seconds until the next midnight of TIME_ZONE."""
    now = timezone.localtime()
    midnight = datetime.combine(now.date() + timedelta(days=1), time(), tzinfo=now.tzinfo)
    return max(1, int((midnight - now).total_seconds()))


async def _read() -> frozenset[str]:
    return frozenset(family for (family,) in await sql.every(_FAMILIES))


_families: Final = CachedValue(_read, seconds=1.0)
clear_cache: Final = _families.clear
