"""Check whether an account may spend more: when a run is accepted, and before each of its model calls.

Runs count when they end, so the spending of runs that are under way comes on top of a budget that is
used up; each run checks again before every call and adds what it has spent itself. A call whose price
is unknown counts towards limits in tokens only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final, Literal, TypeVar
from uuid import UUID

from django.utils import timezone
from psycopg import AsyncConnection

from agents.runners.base import RunFailure
from config import database
from config.errors import TooManyRequests
from conversations.events import Usage
from conversations.log.retry import retry_until_answered
from conversations.runs.spending import Spending, SpendingSums, fetch_spending, fetch_spending_of
from conversations.usage import usd
from prompts.allowances import budgets
from prompts.allowances.budgets import Budgets, Limits

T = TypeVar("T")
Scope = Literal["account", "installation"]
CODE: Final = "budget_exceeded"
_MESSAGES: Final[dict[Scope, str]] = {
    "account": "The budget of this account is used up.",
    "installation": "The budget of this installation is used up.",
}


@dataclass(frozen=True, slots=True)
class Level:
    """One limit and its use."""

    period: Literal["day", "month"]
    unit: Literal["usd", "tokens"]
    limit: Decimal
    used: Decimal

    @property
    def is_used_up(self) -> bool:
        return self.used >= self.limit

    @property
    def left(self) -> Decimal:
        return max(self.limit - self.used, Decimal())

    @property
    def shown(self) -> dict[str, str]:
        """Return `limit`, `used` and `left` for people; dollars as `dollars` formats them."""
        return self._amounts(dollars if self.unit == "usd" else _format_tokens)

    @property
    def client_values(self) -> dict[str, Any]:
        """Return the values for clients: dollars as text, tokens as numbers."""
        amounts = self._amounts(usd if self.unit == "usd" else int)
        return {"period": self.period, "unit": self.unit} | amounts

    def _amounts(self, form: Callable[[Decimal], T]) -> dict[str, T]:
        return {"limit": form(self.limit), "used": form(self.used), "left": form(self.left)}


@dataclass(frozen=True, slots=True)
class Standing:
    """The spending of an account, and the limits that apply to it."""

    spending: Spending
    account: list[Level]
    installation: list[Level]

    @property
    def used_up(self) -> tuple[Scope, Level] | None:
        """Return the limit that is used up, or None; of several, one with the longest period."""
        levels: dict[Scope, list[Level]] = {"account": self.account, "installation": self.installation}
        over = [(scope, level) for scope in levels for level in levels[scope] if level.is_used_up]
        return max(over, key=lambda found: found[1].period, default=None)


def dollars(amount: Decimal | None) -> str:
    """Return the amount for people: cents where that is enough, small amounts to their last digit."""
    if amount is None:
        return "unknown"
    return f"${amount:,.2f}" if not amount or amount >= 1 else f"${usd(amount)}"


def _format_tokens(amount: Decimal) -> str:
    return f"{int(amount):,} tokens"


async def check(connection: AsyncConnection[Any], user_id: UUID) -> None:
    """Raise TooManyRequests if a budget is used up, in the transaction that accepts the run.

    The error is `budget_exceeded {scope, period, unit}`; for the account's own budget also
    `{limit, used}`.
    """
    found = (await find_standing(connection, user_id)).used_up
    if found is None:
        return
    scope, level = found
    shown = level.client_values if scope == "account" else {"period": level.period, "unit": level.unit}
    shown.pop("left", None)
    raise TooManyRequests(
        _MESSAGES[scope], code=CODE, retry_after=seconds_left(level.period), scope=scope, **shown
    )


async def check_run(user_id: UUID, spent: Usage) -> None:
    """Raise RunFailure `budget_exceeded` before a model call of a run that has spent this much."""
    if not await retry_until_answered(budgets.any_exist):
        return
    found = (await retry_until_answered(_standing_now, user_id, spent)).used_up
    if found is not None:
        raise RunFailure(CODE, _MESSAGES[found[0]])


async def find_standing(
    connection: AsyncConnection[Any], user_id: UUID, extra: Usage | None = None
) -> Standing:
    """Return the account's standing; `more` is added to the spending that is counted."""
    found: Budgets = await budgets.find_budgets(connection, user_id)
    own = await fetch_spending(connection, user_id)
    everybodys = None
    if found.installation != budgets.NONE:
        everybodys = await fetch_spending(connection, None)
    return Standing(
        own,
        _levels(found.account, own, extra or Usage()),
        _levels(found.installation, everybodys, extra or Usage()) if everybodys else [],
    )


async def find_levels(
    connection: AsyncConnection[Any], user_ids: Sequence[UUID]
) -> dict[UUID, list[Level]]:
    """Return the levels of each account's limits; accounts without limits are left out."""
    limits = await budgets.find_limits(connection, user_ids)
    spent = await fetch_spending_of(connection, list(limits))
    return {user_id: _levels(limits[user_id], spent[user_id], Usage()) for user_id in limits}


async def find_installation_levels(connection: AsyncConnection[Any]) -> list[Level]:
    """Return the levels of the limits that apply to all accounts together."""
    limits = await budgets.find_installation_limits(connection)
    return _levels(limits, await fetch_spending(connection, None), Usage())


async def _standing_now(user_id: UUID, extra: Usage) -> Standing:
    async with database.connection() as connection:
        return await find_standing(connection, user_id, extra)


def _levels(limits: Limits, spent: Spending, extra: Usage) -> list[Level]:
    tokens, cost = extra.input_tokens + extra.output_tokens, extra.cost_usd or Decimal()

    def dollars(of: SpendingSums) -> Decimal:
        return (of.cost_usd or Decimal()) + cost

    levels: list[tuple[Any, ...]] = [
        ("day", "usd", limits.usd_per_day, dollars(spent.day)),
        ("month", "usd", limits.usd_per_month, dollars(spent.month)),
        ("day", "tokens", limits.tokens_per_day, spent.day.tokens + tokens),
        ("month", "tokens", limits.tokens_per_month, spent.month.tokens + tokens),
    ]
    return [
        Level(period, unit, Decimal(limit), Decimal(used))
        for period, unit, limit, used in levels
        if limit is not None
    ]


def seconds_left(period: Literal["day", "month"]) -> int:
    """Return the seconds until the server's next midnight, or until the first of its next month."""
    now = timezone.localtime()
    begins = now.date() + timedelta(days=1) if period == "day" else _next_month(now.date())
    midnight = datetime.combine(begins, time(), tzinfo=now.tzinfo)
    return max(1, int((midnight - now).total_seconds()))


def _next_month(day: date) -> date:
    return (day.replace(day=1) + timedelta(days=32)).replace(day=1)
