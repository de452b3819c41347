"""The binding of a run: the first of the rules that fits; the rules are cached."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

import msgspec

from agents.host.grants import Binding, public_name
from agents.requests import RunRequest
from config import sql
from config.cache import CachedValue
from prompts import app_settings
from prompts.allowances import tiers
from prompts.wordings.active import get_active_prompts

_COLUMNS: Final = ["tier_id" if name == "tier" else name for name in Binding.__struct_fields__]
_READ: Final = f"""
SELECT {", ".join(_COLUMNS)} FROM agents_runnerbinding WHERE is_active ORDER BY position, id LIMIT 1000
"""


async def find_binding(request: RunRequest, *, user_id: UUID, thread_id: UUID) -> Binding | None:
    """Return the first rule that fits; if staff chose a runner, one of its rules or an empty one.

    The rules are at most half a second old; only a rule about a tier needs a statement.
    """
    for binding in await _bindings.get():
        if request.runner and binding.runner_id != request.runner:
            continue
        if (
            _fits(binding, request, user_id, thread_id)
            and (binding.prompt_id is None or binding.prompt_id in await _prompts_of(request))
            and await tiers.has_tier(user_id, binding.tier)
        ):
            return binding
    return Binding(runner_id=request.runner) if request.runner else None


def _fits(binding: Binding, request: RunRequest, user_id: UUID, thread_id: UUID) -> bool:
    return (
        binding.model in ("", request.model)
        and binding.dialect in ("", request.dialect)
        and binding.user_id in (None, user_id)
        and binding.thread_id in (None, thread_id)
    )


async def _prompts_of(request: RunRequest) -> set[int]:
    """Return the prompts of a run of this request: those of its override, or the active ones."""
    if request.prompts:
        return {used.prompt_id for used in request.prompts}
    if await app_settings.aget("prompt_mode") == "passthrough":
        return set()
    return {used.prompt_id for used in (await get_active_prompts()).versions}


def clear_cache() -> None:
    """Invalidate the cache in this process."""
    _bindings.clear()


async def _fetch_bindings() -> list[Binding]:
    return [_binding(row) for row in await sql.every(_READ, ())]


def _binding(row: Any) -> Binding:
    values = dict(zip(Binding.__struct_fields__, row, strict=True))
    values["tier"] = values["tier"] or ""
    values["model"] = values["model"] and public_name(values["model"])
    return msgspec.convert(values, Binding)


_bindings: Final = CachedValue(_fetch_bindings, seconds=0.5)
