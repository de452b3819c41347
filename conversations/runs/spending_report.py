"""Spending by day and by account, from the counters of budgets; metrics show it by model.

Days are those of TIME_ZONE on which runs ended. An erased account's spending is in the sums of all
accounts and in no account's.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any, Final
from uuid import UUID

from psycopg import AsyncConnection

from conversations.runs.spending import SpendingSums, make_sums

_SUMS: Final = """sum(runs)::bigint, sum(input_tokens)::bigint, sum(output_tokens)::bigint,
    sum(unpriced_tokens)::bigint, sum(cost_usd)"""
_DAYS: Final = f"""
SELECT day, {_SUMS} FROM conversations_spend
WHERE {{whose}} AND day BETWEEN %(first)s AND %(last)s GROUP BY day ORDER BY day DESC
"""
_ACCOUNTS: Final = f"""
SELECT found.*, account.username FROM (
    SELECT owner_id, {_SUMS} AS cost_usd FROM conversations_spend
    WHERE owner_id IS NOT NULL AND day BETWEEN %(first)s AND %(last)s
        AND (%(owners)s::uuid[] IS NULL OR owner_id = ANY(%(owners)s))
    GROUP BY owner_id
    ORDER BY cost_usd DESC NULLS LAST, sum(input_tokens + output_tokens) DESC, owner_id
    LIMIT %(limit)s OFFSET %(past)s
) found JOIN accounts_user account ON account.id = found.owner_id
ORDER BY found.cost_usd DESC NULLS LAST, account.username
"""


@dataclass(frozen=True, slots=True)
class AccountSpending:
    """One account's spending in the requested days."""

    user_id: UUID
    username: str
    spent: SpendingSums


async def fetch_spending_by_day(
    connection: AsyncConnection[Any], first: date, last: date, *, owner_id: UUID | None
) -> list[tuple[date, SpendingSums]]:
    """Return the spending of the account, or of all together, on each of these days, newest first."""
    whose = "owner_id IS NULL" if owner_id is None else "owner_id = %(owner)s"
    arguments = {"first": first, "last": last, "owner": owner_id}
    rows = await (await connection.execute(_DAYS.format(whose=whose), arguments)).fetchall()
    return [(day, make_sums(sums)) for day, *sums in rows]


async def fetch_spending_by_account(
    connection: AsyncConnection[Any],
    first: date,
    last: date,
    *,
    owners: list[UUID] | None,
    limit: int,
    past: int = 0,
) -> list[AccountSpending]:
    """Return the top spenders in these days, of all accounts or of these; skip `past` of them."""
    arguments = {"first": first, "last": last, "owners": owners, "limit": limit, "past": past}
    rows = await (await connection.execute(_ACCOUNTS, arguments)).fetchall()
    return [AccountSpending(user_id, name, make_sums(sums)) for user_id, *sums, name in rows]


def sum_spending(sums: list[SpendingSums]) -> SpendingSums:
    """Return their sum; its cost is the known part."""
    costs = [one.cost_usd for one in sums if one.cost_usd is not None]
    return SpendingSums(
        sum(one.runs for one in sums),
        sum(one.input_tokens for one in sums),
        sum(one.output_tokens for one in sums),
        sum(one.unpriced_tokens for one in sums),
        sum(costs[1:], costs[0]) if costs else None,
    )
