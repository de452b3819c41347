"""Whether an account has one of Django's permissions, asked by coroutines in one statement."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from config import database
from config.auth.bearer import Caller, require_not_guest
from config.errors import Forbidden

_HAS: Final = """
SELECT EXISTS (SELECT FROM accounts_user account WHERE account.id = %(user)s AND account.is_active
    AND (account.is_superuser OR EXISTS (
        SELECT FROM auth_permission permission
        JOIN django_content_type kind ON kind.id = permission.content_type_id
        WHERE kind.app_label = %(app)s AND permission.codename = %(codename)s AND (
            EXISTS (SELECT FROM accounts_user_user_permissions own
                WHERE own.user_id = account.id AND own.permission_id = permission.id)
            OR EXISTS (SELECT FROM accounts_user_groups member
                JOIN auth_group_permissions granted ON granted.group_id = member.group_id
                WHERE member.user_id = account.id AND granted.permission_id = permission.id)))))
"""


async def has_permission(user_id: UUID, permission: str) -> bool:
    """Whether the account is active and has `app.codename`, itself, by a group or as superuser."""
    app, _, codename = permission.partition(".")
    async with database.connection() as held:
        cursor = await held.execute(_HAS, {"user": user_id, "app": app, "codename": codename})
        return bool(await cursor.fetchone() == (True,))


async def require_permission(caller: Caller, permission: str) -> None:
    """Raise Forbidden unless the account has the permission and its token may administer."""
    require_not_guest(caller)
    if not await has_permission(caller.user_id, permission):
        raise Forbidden(f"This account lacks the permission {permission}: ask an owner for it.")
    caller.require("admin")
