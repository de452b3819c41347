"""An account's own usage and spending: today, this month, and the rest of its budget."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any, Final, Literal

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from msgspec import UNSET, UnsetType

from agents.spending import budget_checks
from agents.spending.budget_checks import Standing
from config import database
from config.auth.bearer import Caller
from config.auth.requirements import READ
from config.http.async_views import api, json_response
from config.http.documentation import groups
from config.http.documentation.json_types import Count, Shown, noted
from config.http.documentation.operations import described, operation, response
from config.http.documentation.schema_builders import ref
from conversations.runs.spending import SpendingSums
from conversations.usage import usd

_USD: Final = noted("US dollars: the sum of the known prices; null if no price is known.")
Amount = Annotated[str | int, noted("US dollars as a text, or tokens.")]
Period = Literal["day", "month"]
Unit = Literal["usd", "tokens"]


class Used(Shown, frozen=True, kw_only=True):
    """What was used on a day or in a month."""

    date: str | UnsetType = UNSET
    month: str | UnsetType = UNSET
    runs: Count
    input_tokens: Count
    output_tokens: Count
    unpriced_tokens: Annotated[Count, noted("The input and output tokens whose price is unknown.")]
    cost_usd: Annotated[str | None, _USD]


class Limit(Shown, frozen=True):
    """A limit of the account."""

    period: Period
    unit: Unit
    limit: Amount
    used: Amount
    left: Amount
    resets_in_s: Count


class Exceeded(Shown, frozen=True):
    """The exceeded limit, because of which runs are refused now: the installation's has no sums."""

    scope: Literal["account", "installation"]
    period: Period
    unit: Unit
    resets_in_s: Count


class Usage(Shown, frozen=True):
    """The usage and cost of an account's finished runs, and its limits."""

    time_zone: str
    today: Used
    month: Used
    budget: list[Limit]
    exceeded: Exceeded | None


@described(
    operation(
        "GET /api/v1/agent/usage",
        "agent_usage",
        "Get the usage and cost of the caller's finished runs and the budget that is left",
        {"200": response("The caller's usage.", ref("Usage"))},
        group=groups.USAGE,
    )
)
@api(GET=READ)
async def usage(request: HttpRequest, caller: Caller) -> HttpResponseBase:
    """`GET /api/v1/agent/usage`: return the caller's own usage, for runs that have ended."""
    async with database.connection() as connection:
        standing = await budget_checks.find_standing(connection, caller.user_id)
    return json_response(_shown(standing), headers={"Cache-Control": "no-store"})


def _shown(standing: Standing) -> Usage:
    spending = standing.spending
    day = spending.today.isoformat()
    return Usage(
        time_zone=settings.TIME_ZONE,
        today=Used(date=day, **_spent(spending.day)),
        month=Used(month=day[:7], **_spent(spending.month)),
        budget=[
            Limit(**level.client_values, resets_in_s=budget_checks.seconds_left(level.period))
            for level in standing.account
        ],
        exceeded=_exceeded(standing),
    )


def _spent(spent: SpendingSums) -> dict[str, Any]:
    return dataclasses.asdict(spent) | {"cost_usd": usd(spent.cost_usd)}


def _exceeded(standing: Standing) -> Exceeded | None:
    """Return the limit that refuses a run now."""
    found = standing.used_up
    if found is None:
        return None
    scope, level = found
    return Exceeded(scope, level.period, level.unit, budget_checks.seconds_left(level.period))
