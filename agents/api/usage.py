"""An account's own usage and spending: today, this month, and the rest of its budget."""

from __future__ import annotations

import dataclasses
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase

from agents.spending import budget_checks
from agents.spending.budget_checks import Standing
from config import database
from config.auth.bearer import Caller
from config.auth.requirements import READ
from config.http.async_views import api, json_response
from config.http.documentation import groups
from config.http.documentation.operations import described, operation, response
from config.http.documentation.schema_builders import ref
from conversations.runs.spending import SpendingSums
from conversations.usage import usd


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


def _shown(standing: Standing) -> dict[str, Any]:
    spending = standing.spending
    day = spending.today.isoformat()
    return {
        "time_zone": settings.TIME_ZONE,
        "today": {"date": day} | _spent(spending.day),
        "month": {"month": day[:7]} | _spent(spending.month),
        "budget": [
            level.client_values | {"resets_in_s": budget_checks.seconds_left(level.period)}
            for level in standing.account
        ],
        "exceeded": _exceeded(standing),
    }


def _spent(spent: SpendingSums) -> dict[str, Any]:
    return dataclasses.asdict(spent) | {"cost_usd": usd(spent.cost_usd)}


def _exceeded(standing: Standing) -> dict[str, Any] | None:
    """Return the limit that refuses a run now, without sums: the installation's show others' use."""
    found = standing.used_up
    if found is None:
        return None
    scope, level = found
    resets_in_s = budget_checks.seconds_left(level.period)
    return {
        "scope": scope,
        "period": level.period,
        "unit": level.unit,
        "resets_in_s": resets_in_s,
    }
