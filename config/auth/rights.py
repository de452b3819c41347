"""What a staff account may do over the API: what its role lets it do in admin, and no more."""

from __future__ import annotations

from typing import Any

from config.auth.bearer import Caller, require_staff
from config.auth.permissions import has_permission
from config.errors import Forbidden


def check_right(user: Any, right: str) -> None:
    """Raise Forbidden (`right_missing`) unless the account has it, for example prompts.view_prompt."""
    if not user.has_perm(right):
        raise _missing(right)


async def require_right(caller: Caller, right: str) -> None:
    """The same for a coroutine, after the account and its token have shown to be staff's."""
    require_staff(caller)
    if not await has_permission(caller.user_id, right):
        raise _missing(right)


def _missing(right: str) -> Forbidden:
    return Forbidden(
        f"This account lacks the right {right}: give it a role that has it.", code="right_missing"
    )
