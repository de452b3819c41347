"""A form field for lists with one entry per line."""

from __future__ import annotations

from typing import Any, Final

from django import forms
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.forms import SimpleArrayField
from unfold.widgets import UnfoldAdminTextareaWidget

_HINT: Final = "One a line."


class LinesField(SimpleArrayField):
    """A list field that ignores empty lines and surrounding white space."""

    def __init__(self, base_field: forms.Field, *, help_text: str = "", **kwargs: Any) -> None:
        if _HINT[1:-1] not in help_text:
            help_text = f"{_HINT} {help_text}".rstrip()
        super().__init__(base_field, delimiter="\n", help_text=help_text, **kwargs)

    def to_python(self, value: Any) -> Any:
        if isinstance(value, str):
            value = "\n".join(line.strip() for line in value.splitlines() if line.strip())
        return super().to_python(value)


LINES: Final = {
    ArrayField: {"form_class": LinesField, "widget": UnfoldAdminTextareaWidget(attrs={"rows": 4})}
}
"""The `formfield_overrides` of a page that shows its lists so."""
