"""What other apps know of an account."""

from __future__ import annotations

from typing import Final, NamedTuple
from uuid import UUID

from config import sql

_ACCOUNT: Final = """
SELECT coalesce(nullif(first_name, ''), username), email, is_staff FROM accounts_user WHERE id = %s
"""


class Account(NamedTuple):
    """The name to call a user by, the address, and whether the user is staff."""

    display_name: str
    email: str
    is_staff: bool


async def find(user_id: UUID) -> Account | None:
    """Return the account; None if it is gone."""
    row = await sql.one(_ACCOUNT, (user_id,))
    return Account(*row) if row else None
