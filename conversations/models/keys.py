"""Foreign keys without an index or a constraint of their own."""

from __future__ import annotations

from typing import Any

from django.db import models


def unchecked_key(
    to: str,
    related_name: str,
    *,
    on_delete: Any = models.DO_NOTHING,
    null: bool = False,
) -> models.ForeignKey[Any, Any]:
    """Return a key that another constraint or a migration's SQL keeps, and other indexes serve."""
    return models.ForeignKey(
        to,
        on_delete=on_delete,
        related_name=related_name,
        null=null,
        blank=null,
        db_index=False,
        db_constraint=False,
    )
