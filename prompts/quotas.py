"""Runs a day for an account and a model family (specs/text-run.md §4).

A run is counted in the transaction that accepts it, after its insert: so a repeated request is never
counted, a refused one leaves nothing, and of any number at once no more than the limit are accepted.
"""

from __future__ import annotations

from datetime import datetime, time, timedelta
from typing import Any, Final
from uuid import UUID

from django.utils import timezone
from psycopg import AsyncConnection

from config.database import connection as pooled
from config.errors import TooManyRequests
from prompts.remembered import Remembered

_FAMILIES: Final = "SELECT DISTINCT family FROM prompts_quota"

# Of the quotas that apply the account's own counts first, then its tier's, then everybody's.
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
    """Whether there is any quota for this family; at most a second old, and usually no statement."""
    return family in await _families.get()


async def take(connection: AsyncConnection[Any], user_id: UUID, family: str) -> None:
    """Count one run of today, in the caller's transaction.

    TooManyRequests `model_daily_quota_exceeded {model_key, limit, used}` when none is left.
    """
    wanted: dict[str, Any] = {"user": user_id, "family": family, "day": timezone.localdate()}
    row = await (await connection.execute(_LIMIT, wanted)).fetchone()
    if row is None:
        return
    wanted["limit"] = row[0]
    if row[0] and await (await connection.execute(_TAKE, wanted)).fetchone():
        return
    used = await (await connection.execute(_USED, wanted)).fetchone() if row[0] else None
    raise TooManyRequests(
        "Today's runs on this model are used up.",
        code="model_daily_quota_exceeded",
        retry_after=_seconds_left(),
        model_key=family,
        limit=row[0],
        used=used[0] if used else 0,
    )


def forget() -> None:
    """Let this process read again at once which families have a quota."""
    _families.forget()


def _seconds_left() -> int:
    """Until the server's next midnight."""
    now = timezone.localtime()
    midnight = datetime.combine(now.date() + timedelta(days=1), time(), tzinfo=now.tzinfo)
    return max(1, int((midnight - now).total_seconds()))


async def _read() -> frozenset[str]:
    async with pooled() as held:
        rows = await (await held.execute(_FAMILIES)).fetchall()
    return frozenset(family for (family,) in rows)


_families: Final = Remembered(_read, seconds=1.0)
