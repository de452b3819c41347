"""Which accounts somebody means: by an id, or by how the name or the address begins."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from django.contrib.auth import get_user_model

MOST: Final = 200


def users_named(value: str) -> list[UUID]:
    """The ids of the users that somebody may mean, of too many some; whether there are such or not."""
    try:
        return [UUID(value)]
    except ValueError:
        users = get_user_model().objects
    found = users.filter(username__istartswith=value).values_list("pk", flat=True)[:MOST]
    addressed = users.filter(email__istartswith=value).values_list("pk", flat=True)
    return list(dict.fromkeys([*found, *addressed[:MOST]]))[:MOST]
