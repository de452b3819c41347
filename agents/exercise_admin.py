"""The exercise library in admin; what staff save here is searched within two seconds."""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.forms import SimpleArrayField
from django.db.models import Field
from django.http import HttpRequest
from unfold.admin import ModelAdmin
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget, UnfoldAdminTextareaWidget

from agents.models import Exercise
from agents.tools.exercise_items import BadExercises, read_media


class LinesField(SimpleArrayField):
    """A list written one entry a line, since steps and tips contain commas; blank lines do not count."""

    def __init__(self, base_field: forms.Field, **kwargs: Any) -> None:
        super().__init__(base_field, delimiter="\n", **kwargs)

    def clean(self, value: Any) -> Any:
        return super().clean(_without_blank_lines(value))

    def has_changed(self, initial: Any, data: Any) -> bool:
        return super().has_changed(initial, _without_blank_lines(data))


class ExerciseForm(forms.ModelForm):  # type: ignore[type-arg]
    """An exercise as staff write it."""

    class Meta:
        model = Exercise
        fields = tuple(field.name for field in Exercise._meta.fields if field.editable)

    def clean_media(self) -> dict[str, Any]:
        """The pictures as a client can show them."""
        try:
            return read_media(self.cleaned_data["media"] or {})
        except BadExercises as problem:
            raise forms.ValidationError(str(problem)) from None


@admin.register(Exercise)
class ExerciseAdmin(ModelAdmin):  # type: ignore[misc]
    """Write exercises, find them, say by which other words people look for them."""

    form = ExerciseForm
    list_display = ("name", "name_en", "muscle_group", "category", "difficulty", "source", "updated_at")
    list_filter = ("muscle_group", "category", "difficulty", "source")
    list_per_page = 50
    search_fields = ("name", "name_en", "aliases")
    search_help_text = "Names in any language, and aliases"
    readonly_fields = ("id", "created_at", "updated_at")
    fieldsets: ClassVar = [
        (None, {"fields": ("name", "name_en", "aliases", "description", "description_en")}),
        (
            "What it trains",
            {"fields": ("muscle_group", "target_muscles", "secondary_muscles", "category", "tags")},
        ),
        ("What it takes", {"fields": ("equipment", "difficulty", "default_sets", "default_reps")}),
        ("How it is done", {"fields": ("steps", "tips", "media")}),
        (
            "Where it comes from",
            {"fields": ("source", "is_official", "is_custom", "id", "created_at", "updated_at")},
        ),
    ]

    def formfield_for_dbfield(
        self, db_field: Field[Any, Any], request: HttpRequest, **kwargs: Any
    ) -> forms.Field | None:
        if not isinstance(db_field, ArrayField):
            found: forms.Field | None = super().formfield_for_dbfield(db_field, request, **kwargs)
            return found
        if db_field.base_field.choices:
            return _choices_field(db_field)
        widget = UnfoldAdminTextareaWidget(attrs={"rows": 4})
        help_text = " ".join(filter(None, ["One a line.", str(db_field.help_text)]))
        return db_field.formfield(form_class=LinesField, widget=widget, help_text=help_text)


def _choices_field(db_field: ArrayField[Any, Any]) -> forms.Field:
    return forms.MultipleChoiceField(
        choices=db_field.base_field.choices or (),
        required=False,
        label=str(db_field.verbose_name).capitalize(),
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
    )


def _without_blank_lines(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return "\n".join(line.strip() for line in value.splitlines() if line.strip())
