"""How much an account, and the whole installation, may spend a day and a month.

Of the budgets that apply to an account its own counts first, then its tier's, then the one for every
account; an empty limit is none, and one that is switched off is passed over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from psycopg import AsyncConnection

from config.database import connection as pooled
from prompts.remembered import Remembered


@dataclass(frozen=True, slots=True)
class Limits:
    """None: no limit."""

    usd_per_day: Decimal | None = None
    usd_per_month: Decimal | None = None
    tokens_per_day: int | None = None
    tokens_per_month: int | None = None


NONE: Final = Limits()


@dataclass(frozen=True, slots=True)
class Budgets:
    """What applies to one account: its own limits, and everybody's together."""

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


async def exist() -> bool:
    """Whether there is any budget; at most a second old, and usually no statement."""
    return await _exist.get()


async def applying(connection: AsyncConnection[Any], user_id: UUID) -> Budgets:
    """What applies to the account, as it stands in this transaction."""
    rows = await (await connection.execute(_APPLYING, {"user": user_id})).fetchall()
    found = {is_total: _limits(limits) for is_total, *limits in rows}
    return Budgets(found.get(False, NONE), found.get(True, NONE))


async def applying_to(connection: AsyncConnection[Any], user_ids: Sequence[UUID]) -> dict[UUID, Limits]:
    """The limits of each of these accounts that has some."""
    rows = await (await connection.execute(_APPLYING_TO, (list(user_ids),))).fetchall()
    return {user_id: _limits(limits) for user_id, _, *limits in rows}


async def of_installation(connection: AsyncConnection[Any]) -> Limits:
    """The limits of all accounts together."""
    row = await (await connection.execute(_OF_ALL)).fetchone()
    return _limits(row[1:]) if row else NONE


def forget() -> None:
    """Let this process read again at once whether there are budgets."""
    _exist.forget()


def _limits(row: Sequence[Any]) -> Limits:
    return Limits(*row)


async def _read() -> bool:
    async with pooled() as held:
        row = await (await held.execute(_ANY)).fetchone()
    return bool(row and row[0])


_exist: Final = Remembered(_read, seconds=1.0)
