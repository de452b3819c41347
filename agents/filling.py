"""What stands for the prompts' variables in one run: from its time, its account, settings and context.

The account is read only where a wording names it. What was put in is kept on the run, so that staff can
read the system message as its model did.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID

import msgspec
from django.utils import timezone

from agents.requests import ContextItem
from config import database
from prompts import app_settings, wording

_ACCOUNT: Final = """
SELECT coalesce(nullif(account.first_name, ''), account.username), account.email, held.tier_id
FROM accounts_user account LEFT JOIN prompts_entitlement held
    ON held.user_id = account.id AND (held.expires_at IS NULL OR held.expires_at > now())
WHERE account.id = %s
"""


async def values_for(
    system: str, *, user_id: UUID, model: str, context: Sequence[ContextItem] = ()
) -> dict[str, str]:
    """What is put in the place of each variable of the prompts for a run that starts now."""
    names = {variable.name for variable in wording.variables(system)}
    values = moment() | {"model": model} | of_context(context)
    if any(name.startswith("user.") for name in names):
        values |= await _account(user_id)
    for name in names:
        setting = name.removeprefix("app.")
        if name != setting and setting in app_settings.SETTINGS:
            values[name] = _word(await app_settings.aget(setting))
    return {name: wording.inert(value) for name, value in values.items() if name in names and value}


_KEEP: Final = """
UPDATE conversations_run SET prompt_values = %s WHERE id = %s AND fence = %s AND status = 'running'
"""


async def keep_values(run_id: UUID, *, fence: int, values: dict[str, str]) -> None:
    """Record on the run what its model was told for the variables; with a lost fence nothing."""
    told = msgspec.json.encode(values).decode()
    async with database.connection() as connection:
        await connection.execute(_KEEP, (told, run_id, fence))


def moment() -> dict[str, str]:
    """Now, in TIME_ZONE."""
    now = timezone.localtime()
    return {"date": now.strftime("%Y-%m-%d"), "time": now.strftime("%H:%M"), "weekday": f"{now:%A}"}


def of_context(context: Sequence[ContextItem]) -> dict[str, str]:
    """The client's context as variables; of two items of one name the first counts."""
    found: dict[str, str] = {}
    for item in context:
        if name := wording.context_name(item.description):
            found.setdefault(name, item.value)
    return found


async def _account(user_id: UUID) -> dict[str, str]:
    async with database.connection() as connection:
        row = await (await connection.execute(_ACCOUNT, (user_id,))).fetchone()
    name, email, tier = row or ("", "", "")
    return {"user.name": name or "", "user.email": email or "", "user.tier": tier or ""}


def _word(value: app_settings.Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
