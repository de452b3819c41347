"""The values of the prompts' variables in one run: from its time, its account, settings and context.

The account is read only if a wording names it. The run keeps the values, so that staff can read the
system message as its model did.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.utils import timezone

from agents.requests import ContextItem
from config.auth import accounts
from prompts import app_settings
from prompts.allowances import tiers
from prompts.wordings import template


async def values_for(
    system: str, *, user_id: UUID, model: str, context: Sequence[ContextItem] = ()
) -> dict[str, str]:
    """Return the value of each variable in the prompts, for a run that starts now."""
    names = {variable.name for variable in template.find_variables(system)}
    values = current_moment() | {"model": model} | context_values(context)
    if any(name.startswith("user.") for name in names):
        values |= await _account(user_id)
    for name in names:
        setting = name.removeprefix("app.")
        if name != setting and setting in app_settings.SETTINGS:
            value = await app_settings.aget(setting)
            values[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return {name: template.sanitize(value) for name, value in values.items() if name in names and value}


def current_moment() -> dict[str, str]:
    """Return the present date, time and weekday in TIME_ZONE."""
    now = timezone.localtime()
    return {"date": now.strftime("%Y-%m-%d"), "time": now.strftime("%H:%M"), "weekday": f"{now:%A}"}


def context_values(context: Sequence[ContextItem]) -> dict[str, str]:
    """Return the client's context as variables; of two items with the same name the first counts."""
    found: dict[str, str] = {}
    for item in context:
        if name := template.make_context_name(item.description):
            found.setdefault(name, item.value)
    return found


async def _account(user_id: UUID) -> dict[str, str]:
    account = await accounts.find(user_id)
    name, email = account[:2] if account else ("", "")
    return {"user.name": name, "user.email": email, "user.tier": await tiers.get_tier(user_id)}
