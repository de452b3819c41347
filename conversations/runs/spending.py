"""Accounts' spending, by days of TIME_ZONE: counters that runs add to as they end.

One read gives the spending of an account, or of all together, today and this month. The clock is the
database's, as wherever a host's own clock must not decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from psycopg import AsyncConnection

_SHARDS: Final = 8
TODAY: Final = "(clock_timestamp() AT TIME ZONE %(zone)s::text)::date"
COUNTERS: Final = "day, shard, runs, input_tokens, output_tokens, unpriced_tokens, cost_usd"
ADDED: Final = """
    runs = spent.runs + excluded.runs,
    input_tokens = spent.input_tokens + excluded.input_tokens,
    output_tokens = spent.output_tokens + excluded.output_tokens,
    unpriced_tokens = spent.unpriced_tokens + excluded.unpriced_tokens,
    cost_usd = coalesce(spent.cost_usd + excluded.cost_usd, excluded.cost_usd, spent.cost_usd)
"""
"""The pieces of the statement that ends runs; `counter_values` gives their parameters."""


def counter_values(run_id: UUID) -> dict[str, Any]:
    """Return the values that choose the counters of this run and of those that end with it."""
    return {"zone": settings.TIME_ZONE, "shard": run_id.bytes[-1] % _SHARDS}


@dataclass(frozen=True, slots=True)
class SpendingSums:
    """Runs that used a model, their tokens, and their known cost (None: nothing is known)."""

    runs: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    unpriced_tokens: int = 0
    cost_usd: Decimal | None = None

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True, slots=True)
class Spending:
    """The spending of today and of this month so far."""

    today: date
    day: SpendingSums
    month: SpendingSums


_NAMES: Final = ("runs", "input_tokens", "output_tokens", "unpriced_tokens", "cost_usd")
_TODAYS: Final = ", ".join(f"sum({name}) FILTER (WHERE spend.day = now.day)" for name in _NAMES)
_MONTHS: Final = ", ".join(f"sum({name})" for name in _NAMES)
_SPENT: Final = f"""
    SELECT now.day, {_TODAYS}, {_MONTHS} FROM (SELECT {TODAY} AS day) now
    LEFT JOIN conversations_spend spend ON {{whose}}
        AND spend.day BETWEEN date_trunc('month', now.day)::date AND now.day
    GROUP BY now.day
"""
_OF_OWNER: Final = _SPENT.format(whose="spend.owner_id = %(owner)s")
_OF_ALL: Final = _SPENT.format(whose="spend.owner_id IS NULL")


async def fetch_spending(connection: AsyncConnection[Any], owner_id: UUID | None) -> Spending:
    """Return the account's spending today and this month; without an account, that of all."""
    arguments = {"zone": settings.TIME_ZONE, "owner": owner_id}
    cursor = await connection.execute(_OF_ALL if owner_id is None else _OF_OWNER, arguments)
    row: Any = await cursor.fetchone()
    return Spending(row[0], make_sums(row[1:6]), make_sums(row[6:11]))


_OF_OWNERS: Final = f"""
    SELECT named.id, now.day, {_TODAYS}, {_MONTHS} FROM (SELECT {TODAY} AS day) now
    CROSS JOIN unnest(%(owners)s::uuid[]) named(id)
    LEFT JOIN conversations_spend spend ON spend.owner_id = named.id
        AND spend.day BETWEEN date_trunc('month', now.day)::date AND now.day
    GROUP BY named.id, now.day
"""


async def fetch_spending_of(
    connection: AsyncConnection[Any], owner_ids: Sequence[UUID]
) -> dict[UUID, Spending]:
    """Return the spending of each of these accounts today and this month."""
    arguments = {"zone": settings.TIME_ZONE, "owners": list(owner_ids)}
    rows = await (await connection.execute(_OF_OWNERS, arguments)).fetchall()
    return {row[0]: Spending(row[1], make_sums(row[2:7]), make_sums(row[7:12])) for row in rows}


def make_sums(row: Sequence[Any]) -> SpendingSums:
    """Return five sums as PostgreSQL gives them; those of no rows are null."""
    runs, input_tokens, output_tokens, unpriced = (int(number or 0) for number in row[:4])
    return SpendingSums(runs, input_tokens, output_tokens, unpriced, row[4])
