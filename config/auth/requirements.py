"""The access requirements of routes: a value on each view, checked before the view runs.

tests/config/auth/test_rights.py reads the requirements of every route from the URL configuration.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from config.auth.bearer import Caller, require_not_guest, require_staff
from config.auth.models import Scope
from config.auth.permissions import has_permission
from config.errors import Forbidden


@dataclass(frozen=True, slots=True)
class Access:
    """The required scope of the token; with a `permission` also a staff account that has it.

    `refusal` replaces the usual error for accounts that are not staff. Without `staff`, any account
    with the permission has access.
    """

    scope: str
    permission: str = ""
    staff: bool = True
    refusal: type[Forbidden] | None = None

    async def check(self, caller: Caller) -> None:
        """Raise Forbidden unless the caller has access."""
        if self.permission:
            self._check_account(caller)
            self._check_permission(await has_permission(caller.user_id, self.permission))
        caller.require(self.scope)

    def check_sync(self, caller: Caller, user: Any) -> None:
        """Do the same as `check`, for synchronous code."""
        if self.permission:
            self._check_account(caller)
            self._check_permission(user.has_perm(self.permission))
        caller.require(self.scope)

    def _check_account(self, caller: Caller) -> None:
        require_not_guest(caller)
        if self.refusal and not (caller.is_staff and Scope.ADMIN in caller.scopes):
            raise self.refusal
        if self.staff:
            require_staff(caller)

    def _check_permission(self, has_it: bool) -> None:
        if not has_it:
            raise Forbidden(
                f"This account lacks the permission {self.permission}: give it a role that has it.",
                code="right_missing" if self.staff else Forbidden.code,
            )


Needs = Mapping[str, Access]
"""The requirements of a view, by method."""

READ: Final = Access(Scope.READ)
RUN: Final = Access(Scope.RUN)


def effective_method(method: str | None) -> str:
    """Return the method whose requirements apply: GET for HEAD."""
    return "GET" if method == "HEAD" else method or ""
