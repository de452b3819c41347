"""A search of accounts by id, or by the beginning of the name or the email address."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from django.contrib.auth import get_user_model

LIMIT: Final = 200


def find_users(value: str) -> list[UUID]:
    """Return the ids of matching users, at most LIMIT; an id is returned without a check."""
    try:
        return [UUID(value)]
    except ValueError:
        users = get_user_model().objects
    found = users.filter(username__istartswith=value).values_list("pk", flat=True)[:LIMIT]
    addressed = users.filter(email__istartswith=value).values_list("pk", flat=True)
    return list(dict.fromkeys([*found, *addressed[:LIMIT]]))[:LIMIT]
