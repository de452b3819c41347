"""Checks of Django's permissions for coroutines, in one statement."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from config import sql
from config.auth.bearer import Caller

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
    """Return whether the account is active and has `app.codename` (own, by group or as superuser)."""
    app, _, codename = permission.partition(".")
    return bool(await sql.one(_HAS, {"user": user_id, "app": app, "codename": codename}) == (True,))


async def is_staff_with(caller: Caller, permission: str) -> bool:
    """Return whether the caller is a staff account with the permission."""
    return not caller.is_guest and caller.is_staff and await has_permission(caller.user_id, permission)
