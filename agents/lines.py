"""A form's list, written one entry a line."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.postgres.forms import SimpleArrayField


class LinesField(SimpleArrayField):
    """Empty lines and blanks round an entry do not count."""

    def __init__(self, base_field: forms.Field, **kwargs: Any) -> None:
        super().__init__(base_field, delimiter="\n", **kwargs)

    def clean(self, value: Any) -> Any:
        lines = [line.strip() for line in value.splitlines()] if isinstance(value, str) else []
        return super().clean("\n".join(line for line in lines if line))
