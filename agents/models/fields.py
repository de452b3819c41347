"""Fields and constraints that several tables have."""

from __future__ import annotations

from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q


def optional_text(help_text: str = "", *, longest: int, **options: Any) -> models.CharField[str, str]:
    """Return a text that may be empty, and is by default."""
    return models.CharField(max_length=longest, blank=True, default="", help_text=help_text, **options)


def text_list(
    help_text: str = "", *, longest: int = 200, **options: Any
) -> ArrayField[list[str], list[str]]:
    """Return a list of texts, empty by default."""
    text = models.CharField(max_length=longest)
    return ArrayField(text, default=list, blank=True, help_text=help_text, **options)


def optional_key(
    to: str, help_text: str = "", *, on_delete: Any = models.CASCADE, **options: Any
) -> models.ForeignKey[Any, Any]:
    """Return a reference to a row, or to none; that row has no way back."""
    return models.ForeignKey(
        to,
        on_delete=on_delete,
        null=True,
        blank=True,
        related_name="+",
        help_text=help_text,
        **options,
    )


def sealed_secret() -> models.ForeignKey[Any, Any]:
    """Return a reference to a sealed secret, which staff enter and never see again."""
    return optional_key("prompts.Secret", on_delete=models.SET_NULL, editable=False)


def known_choice(field: str, choices: type[models.TextChoices], *, name: str) -> models.CheckConstraint:
    """Return the constraint that a column holds one of its choices."""
    return models.CheckConstraint(condition=Q(**{f"{field}__in": choices.values}), name=name)
