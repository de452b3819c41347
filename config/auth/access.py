"""What a route needs of its caller: a value that its view carries, checked before the view runs.

So the URL table says of every route who may use it, and tests/test_rights.py reads it from there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from config.auth.bearer import Caller, require_not_guest, require_staff
from config.auth.models import Scope
from config.auth.permissions import require_permission
from config.auth.rights import check_right, require_right
from config.errors import Forbidden


@dataclass(frozen=True, slots=True)
class Access:
    """The scope that the token needs; with a `right` also a staff account that has it.

    `refusal` is raised in the place of the usual error for whom is not staff; with `staff` off any
    account that has the right is let in.
    """

    scope: str
    right: str = ""
    staff: bool = True
    refusal: type[Forbidden] | None = None

    async def check(self, caller: Caller) -> None:
        """Raise Forbidden unless the caller may."""
        if self.right:
            await (require_right if self.staff else require_permission)(caller, self.right)
        caller.require(self.scope)

    def check_sync(self, caller: Caller, user: Any) -> None:
        """`check`, for code that is not async."""
        if self.right:
            self._check_staff(caller)
            check_right(user, self.right)
        caller.require(self.scope)

    def _check_staff(self, caller: Caller) -> None:
        require_not_guest(caller)
        if self.refusal and not (caller.is_staff and Scope.ADMIN in caller.scopes):
            raise self.refusal
        require_staff(caller)


Needs = Mapping[str, Access]
"""What a view needs, by method."""

READ: Final = Access(Scope.READ)
RUN: Final = Access(Scope.RUN)


def method_asked(method: str | None) -> str:
    """The method whose needs count: who may GET may look at the headers alone."""
    return "GET" if method == "HEAD" else method or ""
